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
        at, baseline = (_of_factors(experiment, one) for one in (value.coordinates, value.relative_to))
        wanted.append(at)
        if baseline:
            wanted += [{**point.coordinates, **baseline} for point in points if _is_at(point, at)]
    return tuple(point for point in points if any(_is_at(point, at) for at in wanted))


def _of_factors(experiment: Experiment, coordinates: Mapping[str, Coordinate]) -> Coordinates:
    return named(experiment, {name: value for name, value in coordinates.items() if name != "world"})


def _is_at(point: Point, at: Coordinates) -> bool:
    return all(same_coordinate(point.coordinates[name], value) for name, value in at.items())
