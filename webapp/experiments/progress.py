"""How far an execution is, and how long the rest will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple, cast

from ninja import Schema
from pydantic import Field

from engine.domain.spec import RunSpec
from engine.domain.world import World
from webapp.base import budgets
from webapp.base.redis import REDIS_ERRORS
from webapp.experiments.models import OPEN, Cell, Execution
from webapp.experiments.points import BY_WORKERS, DONE, all_points, state_of
from webapp.jobs import workers
from webapp.jobs.announcement import Holder, announced, holder_of

BASE_S, STEP_S = 0.02, 30e-6
"""Wall seconds of a prediction: so many, and so many per step (`budgets.steps_of`). Measured on one core of a
desktop for models of 2 to 80 layers; used until an experiment has points of its own."""

DILATION, OVERHEAD_S = 4.0, 8.0
"""What an emulation is taken to cost before this installation has one: wall seconds per virtual second, and
for building the network, loading weights and comparing outputs.
"""

RECENT = 50


class WorldProgress(Schema):
    total: int
    done: int
    failed: int = Field(description="Points without a result: retry them.")
    running: int
    waiting: int
    lacking: dict[str, int] = Field(
        description="Methods from outside that no worker has, and how many of those that wait need each."
    )
    problem: int = Field(description="Points that cannot be run, with the reason.")
    invalid: int = Field(description="Points done whose times do not count as valid.")
    missed: int = Field(description="Points done that had ended before a change of their scenario.")
    held_by: Holder | None = Field(description="Another program on the machine, for whose end points wait.")
    left_s: float | None = Field(
        description="Wall seconds; None where nothing is known yet, no worker can do all that waits, or the "
        "machine is another program's."
    )


class Pace(NamedTuple):
    """How long emulations take here: wall seconds per virtual second, and wall seconds besides."""

    dilation: float = DILATION
    overhead_s: float = OVERHEAD_S

    def of(self, cell: Cell, cells: Iterable[Cell]) -> Pace:
        """The pace of a cell: with the dilation of the emulated one of `cells` that has most coordinates in
        common with `cell`, since it depends on the method and the devices. The present one, if none of them
        is emulated yet.
        """
        found, dilation = -1, self.dilation
        for other in cells:
            common = len(cell.coordinates.items() & other.coordinates.items())
            if other.run and other.run.dilation and common > found:
                found, dilation = common, other.run.dilation
        return self._replace(dilation=dilation)

    def wall_s(self, virtual_s: float) -> float:
        return self.overhead_s + self.dilation * virtual_s


def progress(execution: Execution) -> dict[World, WorldProgress]:
    """World → how far the execution is there."""
    found: dict[World, list[Cell]] = {}
    cells = execution.cells.select_related("run").only(
        *("index", "world", "digest", "problem", "coordinates"),
        *("run__status", "run__method", "run__wall_s", "run__dilation"),
    )
    for cell in cells:
        found.setdefault(cast(World, cell.world), []).append(cell)
    invalid = counted(execution, valid=0)
    missed = counted(execution, changes_missed__gt=0)
    return {
        world: of_world(execution, world, cells, invalid=invalid[world], missed=missed[world])
        for world, cells in found.items()
    }


def counted(execution: Execution, **metrics: int) -> Counter[str]:
    """Points that are done and whose result has such metrics, by world."""
    asked = {f"run__result__metrics__{name}": value for name, value in metrics.items()}
    done = execution.cells.filter(DONE, **asked).order_by()
    return Counter(done.values_list("world", flat=True))


def of_world(execution: Execution, world: str, cells: Sequence[Cell], **marked: int) -> WorldProgress:
    done = set(execution.cells.filter(DONE, world=world).values_list("pk", flat=True))
    states = [state_of(cell.run.status, cell.pk in done) if cell.run else "problem" for cell in cells]
    left = [cell for cell in cells if cell.run and cell.run.status in OPEN]
    known = [cell.run.wall_s for cell in cells if cell.run and cell.run.wall_s]
    queue = "emulate" if world in BY_WORKERS else "points"
    at_once = max(1, slots(queue))
    waiting = (cell.run for cell in left if cell.run and cell.run.status == "waiting")
    lacking = without_worker(queue, (one.method for one in waiting))
    holder = held_by() if left and world in BY_WORKERS else None
    if not left:
        left_s: float | None = 0.0
    elif lacking or holder is not None:
        left_s = None
    elif world in BY_WORKERS:
        pace = pace_here() if world == "emulated" else Pace(dilation=1.0)
        virtual = predicted_totals(execution)
        seconds = (pace.of(cell, cells).wall_s(virtual.get(cell.index, 0.0)) for cell in left)
        left_s = sum(seconds) / at_once
    else:
        left_s = len(left) * sum(known) / len(known) / at_once if known else None
    counts = {state: states.count(state) for state in STATES}
    return WorldProgress(total=len(cells), left_s=left_s, lacking=lacking, held_by=holder, **counts, **marked)


STATES = ("done", "failed", "running", "waiting", "problem")


def slots(queue: str) -> int:
    """How many tasks the workers of a queue take at once; 0 without Redis."""
    try:
        return workers.slots(queue)
    except REDIS_ERRORS:
        return 0


def held_by() -> Holder | None:
    """Who keeps the emulating workers waiting; None without Redis."""
    try:
        return holder_of(announced("emulate"))
    except REDIS_ERRORS:
        return None


def without_worker(queue: str, methods: Iterable[str]) -> Counter[str]:
    """Those of the methods that points need, of this queue, which no worker has; none without Redis."""
    needed = Counter(filter(None, methods))
    if not needed:
        return needed
    try:
        present = {method for one in announced(queue) if not one.refused for method in one.methods}
    except REDIS_ERRORS:
        return Counter()
    return Counter({method: count for method, count in needed.items() if method not in present})


def predicted_totals(execution: Execution) -> dict[int, float]:
    """Index of a point → its predicted virtual seconds, where they are known."""
    done = execution.cells.filter(DONE, world="predicted", run__result__metrics__latency_s__isnull=False)
    return dict(done.values_list("index", "run__result__metrics__latency_s"))


def pace_here() -> Pace:
    """The pace of emulations on this installation, from the last ones of experiments."""
    recent = all_points().filter(world="emulated", dilation__isnull=False)
    rows = [
        (row.dilation, row.wall_s, float((row.result or {}).get("metrics", {}).get("latency_s", 0.0)))
        for row in recent.order_by("-changed_at").only("dilation", "wall_s", "result")[:RECENT]
        if row.dilation is not None and row.wall_s is not None
    ]
    if not rows:
        return Pace()
    overheads = [max(0.0, wall_s - dilation * virtual_s) for dilation, wall_s, virtual_s in rows]
    return Pace(median(dilation for dilation, _, _ in rows), median(overheads))


def guessed_s(spec: RunSpec) -> float:
    """Wall seconds of predicting this spec on one core, before any point was predicted."""
    return BASE_S + STEP_S * budgets.steps_of(spec.cluster, spec.model, spec.workload)
