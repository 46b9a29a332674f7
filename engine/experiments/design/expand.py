"""Expands an experiment into its points, and checks it before."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from engine.domain.errors import PlanError, SpecError
from engine.domain.experiment import Experiment
from engine.domain.factor import Factor, Level
from engine.domain.quantity import Coordinates
from engine.domain.spec import RunSpec, spec_digest
from engine.experiments.design.assemble import Assembler, Setting, other_times
from engine.experiments.design.conditions import check_condition, holds
from engine.experiments.design.paths import check_path, unit_of
from engine.experiments.design.sources import Sources
from engine.strategies.registry import strategy


class Point(NamedTuple):
    """One run of an experiment. `problem` says why there is none, and `spec` is None then.

    `coordinates` has the value of every factor, in their order; `digest` is the spec's (`spec_digest`), and
    "" for a point with a problem.
    """

    coordinates: Coordinates
    seed: int
    spec: RunSpec | None
    problem: str = ""
    digest: str = ""


def expand(experiment: Experiment, sources: Sources) -> tuple[Point, ...]:
    """The points in order: the last factor changes fastest, seeds fastest of all.

    Raises `SpecError` where `check` does, if no point is left, and if every point has a problem.
    """
    check(experiment)
    assembler = Assembler(experiment.base, sources)
    points = []
    for coordinates, levels in cells_of(experiment):
        settings = settings_of(experiment, levels)
        points += [_point(assembler, coordinates, settings, seed) for seed in experiment.seeds]
    if not points:
        raise SpecError(f"{experiment.name}: no point meets every condition in where: change one of them.")
    if all(point.spec is None for point in points):
        raise SpecError(f"{experiment.name}: no point can be run: {points[0].problem}")
    _check_likely_acceptance(experiment, [point.spec for point in points if point.spec is not None])
    return tuple(points)


def cells_of(experiment: Experiment) -> Iterator[tuple[Coordinates, tuple[Level, ...]]]:
    """Coordinates and levels of every cell, each once: the grid under `where`, then the explicit points."""
    seen = set()
    for levels in itertools.chain(_grid(experiment) if experiment.grid else (), _explicit(experiment)):
        coordinates = _coordinates(experiment.factors, levels)
        key = tuple((isinstance(value, bool), value) for value in coordinates.values())
        if key not in seen:
            seen.add(key)
            yield coordinates, levels


def settings_of(experiment: Experiment, levels: Iterable[Level]) -> list[Setting]:
    """What the levels, one per factor, put where."""
    settings: list[Setting] = []
    for factor, level in zip(experiment.factors, levels, strict=True):
        settings += ({path: level.value for path in factor.paths} | level.set).items()
    return settings


def _grid(experiment: Experiment) -> Iterator[tuple[Level, ...]]:
    groups = experiment.groups
    for indices in itertools.product(*(range(len(group[0].values)) for group in groups)):
        chosen = {
            factor.name: factor.values[index]
            for group, index in zip(groups, indices, strict=True)
            for factor in group
        }
        levels = tuple(chosen[factor.name] for factor in experiment.factors)
        coordinates = _coordinates(experiment.factors, levels)
        if all(holds(condition, coordinates) for condition in experiment.where):
            yield levels


def _explicit(experiment: Experiment) -> Iterator[tuple[Level, ...]]:
    """A value that is no level of its factor is one more, for the factor's paths."""
    for point in experiment.points:
        yield tuple(
            factor.level(point[factor.name]) or Level(value=point[factor.name])
            for factor in experiment.factors
        )


def _coordinates(factors: Iterable[Factor], levels: Iterable[Level]) -> Coordinates:
    return {factor.name: level.coordinate for factor, level in zip(factors, levels, strict=True)}


def _point(assembler: Assembler, coordinates: Coordinates, settings: list[Setting], seed: int) -> Point:
    try:
        spec = assembler.spec(settings, seed)
    except (SpecError, PlanError) as error:
        return Point(coordinates, seed, None, str(error))
    if spec.workload.is_open:
        sentence = "workload.pattern: is serve, and nobody sends requests to a point: choose another pattern."
        return Point(coordinates, seed, None, sentence)
    return Point(coordinates, seed, spec, "", spec_digest(spec))


# Checking -----------------------------------------------------------------------------------------
def check(experiment: Experiment) -> None:
    """Check an experiment before it is expanded; raises `SpecError`.

    Refused are a path that no run has, two factors that set one path, a unit that is not that of the path, a
    condition that cannot be read, and an explicit point outside a factor without paths.
    """
    for index, factor in enumerate(experiment.factors):
        try:
            _check_factor(factor)
        except SpecError as error:
            place = f"factors[{index}]"
            raise SpecError(
                f"{experiment.name}, factor {factor.name}: {error}", [(place, str(error))]
            ) from error
    _check_set_once(experiment)
    names = [factor.name for factor in experiment.factors]
    for index, condition in enumerate(experiment.where):
        try:
            check_condition(condition, names)
        except SpecError as error:
            raise SpecError(f"{experiment.name}, {error}", [(f"where[{index}]", str(error))]) from error
    for index, point in enumerate(experiment.points):
        for factor in experiment.factors:
            if factor.level(point[factor.name]) is None and not factor.paths:
                known = ", ".join(str(level.coordinate) for level in factor.values)
                sentence = (
                    f"points[{index}]: {factor.name} has no value {point[factor.name]!r}: it has {known}."
                )
                raise SpecError(f"{experiment.name}, {sentence}", [(f"points[{index}]", sentence)])


def _check_likely_acceptance(experiment: Experiment, specs: Iterable[RunSpec]) -> None:
    """Refuse a likely acceptance where nothing drafts: no method from outside, and no point with a draft
    model or a method that drafts.
    """
    name = "likely_acceptance"
    if name not in experiment.base and not any(name in paths_of(factor) for factor in experiment.factors):
        return
    if not any(spec.model.draft or spec.method or strategy(spec.strategy).drafts for spec in specs):
        sentence = (
            f"{name} is given, and no point drafts tokens: give a draft_model, or choose a method that "
            "drafts (speculative)."
        )
        raise SpecError(f"{experiment.name}, {sentence}", [(f"base.{name}", sentence)])


def paths_of(factor: Factor) -> tuple[str, ...]:
    """Every path that a factor sets, each once."""
    inner = (path for level in factor.values for path in level.set)
    return tuple(dict.fromkeys((*factor.paths, *inner)))


def _check_factor(factor: Factor) -> None:
    for path in paths_of(factor):
        check_path(path)
    for path in factor.paths:
        unit = unit_of(path)
        if factor.unit and unit is not None and unit != factor.unit:
            raise SpecError(f"its unit is {factor.unit}, and {path} is {_in_unit(unit)}.")
        for index, level in enumerate(factor.values):
            if unit and isinstance(level.value, str | bool):
                shown = json.dumps(level.value)[:40]
                raise SpecError(f"values[{index}] is {shown}, and {path} takes numbers in {unit}.")


def _in_unit(unit: str) -> str:
    return f"in {unit}: write its values in {unit}" if unit else "a name or a number without a unit"


def _check_set_once(experiment: Experiment) -> None:
    setter: dict[str, str] = {}
    for factor in experiment.factors:
        for path in paths_of(factor):
            for same in (path, *other_times(path)):
                other = setter.setdefault(same, factor.name)
                if other != factor.name:
                    sentence = (
                        f"the factors {other} and {factor.name} both set {path}: let one of them do it."
                    )
                    raise SpecError(f"{experiment.name}: {sentence}", [("factors", sentence)])
