"""Makes ordinary runs of the points that are to be emulated, one at a time per free worker.

A run of an experiment is made only when a worker is free and no run waits. So the run that somebody asks for
waits at most for the one that goes on, never for the rest of an experiment.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction

from engine.domain.errors import EdgeLoomError
from engine.domain.spec import RunSpec
from engine.domain.stored import read_report
from engine.experiments.results.cells import place_text
from engine.experiments.results.rows import failure, result_of
from engine.experiments.results.validity import told
from engine.experiments.results.versions import calibration_of
from webapp.base import budgets
from webapp.base.database import any_of
from webapp.base.redis import REDIS_ERRORS, why_away
from webapp.experiments import computations, executions
from webapp.experiments.computations import about_of
from webapp.experiments.models import OPEN, Cell, Computation, Execution
from webapp.jobs import release, workers
from webapp.runs import services as runs
from webapp.runs import waiting
from webapp.runs.models import EMULATED, OVER, Run
from webapp.runs.predictions import Planned
from webapp.runs.requests import request_of

logger = logging.getLogger(__name__)
any_open = any_of(lambda: Computation.objects.filter(state__in=OPEN, world="emulated"))


def look_after(worker: workers.Identity, slots: int) -> None:
    """What an emulating worker does at every beat. Raises Redis' errors."""
    if not any_open.exists():
        return
    collect()
    busy = Run.objects.filter(status__in=EMULATED, worker=str(worker)).count()
    for _ in range(slots - busy):
        feed(worker)


def feed(worker: workers.Identity) -> Run | None:
    """Make and queue the run of the next point, unless a run waits already that some worker can do, or this
    worker is not to work any more. Raises Redis' errors.
    """
    if waiting.is_anything_possible(waiting.fleet()):
        return None
    if release.reason_to_rest(worker.place, release.code_version()):
        return None
    for computation_id in computations.next_waiting(("emulated",), 1):
        run = start(computation_id, worker)
        if run is not None:
            runs.queue(run.pk)
        return run
    return None


def start(computation_id: int, worker: workers.Identity) -> Run | None:
    """The run of this computation; None if another process was first, or if it cannot be planned.

    `worker` holds the computation while it plans, outside of a transaction since that may take seconds.
    """
    computation = computations.take_one(computation_id, worker)
    if computation is None:
        return None
    try:
        spec = computations.spec_of(computation)
        budgets.check_emulation(spec)
        planned = runs.planned(spec)
    except EdgeLoomError as error:
        result = failure(error, **about_of(computation, computation.code_version))
        computations.keep(computation, result, wall_s=0.0)
        return None
    with transaction.atomic():
        run = store_run(computation, spec, planned)
        if not computations.become(computation, run):
            transaction.set_rollback(True)  # planning took so long that it was given to another worker
            return None
    return run


def store_run(computation: Computation, spec: RunSpec, planned: Planned) -> Run:
    """A run as a person would have asked for it, tagged with its experiments."""
    wanting = Execution.objects.filter(cells__computation=computation).distinct().select_related("experiment")
    names = [str(execution.experiment) for execution in wanting if execution.experiment]
    first = Cell.objects.filter(computation=computation).select_related("execution__owner").first()
    tags = [name[: budgets.MAX_TAG_CHARS] for name in dict.fromkeys(names)][: budgets.MAX_TAGS]
    label = place_text(executions.value_of(first.execution), first.coordinates) if first else ""
    request = request_of(spec, label[:100], tuple(tags))
    return runs.store(request, spec, planned, first.execution.owner if first else None)


# After the run ------------------------------------------------------------------------------------
def collect() -> int:
    """Take the results of all runs that are over; returns how many. Any process may do it, at any time."""
    running = Computation.objects.filter(state="running", world="emulated")
    done = 0
    for computation in running.filter(run__status__in=OVER).select_related("run"):
        done += collect_one(computation)
    for computation in running.filter(run__isnull=True, lease_until__isnull=True):
        done += computations.fail(computation, "Its run was deleted before it had ended: retry it.")
    return done


def collect_one(computation: Computation, stopped: bool = False) -> bool:
    """Take the result of one emulated point. `stopped`: its worker ended, so that the point waits for another
    one.
    """
    run = computation.run
    assert run is not None
    if stopped and run.status == "cancelled":
        return computations.give_back(computation, run.error)
    if run.status == "cancelled":
        return computations.fail(computation, run.error or "Its run was cancelled.")
    if run.report is None:
        return computations.give_back(computation, run.error)
    stored = read_report(run.report, f"The report of {run}")
    if stored.value is None:
        return computations.fail(computation, stored.problem)
    if stored.value.outcome.kind == "failed":
        return computations.fail(computation, stored.value.outcome.sentence)
    about = about_of(computation, computation.code_version)
    spec = computations.spec_of(computation)
    about["calibration"] = calibration_of(spec, stored.value.spec.profile)
    result = result_of(stored.value, run=str(run.pk), **about)
    wall_s = (run.finished_at - run.started_at).total_seconds() if run.finished_at and run.started_at else 0.0
    return computations.keep(computation, told(result, spec), wall_s, dilation=stored.value.dilation)


def on_run_over(sender: Any, run_id: int, stopped: bool, **more: Any) -> None:
    """Take the result of an emulated point at once."""
    computation = Computation.objects.filter(run_id=run_id, state="running").select_related("run").first()
    if computation is not None:
        collect_one(computation, stopped)


def on_turn_over(sender: Any, worker: workers.Identity, **more: Any) -> None:
    """Start the next emulated point at once, so that it need not wait for a beat."""
    try:
        feed(worker)
    except REDIS_ERRORS as error:
        logger.info("Redis %s: the next point is queued at a later beat", why_away(error))


def on_beat(sender: Any, queue: str, worker: workers.Identity, slots: int, **more: Any) -> None:
    if queue == "emulate":
        look_after(worker, slots)


runs.run_over.connect(on_run_over)
runs.turn_over.connect(on_turn_over)
workers.beat.connect(on_beat)
