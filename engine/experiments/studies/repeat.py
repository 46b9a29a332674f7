"""A study beside its repetition: which cells differ by more than chance.

What is predicted follows from the run alone, so every number must be the same. What is measured is compared
by cell: the 95 % intervals of the two means have a point in common, or they differ. A cell of one seed has no
interval, and nothing is said of it but how far the two values are apart. Values nearer than the six digits
that are shown of them are the same: emulations of one device differ by rounding alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.numbers_as_text import shown
from engine.domain.quantity import Coordinates, Quantity
from engine.domain.units import between
from engine.domain.values import Value
from engine.experiments.results.cells import Cell, Place, cells, overlap, place_of
from engine.experiments.results.metrics import metric
from engine.experiments.results.rows import Row

EXACT = ("predicted",)
ALWAYS = ("latency_s", "ttft_s", "tpot_s")
"""What is compared of measured cells, besides what the experiment shows."""

Verdict = Literal["same", "differs", "not repeated", "no interval"]
Said = tuple[str, str, str]
"""A metric, and its value in the study and in the repetition."""

NOTHING: Said = ("", "", "")

CellsByMetric = Mapping[str, Mapping[Place, Cell]]


class Compared(Value):
    """One cell, and what decided: the values of a metric in the study and in its repetition."""

    experiment: str
    coordinates: Coordinates
    verdict: Verdict
    metric: str = ""
    study: str = ""
    repeated: str = ""
    exact: bool = False
    """Whether every number of it must be the same; else its intervals decide."""


def compared(experiment: Experiment, before: Sequence[Row], after: Sequence[Row]) -> tuple[Compared, ...]:
    """A line for every cell and world of `before`."""
    return (*_exactly(experiment, before, after), *_by_interval(experiment, before, after))


def is_exact(before: Row, after: Row | None) -> bool:
    """Whether the two must be equal: predicted, and from the same times of a host, if from any."""
    return before.world in EXACT and (after is None or before.calibration == after.calibration)


# Predicted -----------------------------------------------------------------------------------------
def _exactly(experiment: Experiment, before: Iterable[Row], after: Iterable[Row]) -> Iterator[Compared]:
    others = {_key(row): row for row in after}
    for row in before:
        other = others.get(_key(row))
        if not is_exact(row, other):
            continue
        at: Coordinates = row.place | ({"seed": row.seed} if len(experiment.seeds) > 1 else {})
        if other is None:
            yield _told(experiment, at, "not repeated", ("", row.outcome, ""), exact=True)
        else:
            said = _first_difference(row, other)
            yield _told(experiment, at, "same" if said == NOTHING else "differs", said, exact=True)


def _key(row: Row) -> tuple[object, ...]:
    return (*place_of(row.place), row.seed)


def _first_difference(row: Row, other: Row) -> Said:
    """The name and the two values of the first number that is not the same."""
    if row.outcome != other.outcome:
        return "outcome", row.outcome, other.outcome
    for name in dict.fromkeys((*ALWAYS, *row.metrics, *other.metrics)):
        old, new = row.metrics.get(name), other.metrics.get(name)
        if old != new:
            texts = _number(name, old), _number(name, new)
            return (name, *texts) if texts[0] != texts[1] else (name, repr(old), repr(new))
    return NOTHING


# Measured ------------------------------------------------------------------------------------------
def _by_interval(experiment: Experiment, before: Sequence[Row], after: Sequence[Row]) -> Iterator[Compared]:
    others = {_key(row): row for row in after}
    measured = [row for row in before if not is_exact(row, others.get(_key(row)))]
    again = [others[_key(row)] for row in measured if _key(row) in others]
    names = metrics_shown(experiment)
    old, new = (_by_metric(experiment, rows, names) for rows in (measured, again))
    for key, cell in old[ALWAYS[0]].items():
        verdict, said = _verdict(key, old, new)
        yield _told(experiment, cell.coordinates, verdict, said)


def metrics_shown(experiment: Experiment) -> tuple[str, ...]:
    """The metrics that decide whether a measured cell differs."""
    of_pictures = (one.metric for one in (*experiment.figures, *experiment.tables))
    return tuple(dict.fromkeys((*ALWAYS, *of_pictures)))


def _by_metric(experiment: Experiment, rows: Sequence[Row], names: Iterable[str]) -> CellsByMetric:
    return {
        name: {place_of(cell.coordinates): cell for cell in cells(experiment, rows, Quantity(metric=name))}
        for name in names
    }


def _verdict(key: Place, before: CellsByMetric, after: CellsByMetric) -> tuple[Verdict, Said]:
    apart = NOTHING
    for name, found in before.items():
        old, new = found[key], after[name].get(key)
        if new is None:
            return "not repeated", ("", old.outcomes[0], "")
        if set(old.outcomes) != set(new.outcomes):
            return "differs", ("outcome", _outcomes(old), _outcomes(new))
        if old.mean is None or new.mean is None:
            continue
        said = (name, _interval(name, old), _interval(name, new))
        if overlap(old, new):
            continue
        if old.low is not None and new.low is not None:
            return "differs", said
        apart = said if apart == NOTHING else apart
    return ("same" if apart == NOTHING else "no interval"), apart


def _outcomes(cell: Cell) -> str:
    return ", ".join(sorted(set(cell.outcomes)))


def _interval(name: str, cell: Cell) -> str:
    assert cell.mean is not None
    if cell.low is None or cell.high is None:
        return _number(name, cell.mean)
    return between(_number(name, cell.low), _number(name, cell.high))


# Words ---------------------------------------------------------------------------------------------
def _told(
    experiment: Experiment, at: Coordinates, verdict: Verdict, said: Said, exact: bool = False
) -> Compared:
    name, old, new = said
    return Compared(
        experiment=experiment.name,
        coordinates=at,
        verdict=verdict,
        metric=name,
        study=old,
        repeated=new,
        exact=exact,
    )


def summary(found: Sequence[Compared]) -> list[str]:
    """Sentences: how many cells are the same, and what is with the others."""
    number = Counter(one.verdict for one in found)
    kinds = [
        _same([one for one in found if one.exact], "predicted points exactly"),
        _same([one for one in found if not one.exact], "measured cells within their 95 % intervals"),
    ]
    lines = [f"{number['same']} of {len(found)} are the same: {', '.join(filter(None, kinds))}."]
    if number["differs"]:
        lines.append(f"{number['differs']} differ.")
    if number["not repeated"]:
        lines.append(f"{number['not repeated']} were not repeated.")
    if number["no interval"]:
        lines.append(
            f"{number['no interval']} measured cells have one seed, so no interval says whether they differ."
        )
    return lines


def _same(found: Sequence[Compared], what: str) -> str:
    number = sum(one.verdict == "same" for one in found)
    return f"{number} of {len(found)} {what}" if found else ""


def _number(name: str, value: float | None) -> str:
    if value is None:
        return "none"
    try:
        return shown(value, metric(name).unit, digits=6)
    except SpecError:  # of a newer version, or made up
        return f"{value:.6g}"
