"""The best level of a factor at every place, and what cannot be told apart from it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.experiment import Experiment
from engine.domain.quantity import Coordinate, Coordinates, Quantity
from engine.domain.values import Value
from engine.experiments.results.cells import Cell, cells, label_of, overlap, place_of
from engine.experiments.results.rows import Row
from engine.experiments.results.units import better_of


class Best(Value):
    """The best level of factor `of` at `coordinates` (those of the other factors, and the world).

    `winners` starts with the best, whose coordinate is `level`; the others are those whose 95 % intervals
    overlap with its own, so that `distinguishable` is False where there are any. `next` is the best of the
    rest, if there is one.
    """

    coordinates: Coordinates
    of: str
    level: Coordinate
    winners: tuple[str, ...]
    distinguishable: bool
    mean: float
    low: float
    high: float
    next: str = ""
    next_mean: float | None = None


def best(
    experiment: Experiment,
    rows: Sequence[Row],
    quantity: Quantity,
    of: str,
    where: Sequence[str] = (),
    worlds: Sequence[str] = (),
) -> tuple[Best, ...]:
    """One entry per place with at least one value; none for a metric of which neither more nor less is
    better.
    """
    better = better_of(quantity)
    if better is None:
        return ()
    found = []
    for place, group in groups(cells(experiment, rows, quantity, where, worlds), of):
        ranked = ranking(group, better == "higher")
        if ranked:
            found.append(_best(experiment, place, of, ranked))
    return tuple(found)


def groups(found: Sequence[Cell], of: str) -> list[tuple[Coordinates, list[Cell]]]:
    """Cells that differ in coordinate `of` only, with the coordinates that they share."""
    by_place: dict[object, tuple[Coordinates, list[Cell]]] = {}
    for cell in found:
        rest: dict[str, Coordinate] = {name: at for name, at in cell.coordinates.items() if name != of}
        by_place.setdefault(place_of(rest), (rest, []))[1].append(cell)
    return list(by_place.values())


def ranking(group: Sequence[Cell], highest_first: bool) -> list[Cell]:
    """The cells that have a value, the best first."""
    valued = [(cell.mean, cell) for cell in group if cell.mean is not None]
    return [cell for _, cell in sorted(valued, key=lambda pair: pair[0], reverse=highest_first)]


def _best(experiment: Experiment, place: Coordinates, of: str, ranked: Sequence[Cell]) -> Best:
    first = ranked[0]
    alike = [cell for cell in ranked[1:] if overlap(first, cell)]
    rest = [cell for cell in ranked[1:] if not overlap(first, cell)]
    low, high = first.bounds
    assert first.mean is not None
    return Best(
        coordinates=place,
        of=of,
        level=first.coordinates[of],
        winners=tuple(label_of(experiment, of, cell.coordinates[of]) for cell in (first, *alike)),
        distinguishable=not alike,
        mean=first.mean,
        low=low,
        high=high,
        next=label_of(experiment, of, rest[0].coordinates[of]) if rest else "",
        next_mean=rest[0].mean if rest else None,
    )
