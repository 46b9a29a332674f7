"""The best level of a factor at every place, and what cannot be told apart from it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.experiment import Experiment
from engine.domain.quantity import Coordinate, Coordinates, Quantity
from engine.domain.values import Value
from engine.experiments.results.cells import Cell, cells, is_same, label_of, overlap, place_of
from engine.experiments.results.rows import Row
from engine.experiments.results.units import better_of


class Best(Value):
    """The best level of factor `of` at `coordinates` (those of the other factors, and the world).

    `winners` starts with the best, whose coordinate is `level`; the others are those whose 95 % intervals
    overlap with its own, so that `distinguishable` is False where there are any. `same` are the others that
    are the same computation as the best, on the device `alone` if that is one. `next` is the best of the
    rest, if there is one. `told` says who is best: nobody, where all that has a value is one computation.
    """

    coordinates: Coordinates
    of: str
    level: Coordinate
    winners: tuple[str, ...]
    distinguishable: bool
    mean: float
    low: float
    high: float
    same: tuple[str, ...] = ()
    alone: str = ""
    next: str = ""
    next_mean: float | None = None
    told: str = ""


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
    same = [cell for cell in ranked[1:] if is_same(first, cell)]
    others = [cell for cell in ranked[1:] if cell not in same]
    alike = [cell for cell in others if overlap(first, cell)]
    rest = [cell for cell in others if not overlap(first, cell)]
    low, high = first.bounds
    assert first.mean is not None

    def labels(group: Sequence[Cell]) -> tuple[str, ...]:
        return tuple(label_of(experiment, of, cell.coordinates[of]) for cell in group)

    return Best(
        coordinates=place,
        of=of,
        level=first.coordinates[of],
        winners=labels([first, *alike]),
        distinguishable=not alike,
        mean=first.mean,
        low=low,
        high=high,
        same=labels(same),
        alone=first.alone,
        next="".join(labels(rest[:1])),
        next_mean=rest[0].mean if rest else None,
        told=_told(labels([first])[0], labels(same), labels(alike), bool(rest), first.alone),
    )


def _told(first: str, same: Sequence[str], alike: Sequence[str], has_next: bool, alone: str) -> str:
    if same and not alike and not has_next:
        names = f"{', '.join((first, *same[:-1]))} and {same[-1]}"
        return f"{names} are one plan" + (f", on {alone} alone" if alone else "")
    told = f"{first} (the same plan: {', '.join(same)})" if same else first
    return told + (f" (not distinguishable from {', '.join(alike)})" if alike else "")
