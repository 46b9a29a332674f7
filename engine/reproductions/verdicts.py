"""Every published figure of an experiment beside ours, with its state and why."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from engine.domain.claim import Claim, Ended
from engine.domain.experiment import Experiment
from engine.domain.presented import Published
from engine.domain.quantity import Coordinates
from engine.domain.units import between, human
from engine.domain.values import Value
from engine.domain.world import World
from engine.experiments.results.claims import Verdict, outcomes_of, values_of, verdicts
from engine.experiments.results.published import PublishedRow, compare_published
from engine.experiments.results.rows import Row
from engine.reproductions.declared import (
    input_set_by,
    matches,
    moves_of,
    other_regime_of,
    repeated_by,
    sentence_of,
)
from engine.reproductions.figures import figures, published_text
from engine.reproductions.moved import Moved, shipped_moves
from engine.reproductions.states import (
    AGREEMENTS,
    Cause,
    Judged,
    State,
    state_of_claim,
    state_of_value,
    with_input,
)

SIZES = ("peak_memory_bytes",)
"""Metrics that no rate and no time is in."""

OF_SIZES = "It is arithmetic of the sizes of models and devices, which were put in."

REASONS = Path(__file__).with_name("reasons.toml")


class FigureVerdict(Value):
    """One published figure and ours. `published` and `ours` are text, in the unit of the comparison.

    `why` says what makes an input of it, or why it cannot be checked; of a figure that is off, what was found
    when looking, and `cause` whether the paper or this project makes the difference, or that this is not
    known. `repeats` names what the figure repeats, so that it is not counted.
    """

    id: str
    experiment: str
    world: World
    where: str
    what: str
    published: str
    ours: str
    deviation: float | None = None
    state: State
    why: str = ""
    cause: Cause = ""
    repeats: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is an independent figure of the world that every experiment has."""
        return self.world == "predicted" and not self.repeats


class Reason(Value):
    """Why the figures that match one of `figures` are off; `looked` says what was changed to find out, and
    `cause` whether the paper's figures or this project make the difference, or that this is not known.
    """

    figures: tuple[str, ...] = Field(min_length=1)
    cause: Cause = Field(min_length=1)
    reason: str
    looked: str = ""


class Remarks(Value):
    """The file `reasons.toml`."""

    reason: tuple[Reason, ...] = ()


@cache
def remarks() -> Remarks:
    return Remarks.parse(tomllib.loads(REASONS.read_text(encoding="utf-8")), REASONS.name)


def reason_of(figure_id: str) -> Reason | None:
    """The first reason for a figure."""
    return next((one for one in remarks().reason if matches(figure_id, one.figures)), None)


def figure_verdicts(
    experiment: Experiment, rows: Sequence[Row], moves: Moved | None = None
) -> tuple[FigureVerdict, ...]:
    """A verdict per published figure and world, in the order of the file: values, then claims. `moves` is
    what ours moves with, by default that of the shipped results.
    """
    moves = shipped_moves().get(experiment.name, {}) if moves is None else moves
    compared = [_of_value(experiment, row, moves) for row in compare_published(experiment, rows)]
    claims = {claim.name: claim for claim in experiment.claims}
    claimed = [
        verdict
        for found in verdicts(experiment, rows)
        for verdict in _of_claim(experiment, claims[found.name], found, rows, moves)
    ]
    return (*compared, *claimed)


def agreements(experiment: Experiment, rows: Sequence[Row]) -> set[str]:
    """The predicted figures that agree with ours and were not put in: what moves them is to be found out."""
    found = figure_verdicts(experiment, rows, {})
    return {
        one.id
        for one in found
        if one.world == "predicted" and (one.state in AGREEMENTS or one.why == OF_SIZES)
    }


def claims_without_figures(experiment: Experiment, rows: Sequence[Row]) -> tuple[Verdict, ...]:
    """Verdicts of the claims that stand for no published figure of their own."""
    names = {claim.name for claim in experiment.claims if not claim.figures}
    return tuple(verdict for verdict in verdicts(experiment, rows) if verdict.name in names)


