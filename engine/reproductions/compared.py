"""The points of an experiment that its published values are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.domain.experiment import Experiment
from engine.domain.factor import same_coordinate
from engine.domain.quantity import Coordinate, Coordinates
from engine.experiments.design.expand import Point
from engine.experiments.results.cells import named


def compared_points(experiment: Experiment, points: Sequence[Point]) -> tuple[Point, ...]:
    """The points at the coordinates of a published value, and those at its baseline; in their order."""
    wanted: list[Coordinates] = []
    for value in experiment.published:
        wanted.append(value.coordinates)
        if value.relative_to:
            at = [point for point in points if is_at(experiment, point, value.coordinates)]
            wanted += [{**point.coordinates, **value.relative_to} for point in at]
    return tuple(point for point in points if any(is_at(experiment, point, at) for at in wanted))


def is_at(
    experiment: Experiment, point: Point, at: Mapping[str, Coordinate | tuple[Coordinate, ...]]
) -> bool:
    """Whether a point is at one of the given values, or labels, of every factor that `at` names."""
    return all(
        any(
            same_coordinate(point.coordinates[name], named(experiment, {name: value})[name])
            for value in (values if isinstance(values, tuple) else (values,))
        )
        for name, values in at.items()
        if name != "world"
    )
