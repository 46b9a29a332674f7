"""The accuracy matrix: every run predicted before it is emulated, and how far the prediction is off.

The matrix is an experiment, `accuracy_matrix.toml`. Its results are kept in a folder and shared with
`./loom experiment`, so it grows with every call: each carries out what is missing for ten minutes, in the
order of the points' hashes, which has nothing to do with what is hard. The table is of all points so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from emulator.bench.rows import Table
from emulator.session.points import emulation
from engine.cli.command import Environment
from engine.cli.experiment_command import sources_of
from engine.domain.units import human
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.files import load_file
from engine.experiments.execution.campaign import Task, tasks_of
from engine.experiments.execution.point import Emulation, carry_out
from engine.experiments.execution.store import Store
from engine.experiments.results.rows import Result
from engine.experiments.results.versions import Versions
from engine.reports.against_model import percentile_95

EXPERIMENT = Path(__file__).with_name("accuracy_matrix.toml")
RESULTS = Path("results")
BUDGET_S = 600.0
TIMES = ("total_s", "first_token_s", "per_token_s")


class Compared(NamedTuple):
    """One run, emulated and predicted. `errors`: predicted / emulated - 1, by metric, where it has one."""

    coordinates: Mapping[str, object]
    errors: Mapping[str, float]
    same_bytes: bool
    is_valid: bool


def measure_accuracy_matrix(environment: Environment) -> Table:
    experiment, store = load_file(EXPERIMENT), Store(RESULTS)
    points = expand(experiment, sources_of(environment))
    known = store.read(point.digest for point in points)
    carry_out_for(BUDGET_S, tasks_of(points, experiment.worlds, known, Versions()), store.add, emulation())
    results = store.read(point.digest for point in points)
    return table_of(points, results)


def carry_out_for(
    budget_s: float,
    tasks: Sequence[Task],
    keep: Callable[[Result], None],
    emulated: Emulation,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Carry out `tasks` until `budget_s` is over: of each run the prediction, then, if it finishes, the
    emulation.
    """
    until_s, without_plan = clock() + budget_s, set()
    for task in sorted(tasks, key=lambda task: (task.digest, task.world == "emulated")):
        if clock() > until_s:
            return
        if task.digest in without_plan:
            continue
        result = carry_out(*task, emulated)
        keep(result)
        if task.world == "simulated" and result.outcome != "finished":
            without_plan.add(task.digest)


def compared(points: Sequence[Point], results: Mapping[tuple[str, str], Result]) -> Iterator[Compared]:
    """The points that have finished in both worlds."""
    for point in points:
        predicted = results.get((point.digest, "simulated"))
        emulated = results.get((point.digest, "emulated"))
        if predicted is None or emulated is None:
            continue
        if predicted.outcome != "finished" or emulated.outcome != "finished":
            continue
        errors = {
            name: predicted.metrics[name] / emulated.metrics[name] - 1
            for name in TIMES
            if emulated.metrics.get(name)
        }
        same_bytes = predicted.metrics["bytes"] == emulated.metrics["bytes"]
        yield Compared(point.coordinates, errors, same_bytes, emulated.metrics.get("valid") == 1.0)


def table_of(points: Sequence[Point], results: Mapping[tuple[str, str], Result]) -> Table:
    """Errors of all runs, then of the runs of every level of every factor."""
    found = list(compared(points, results))
    valid = [one for one in found if one.is_valid]
    unplanned = {
        digest for (digest, world), result in results.items() if world == "simulated" and _is_refused(result)
    }
    rows = [_row("all", found), _row("all that are valid", valid)]
    for name in points[0].coordinates:
        levels = dict.fromkeys(point.coordinates[name] for point in points)
        rows += [
            _row(f"{name}: {_named(level)}", [one for one in valid if one.coordinates[name] == level])
            for level in levels
        ]
    title = (
        f"{len(found)} of {len({point.digest for point in points})} runs so far, drawn by their hashes; "
        f"{len(unplanned)} more have no plan. Predicted / emulated - 1: median and 95 % of the amounts, and "
        "the worst. Rows but the first are of valid runs: those whose operations this machine could pace."
    )
    times = ("latency", "95 %", "worst", "first token", "worst", "per token", "worst")
    return Table(title, ("runs", "number", *times, "bytes"), tuple(rows))


def _named(level: object) -> str:
    return human(level, "bit/s") if isinstance(level, float) else str(level)


def _is_refused(result: Result) -> bool:
    return result.outcome != "finished"


def _row(name: str, runs: Sequence[Compared]) -> tuple[str, ...]:
    latency, first, token = ([one.errors[key] for one in runs if key in one.errors] for key in TIMES)
    same = sum(one.same_bytes for one in runs)
    return (
        name,
        str(len(runs)),
        _percent(latency, median),
        _percent(latency, percentile_95),
        _worst(latency),
        _percent(first, median),
        _worst(first),
        _percent(token, median),
        _worst(token),
        f"{same} equal" if runs else "",
    )


def _percent(errors: Sequence[float], of: Callable[[list[float]], float | None]) -> str:
    amount = of([abs(error) for error in errors]) if errors else None
    return "" if amount is None else f"{amount:.1%}"


def _worst(errors: Sequence[float]) -> str:
    return f"{max(errors, key=abs):+.1%}" if errors else ""
