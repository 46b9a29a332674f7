"""Levels of a factor that are one computation by several names, and changes that change nothing: what an
experiment compares less of than it seems to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from engine.domain.experiment import Experiment
from engine.domain.quantity import Quantity
from engine.domain.values import Value
from engine.experiments.results.cells import Cell, cells, is_same, label_of, place_of
from engine.experiments.results.rows import Row

NAMED = 6
"""Most levels that a sentence lists by name."""


class Same(Value):
    """Levels of factor `of` that are one computation at every place: `labels`, of which the first stands for
    all. `alone` is the one device that computes it, "" if several do.
    """

    of: str
    labels: tuple[str, ...]
    alone: str


class Note(Value):
    """What a reader must know before comparing. `one_plan`: all that is compared is one computation; `same`:
    some of it is; `unfelt`: a change that changes nothing.
    """

    kind: Literal["one_plan", "same", "unfelt"]
    sentence: str


def same_levels(experiment: Experiment, found: Sequence[Cell], of: str) -> tuple[Same, ...]:
    """The groups of levels of `of` that are one computation wherever they have a value; the first of a group
    has one wherever another has, so that it can stand for all. A level that is like no other is in none.
    """
    by_level: dict[str, dict[object, Cell]] = {}
    for cell in found:
        if cell.mean is not None and of in cell.coordinates:
            rest = {name: at for name, at in cell.coordinates.items() if name != of}
            label = label_of(experiment, of, cell.coordinates[of])
            by_level.setdefault(label, {})[place_of(rest)] = cell
    groups: list[list[str]] = []
    for label, mine in by_level.items():
        for group in groups:
            first = by_level[group[0]]
            if mine.keys() <= first.keys() and all(is_same(first[at], mine[at]) for at in mine):
                group.append(label)
                break
        else:
            groups.append([label])
    return tuple(
        Same(of=of, labels=tuple(group), alone=_alone(by_level[group[0]].values()))
        for group in groups
        if len(group) > 1
    )


def notes_of(experiment: Experiment, rows: Sequence[Row]) -> tuple[Note, ...]:
    """The levels that are one computation, of each factor with names, and the changes that nothing felt."""
    found = cells(experiment, rows, Quantity(metric="latency_s"))
    notes = []
    for factor in experiment.factors:
        if all(isinstance(level.coordinate, str) for level in factor.values) and len(factor.values) > 1:
            groups = same_levels(experiment, found, factor.name)
            valued = {
                label_of(experiment, factor.name, cell.coordinates[factor.name])
                for cell in found
                if cell.mean is not None
            }
            notes += [_note(group, is_all=len(group.labels) == len(valued)) for group in groups]
    return (*notes, *_unfelt(rows))


def _note(same: Same, is_all: bool) -> Note:
    shown = same.labels
    if len(shown) > NAMED:
        shown = (*shown[: NAMED - 1], f"{len(shown) - NAMED + 1} more")
    names = f"{', '.join(shown[:-1])} and {shown[-1]}"
    where = f"compute on {same.alone} alone" if same.alone else "come to one plan"
    if is_all:
        return Note(kind="one_plan", sentence=f"{names} {where}: this compares one plan with itself.")
    return Note(kind="same", sentence=f"{names} {where}, so they are one line and one result.")


def _unfelt(rows: Sequence[Row]) -> list[Note]:
    """Every sentence once, with how many of the rows it is said of where it is not all."""
    finished = [row for row in rows if row.finished]
    counts = Counter(row.unfelt for row in finished if row.unfelt)
    return [
        Note(
            kind="unfelt",
            sentence=text if count == len(finished) else f"{text[:-1]}, in {count} of {len(finished)} runs.",
        )
        for text, count in counts.most_common()
    ]


def _alone(found: Iterable[Cell]) -> str:
    names = {cell.alone for cell in found}
    return names.pop() if len(names) == 1 else ""
