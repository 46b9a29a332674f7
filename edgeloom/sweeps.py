"""A sweep: the same run at every point of a grid, or at points that a function gives, as one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import edgeloom.own_packages  # noqa: F401
from edgeloom.here import is_only_here, spec
from emulator.cli.main import ENVIRONMENT
from engine.cli.experiment_command import Campaign, carry_out_tasks, times_of_host
from engine.domain.errors import PlanError, SpecError
from engine.domain.experiment import Experiment
from engine.domain.extras import need
from engine.domain.spec import RunSpec, spec_digest
from engine.domain.world import World
from engine.experiments.design.expand import Point
from engine.experiments.execution.store import Store
from engine.experiments.results.frame import frame

if TYPE_CHECKING:
    import pandas

__all__ = ["sweep"]

Arguments = Mapping[str, Any]
Points = Arguments | Iterable[Arguments] | Callable[[], Iterable[Arguments]]


def sweep(
    points: Points,
    make: Callable[..., RunSpec] | None = None,
    world: World = "predicted",
    output: str | Path = "results",
    jobs: int | None = None,
) -> pandas.DataFrame:
    """Carry out a run at every point, predicted or emulated as `world` says, and give a table: a line for
    each, with its arguments, how it ended, and every figure in SI units.

    `points` is a grid, whose lists are tried in all combinations (all else is the same everywhere), or what
    gives the arguments of one run after the other: a list, a generator, a function without arguments. `make`
    makes a run of them: `edgeloom.spec`, or a function of yours that calls it and has arguments of its own.

    Results are kept in the folder `output` as soon as they are there: a sweep that was stopped goes on, and
    only what other code has computed is computed again. Predictions run in `jobs` processes (all cores), in
    this one if a method is of no file. Raises `EdgeLoomError`; a point that cannot be run is a line that says
    why.
    """
    need("pandas")
    given = points() if callable(points) else points
    every = tuple(
        _point(one, make or spec) for one in (_grid(given) if isinstance(given, Mapping) else given)
    )
    if not every:
        raise SpecError("sweep: no point is given: give each argument at least one value.")
    emulation = ENVIRONMENT.emulation() if ENVIRONMENT.emulation and world == "emulated" else None
    profile = times_of_host(every, ENVIRONMENT)
    campaign = Campaign(Experiment(name="sweep"), every, Store(Path(output)), (world,), emulation, profile)
    only_here = any(is_only_here(point.spec) for point in every if point.spec is not None)
    tasks = campaign.tasks(repeat_stale=True)
    total = len({point.digest for point in every if point.digest})
    carry_out_tasks(campaign, tasks, total, 1 if only_here else jobs or os.cpu_count() or 1)
    return frame(campaign.rows())


def _grid(arguments: Arguments) -> Iterator[dict[str, Any]]:
    """Every combination of the lists' values; the last one changes fastest."""
    axes = [_values(value) for value in arguments.values()]
    for values in product(*axes):
        yield dict(zip(arguments, values, strict=True))


def _values(given: Any) -> list[Any]:
    """The values of an axis: a list, a range, or a column of numpy or pandas."""
    if hasattr(given, "tolist"):
        return list(given.tolist())
    return list(given) if isinstance(given, list | tuple | range) else [given]


def _point(arguments: Arguments, make: Callable[..., RunSpec]) -> Point:
    coordinates = {name: value for key, one in arguments.items() for name, value in _shown(key, one).items()}
    try:
        made = make(**arguments)
    except (SpecError, PlanError) as error:
        return Point(coordinates, 0, None, str(error))
    return Point(coordinates, made.seed, made, "", spec_digest(made))


def _shown(key: str, value: Any) -> dict[str, Any]:
    """An argument in a table: clusters, models and methods by their names, parameters one by one."""
    if isinstance(value, Mapping):
        parts = (_shown(f"{key}.{name}", one) for name, one in value.items())
        return {name: one for part in parts for name, one in part.items()}
    if isinstance(value, bool | int | float | str):
        return {key: value}
    return {key: str(getattr(value, "name", value))}
