"""The accuracy matrix: every run predicted before it is emulated, and how far the prediction is off.

The matrix is an experiment, `accuracy_matrix.toml`. Its results are kept in a folder and shared with
`./loom experiment`, so it grows with every call: each carries out what is missing for some minutes, in an
order of which every beginning is a fair sample. The table is of all points so far (`accuracy_table.py`).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import topologies
from bench.prediction.accuracy_table import Spread, table_of
from bench.tables.rows import Table
from emulator.session.points import emulation
from engine.domain.experiment import Experiment
from engine.domain.spec import RunSpec, spec_digest
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.files import load_file
from engine.experiments.design.sources import Sources
from engine.experiments.execution.campaign import Task, tasks_of
from engine.experiments.execution.point import Emulation, carry_out
from engine.experiments.execution.store import Store
from engine.experiments.results.rows import Result
from engine.experiments.results.versions import Versions
from engine.runs.predict import predict

EXPERIMENT = Path(__file__).with_name("accuracy_matrix.toml")
RESULTS = Path("results")
MINUTES = 10.0
LOSSY_SEEDS = (0, 1, 2)
SPREAD_SEEDS = 20
"""Predictions of a run that loses packets, each with another seed."""

PAIRED = "condition"
"""The factor whose levels are also counted together with those of each other factor: each of its levels but
one has few points, and its table is read by method.
"""


def measure_accuracy_matrix(minutes: float = MINUTES) -> Table:
    experiment, store = load_file(EXPERIMENT), Store(RESULTS)
    points = points_of(experiment, Sources(topologies.load, topologies.preset))
    known = store.read(point.digest for point in points)
    done = {digest for digest, world in known if world == "emulated"}
    tasks = in_order(points, tasks_of(points, experiment.worlds, known, Versions()), done)
    carry_out_for(minutes * 60, tasks, store.add, emulation())
    results = store.read(point.digest for point in points)
    return table_of(points, results, spreads_of(points, results))


def points_of(experiment: Experiment, sources: Sources) -> tuple[Point, ...]:
    """The points of the matrix: those that lose packets with several seeds."""
    points = expand(experiment.model_copy(update={"seeds": LOSSY_SEEDS}), sources)
    return tuple(point for point in points if point.seed == LOSSY_SEEDS[0] or _loses_packets(point))


def _loses_packets(point: Point) -> bool:
    changes = point.spec.scenario.changes if point.spec else ()
    return any(change.kind == "set_loss" for change in changes)


def in_order(points: Sequence[Point], tasks: Sequence[Task], done: Collection[str]) -> list[Task]:
    """`tasks` so that every beginning of them, with the runs that are `done`, is a fair sample: next comes
    the run whose levels, and pairs of levels with its condition, have had the least so far; of equal ones
    the first by its hash. Of each run the prediction comes before the emulation.
    """
    of_run: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: (task.digest, task.world == "emulated")):
        of_run.setdefault(task.digest, []).append(task)
    left = {point.digest: _strata(point) for point in points if point.digest in of_run}
    seen = Counter(stratum for point in points if point.digest in done for stratum in _strata(point))
    ordered: list[Task] = []
    while left:
        following = min(left, key=lambda digest: (sum(seen[one] for one in left[digest]), digest))
        seen.update(left.pop(following))
        ordered += of_run[following]
    return ordered


def _strata(point: Point) -> tuple[object, ...]:
    """The levels of a point, and their pairs with its condition."""
    levels = tuple(point.coordinates.items())
    return levels + tuple(pair for pair in combinations(levels, 2) if PAIRED in (pair[0][0], pair[1][0]))


def carry_out_for(
    budget_s: float,
    tasks: Sequence[Task],
    keep: Callable[[Result], None],
    emulated: Emulation,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Carry out `tasks` in order until `budget_s` is over; runs whose prediction does not finish are not
    emulated. Each result is kept at once, so that a call that is killed loses one run.
    """
    until_s, without_plan = clock() + budget_s, set()
    for number, task in enumerate(tasks):
        if clock() > until_s:
            return
        if task.digest in without_plan:
            continue
        result = carry_out(*task, emulated)
        keep(result)
        if task.world == "predicted" and result.outcome != "finished":
            without_plan.add(task.digest)
        if number % 20 == 0:
            sys.stderr.write(f"matrix: {number} of {len(tasks)} runs of both worlds done\n")


def spreads_of(
    points: Sequence[Point], results: Mapping[tuple[str, str], Result], seeds: int = SPREAD_SEEDS
) -> dict[str, Spread]:
    """Digest of an emulated point that loses packets → the predicted latencies with other seeds."""
    known: dict[str, Spread] = {}
    found = {}
    for point in points:
        emulated = results.get((point.digest, "emulated"))
        if point.spec is None or emulated is None or emulated.outcome != "finished":
            continue
        if _loses_packets(point):
            run = spec_digest(point.spec.model_copy(update={"seed": 0}))
            if run not in known:
                known[run] = Spread(tuple(_latencies_s(point.spec, seeds)))
            found[point.digest] = known[run]
    return found


def _latencies_s(spec: RunSpec, seeds: int) -> Iterator[float]:
    for seed in range(seeds):
        yield predict(spec.model_copy(update={"seed": seed})).latency_s