def _of_value(experiment: Experiment, row: PublishedRow, moves: Moved) -> FigureVerdict:
    value = next(one for one in experiment.published if one.id == row.id)
    return _verdict(
        experiment,
        row.id,
        row.world,
        state_of_value(row, value.relation, sentence_of(row.id)),
        moves,
        of_sizes=row.metric.partition("[")[0] in SIZES,
        where=row.where,
        what=_words(experiment, row.coordinates),
        published=_published(row, value),
        ours=_ours(row),
        deviation=row.deviation,
    )


def _of_claim(
    experiment: Experiment, claim: Claim, found: Verdict, rows: Sequence[Row], moves: Moved
) -> list[FigureVerdict]:
    of_world = [row for row in rows if row.world == found.world]
    judged = state_of_claim(found, claim, values_of(experiment, of_world, claim))
    of_sizes = isinstance(claim, Ended) and outcomes_of(experiment, of_world, claim) == {"no_plan"}
    texts = {"where": found.where, "what": found.text, "ours": found.found}
    return [
        _verdict(
            experiment,
            figure_id,
            found.world,
            judged,
            moves,
            of_sizes=of_sizes,
            published=published_text(figures()[figure_id]),
            **texts,
        )
        for figure_id in claim.figures
    ]


def _verdict(
    experiment: Experiment,
    figure_id: str,
    world: World,
    judged: Judged,
    moves: Moved,
    *,
    of_sizes: bool,
    **fields: Any,
) -> FigureVerdict:
    """The verdict with what was put in, with a person's reason where it is off, and with its cause.

    `of_sizes`: ours is arithmetic of the sizes of models and devices, which were put in.
    """
    found = [(move, moves.get(move.name, {}).get(figure_id)) for move in moves_of(experiment.name)]
    of_figure = [(move, ratio) for move, ratio in found if ratio is not None]
    judged = with_input(judged, input_set_by(figure_id), of_figure)
    if of_sizes and judged.state in AGREEMENTS:
        judged = Judged("input", OF_SIZES)
    other = other_regime_of(figure_id)
    if other is not None:
        judged = Judged("cannot be checked", other.why)
    state, why, cause = judged
    reason = reason_of(figure_id) if state in ("direction", "contradicted") else None
    if reason is not None:
        why, cause = f"{why} {reason.reason} {reason.looked}".strip(), reason.cause
    return FigureVerdict(
        id=figure_id,
        experiment=experiment.name,
        world=world,
        state=state,
        why=why,
        cause=cause,
        repeats=repeated_by(figure_id),
        **fields,
    )


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


def _number(value: float, unit: str, digits: int = 3) -> str:
    if unit == "fraction":
        value, unit = 100 * value, "%"
    elif unit in MILLI and abs(value) < 1:
        value, unit = 1e3 * value, MILLI[unit]
    elif unit in GIGA and abs(value) >= 1e9:
        value, unit = value / 1e9, GIGA[unit]
    elif unit == "1/s":
        unit = "tokens/s"
    return f"{value:.{digits}g} {unit}".strip()


def _published(row: PublishedRow, value: Published) -> str:
    """The published value with all of its digits and, where it is computed from others, with those."""
    sign = {"at_most": "≤ ", "at_least": "≥ ", "about": "about "}.get(value.bound, "")
    if row.published is not None:
        number = _number(row.published, row.unit, digits=4)
        return f"{sign}{number} ({value.note})" if value.note else sign + number
    if row.published_low is not None and row.published_high is not None:
        return between(_number(row.published_low, row.unit), _number(row.published_high, row.unit))
    return row.published_outcome


def _ours(row: PublishedRow) -> str:
    if row.ours is not None:
        return _number(row.ours, row.unit)
    return ", ".join(sorted({one.replace("_", " ") for one in row.outcomes})) or "–"
