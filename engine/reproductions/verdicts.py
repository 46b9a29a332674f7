"""Every published figure of an experiment beside ours, with its state and why."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from engine.domain.claim import Claim, Within
from engine.domain.experiment import Experiment
from engine.domain.quantity import Coordinates
from engine.domain.units import between, human
from engine.domain.values import Value
from engine.domain.world import World
from engine.experiments.results.claims import Verdict, values_of, verdicts
from engine.experiments.results.published import PublishedRow, compare_published
from engine.experiments.results.rows import Row
from engine.reproductions.declared import input_set_by, inputs_moved_in, matches, repeated_by, sentence_of
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

REASONS = Path(__file__).with_name("reasons.toml")


class FigureVerdict(Value):
    """One published figure and ours. `published` and `ours` are text, in the unit of the comparison.

    `why` says what makes an input of it, or why it cannot be checked; of a figure that is off, what was found
    when looking, and `cause` whether the paper or this project makes the difference. `repeats` names what the
    figure repeats, so that it is not counted.
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
    `cause` whether the paper's figures or this project make the difference.
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
    return {one.id for one in found if one.world == "predicted" and one.state in AGREEMENTS}


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
        where=row.where,
        what=_words(experiment, row.coordinates),
        published=_published(row, value.bound),
        ours=_ours(row),
        deviation=row.deviation,
    )


def _of_claim(
    experiment: Experiment, claim: Claim, found: Verdict, rows: Sequence[Row], moves: Moved
) -> list[FigureVerdict]:
    of_world = [row for row in rows if row.world == found.world]
    values = values_of(experiment, of_world, claim) if isinstance(claim, Within) else []
    judged = state_of_claim(found, claim, values)
    texts = {"where": found.where, "what": found.text, "ours": found.found}
    return [
        _verdict(
            experiment,
            figure_id,
            found.world,
            judged,
            moves,
            published=published_text(figures()[figure_id]),
            **texts,
        )
        for figure_id in claim.figures
    ]


def _verdict(
    experiment: Experiment, figure_id: str, world: World, judged: Judged, moves: Moved, **fields: Any
) -> FigureVerdict:
    """The verdict with what was put in, with a person's reason where it is off, and with its cause."""
    moved_by = {one.name: one.by for one in inputs_moved_in(experiment.name)}
    of_figure = {name: moves[name][figure_id] for name in moved_by if figure_id in moves.get(name, {})}
    state, why, cause = with_input(judged, input_set_by(figure_id), of_figure, moved_by)
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
        return between(_number(row.published_low, row.unit), _number(row.published_high, row.unit))
    return row.published_outcome


def _ours(row: PublishedRow) -> str:
    if row.ours is not None:
        return _number(row.ours, row.unit)
    return ", ".join(sorted({one.replace("_", " ") for one in row.outcomes})) or "–"
