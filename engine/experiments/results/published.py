"""Published values beside ours."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from engine.domain.experiment import Experiment
from engine.domain.presented import Published
from engine.domain.quantity import Coordinates
from engine.domain.values import Value
from engine.domain.world import World
from engine.experiments.results.cells import Cell, cells, chosen
from engine.experiments.results.rows import Row
from engine.experiments.results.units import in_unit, unit_of_quantity


class PublishedRow(Value):
    """A published value and ours, in one world and in the metric's own unit.

    A value has `published`, a range `published_low` and `published_high`. `ours` is the mean over the cells
    at its coordinates, `ours_low` and `ours_high` the least and the largest of them. `deviation` is ours /
    published - 1 (for a range: from the nearer end, 0 inside; of both ends of ours the farther). None where
    either is missing. `agrees` says of an outcome whether ours is the same in every run.
    """

    id: str
    where: str
    metric: str
    unit: str
    coordinates: Coordinates
    world: World
    bound: str
    published: float | None = None
    published_low: float | None = None
    published_high: float | None = None
    published_outcome: str = ""
    ours: float | None = None
    ours_low: float | None = None
    ours_high: float | None = None
    outcomes: tuple[str, ...] = ()
    deviation: float | None = None
    agrees: bool | None = None
    problem: str = ""
    note: str = ""


def compare_published(experiment: Experiment, rows: Sequence[Row]) -> tuple[PublishedRow, ...]:
    """A row per published value and world that has results."""
    worlds = [world for world in experiment.worlds if any(row.world == world for row in rows)]
    found = []
    for world in worlds or experiment.worlds[:1]:
        of_world = [row for row in rows if row.world == world]
        known: dict[str, tuple[Cell, ...]] = {}
        for value in experiment.published:
            key = f"{value.metric} {value.relation} {sorted(value.relative_to.items())}"
            if key not in known:
                known[key] = cells(experiment, of_world, value)
            found.append(_row(experiment, value, known[key], world))
    return tuple(found)


def value_in_metric_unit(value: Published) -> tuple[float | None, float | None, float | None]:
    """A published value as (value, low, high) in the unit of its quantity. Raises `SpecError` for a unit of
    another kind.
    """
    unit = unit_of_quantity(value)
    return (
        None if value.value is None else in_unit(value.value, value.unit, unit),
        None if value.low is None else in_unit(value.low, value.unit, unit),
        None if value.high is None else in_unit(value.high, value.unit, unit),
    )


def _row(experiment: Experiment, value: Published, found: Sequence[Cell], world: World) -> PublishedRow:
    matching = chosen(experiment, found, dict(value.coordinates))
    means = [cell.mean for cell in matching if cell.mean is not None]
    outcomes = tuple(outcome for cell in matching for outcome in cell.outcomes)
    published, low, high = value_in_metric_unit(value)
    ours = (min(means), max(means)) if means else None
    problem = "" if means or value.outcome else matching[0].problem if matching else "There is no such point."
    return PublishedRow(
        id=value.id,
        where=value.where,
        metric=value.metric,
        unit=unit_of_quantity(value),
        coordinates=value.coordinates,
        world=world,
        bound=value.bound,
        published=published,
        published_low=low,
        published_high=high,
        published_outcome=value.outcome,
        ours=statistics.fmean(means) if means else None,
        ours_low=ours[0] if ours else None,
        ours_high=ours[1] if ours else None,
        outcomes=outcomes,
        deviation=_deviation(means, published, low, high, value.bound),
        agrees=all(one == value.outcome for one in outcomes) if value.outcome and outcomes else None,
        problem=problem,
        note=value.note,
    )


def _deviation(
    means: Sequence[float], published: float | None, low: float | None, high: float | None, bound: str
) -> float | None:
    """How far ours is from published, as a fraction of it; 0 inside a range or on the right side of a
    bound.
    """
    if not means:
        return None
    if published is not None:
        low, high = published, published
        if bound == "at_most":
            low = min(*means, published)
        if bound == "at_least":
            high = max(*means, published)
        if bound in ("equal", "about"):
            return None if published == 0 else statistics.fmean(means) / published - 1
    if low is None or high is None:
        return None
    offsets = [
        (value - high) / abs(high)
        if value > high and high
        else (value - low) / abs(low)
        if value < low and low
        else 0.0
        for value in means
    ]
    return max(offsets, key=abs)
