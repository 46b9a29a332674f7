"""Every published figure of an experiment beside ours, with a verdict: how near, or why not."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.domain.experiment import Experiment
from engine.domain.presented import World
from engine.domain.quantity import Coordinates
from engine.domain.units import human
from engine.domain.values import Value
from engine.experiments.results.claims import Verdict, verdicts
from engine.experiments.results.published import PublishedRow, compare_published
from engine.experiments.results.rows import Row
from engine.reproductions.figures import figures

Nearness = Literal["within 10 %", "within 30 %", "direction holds", "does not hold", "not known"]
NEAREST_FIRST: tuple[Nearness, ...] = (
    "within 10 %",
    "within 30 %",
    "direction holds",
    "does not hold",
    "not known",
)
NO_EFFECT = 0.02
"""A relation to a baseline that differs by no more is no effect."""

REASONS = Path(__file__).with_name("reasons.toml")


class FigureVerdict(Value):
    """One published figure and ours. `published` and `ours` are text, in the unit of the comparison.

    `verdict` of a value or range is by ours / published, of a claim "within 10 %" where it holds and
    "direction holds" where it holds in direction. "direction holds" of a value: both are on the same side of
    the baseline. `reason` says why a figure is farther off than 30 %, `fitted` whether it set a parameter
    and so confirms nothing.
    """

    id: str
    experiment: str
    world: World
    where: str
    what: str
    published: str
    ours: str
    deviation: float | None = None
    verdict: Nearness
    fitted: bool = False
    reason: str = ""


class Reason(Value):
    """Why the figures that match one of `figures` are off; `looked` says what was changed to find out."""

    figures: tuple[str, ...] = Field(min_length=1)
    reason: str
    looked: str = ""


class Remarks(Value):
    """The file `reasons.toml`: reasons, and the patterns of figures that parameters are fitted to."""

    fitted: tuple[str, ...] = ()
    reason: tuple[Reason, ...] = ()


@cache
def remarks() -> Remarks:
    return Remarks.parse(tomllib.loads(REASONS.read_text(encoding="utf-8")), REASONS.name)


def reason_of(figure_id: str) -> Reason | None:
    """The first reason for a figure."""
    for one in remarks().reason:
        if any(fnmatchcase(figure_id, pattern) for pattern in one.figures):
            return one
    return None


def is_fitted(figure_id: str) -> bool:
    return any(fnmatchcase(figure_id, pattern) for pattern in remarks().fitted)


def figure_verdicts(experiment: Experiment, rows: Sequence[Row]) -> tuple[FigureVerdict, ...]:
    """A verdict per published figure and world, in the order of the file: values, then claims."""
    compared = [_of_value(experiment, row) for row in compare_published(experiment, rows)]
    names = {claim.name: claim.figures for claim in experiment.claims}
    claimed = [
        _of_claim(experiment, verdict, figure_id)
        for verdict in verdicts(experiment, rows)
        for figure_id in names[verdict.name]
    ]
    return (*compared, *claimed)


def claims_without_figures(experiment: Experiment, rows: Sequence[Row]) -> tuple[Verdict, ...]:
    """Verdicts of the claims that stand for no published figure of their own."""
    names = {claim.name for claim in experiment.claims if not claim.figures}
    return tuple(verdict for verdict in verdicts(experiment, rows) if verdict.name in names)


def nearness(row: PublishedRow, relation: str) -> Nearness:
    """How near ours is to a published value, range or outcome.

    A relation to a baseline that is more than 10 % off must be on the published side of it, by 2 % at least:
    1.0 times is no reproduction of 1.2 times.
    """
    if row.agrees is not None:
        return "within 10 %" if row.agrees else "does not hold"
    if row.ours is None:
        return "does not hold" if row.outcomes else "not known"
    distance = abs(row.deviation) if row.deviation is not None else float("inf")
    if distance <= 0.1:
        return "within 10 %"
    published = row.published if row.published is not None else row.published_low
    neutral = 0.0 if relation == "reduction" else 1.0
    same_side = (
        published is not None
        and abs(row.ours - neutral) > NO_EFFECT
        and (published > neutral) == (row.ours > neutral)
    )
    if distance <= 0.3 and (relation == "value" or same_side):
        return "within 30 %"
    return "direction holds" if relation != "value" and same_side else "does not hold"


def _of_value(experiment: Experiment, row: PublishedRow) -> FigureVerdict:
    value = next(one for one in experiment.published if one.id == row.id)
    verdict = nearness(row, value.relation)
    return FigureVerdict(
        id=row.id,
        experiment=experiment.name,
        world=_world(row.world),
        where=row.where,
        what=_words(experiment, row.coordinates),
        published=_published(row, value.bound),
        ours=_ours(row),
        deviation=row.deviation,
        verdict=verdict,
        fitted=is_fitted(row.id),
        reason=_reason(row.id, verdict) or (row.problem if row.ours is None else ""),
    )


def _of_claim(experiment: Experiment, found: Verdict, figure_id: str) -> FigureVerdict:
    verdict: Nearness = "not known"
    if found.verdict == "holds":
        verdict = "within 10 %"
    elif found.verdict == "holds in direction":
        verdict = "direction holds"
    elif found.verdict == "does not hold":
        verdict = "does not hold"
    value = figures()[figure_id].value
    return FigureVerdict(
        id=figure_id,
        experiment=experiment.name,
        world=_world(found.world),
        where=found.where,
        what=found.text,
        published=" to ".join(f"{end:g}" for end in value) if isinstance(value, tuple) else str(value),
        ours=found.found,
        verdict=verdict,
        fitted=is_fitted(figure_id),
        reason=_reason(figure_id, verdict) or found.reason,
    )


def _reason(figure_id: str, verdict: Nearness) -> str:
    found = reason_of(figure_id)
    if found is None or verdict in ("within 10 %", "within 30 %"):
        return ""
    return f"{found.reason} {found.looked}".strip()


def _world(name: str) -> World:
    found: World = "emulated" if name == "emulated" else "calculated" if name == "calculated" else "simulated"
    return found


def _words(experiment: Experiment, coordinates: Coordinates) -> str:
    """`BERT-Large, voltage, 6 machines`: the labels of the levels, and the names of numbers."""
    words = []
    for name, coordinate in coordinates.items():
        factor = experiment.factor(name)
        level = factor.level(coordinate) if factor else None
        text = level.title if level else str(coordinate)
        is_number = isinstance(coordinate, int | float) and not isinstance(coordinate, bool)
        if factor and is_number and level and not level.label:
            text = human(float(coordinate), factor.unit).strip() if factor.unit else f"{coordinate:g}"
            text = text if factor.unit else _counted(text, factor.label.lower())
        words.append(text)
    return ", ".join(words)


def _counted(number: str, label: str) -> str:
    """`6 machines`, `1 machine`, `block 4`: only a plural is counted."""
    if not label.endswith("s"):
        return f"{label} {number}"
    return f"{number} {label.removesuffix('s') if number == '1' else label}"


MILLI = {"s": "ms", "J": "mJ"}
GIGA = {"B": "GB"}


def _number(value: float, unit: str) -> str:
    if unit == "fraction":
        return f"{100 * value:.3g} %"
    if unit in MILLI and abs(value) < 1:
        return f"{1e3 * value:.3g} {MILLI[unit]}"
    if unit in GIGA and abs(value) >= 1e9:
        return f"{value / 1e9:.3g} {GIGA[unit]}"
    if unit == "1/s":
        return f"{value:.3g} tokens/s"
    return f"{value:.3g} {unit}".strip()


def _published(row: PublishedRow, bound: str) -> str:
    sign = {"at_most": "≤ ", "at_least": "≥ ", "about": "about "}.get(bound, "")
    if row.published is not None:
        return sign + _number(row.published, row.unit)
    if row.published_low is not None and row.published_high is not None:
        return f"{_number(row.published_low, row.unit)} to {_number(row.published_high, row.unit)}"
    return row.published_outcome


def _ours(row: PublishedRow) -> str:
    if row.ours is not None:
        return _number(row.ours, row.unit)
    return ", ".join(sorted({one.replace("_", " ") for one in row.outcomes})) or "–"
