"""Queues the points that are to be emulated, or run on boards, among the runs of people, one at a time per
free worker.

A point is planned and queued only when a worker is free and no run waits. So the run that somebody asks for
waits at most for the one that goes on, never for the rest of an experiment. A point on boards waits until all
of them are there and none is another run's.
"""

from __future__ import annotations

import logging
from typing import Any

from django.utils import timezone

from engine.domain.errors import EdgeLoomError
from engine.domain.spec import RunSpec
from engine.domain.stored import to_document
from engine.experiments.results.cells import place_text
from engine.experiments.results.rows import failure
from webapp.base import budgets
from webapp.base.database import any_of
from webapp.base.redis import REDIS_ERRORS, why_away
from webapp.clusters import nodes
from webapp.experiments import executions, points
from webapp.experiments.models import Cell, Execution
from webapp.jobs import lease, release, workers
from webapp.jobs.models import ACTIVE
from webapp.runs import attempts, waiting
from webapp.runs import services as runs
from webapp.runs.models import EMULATED, Run
from webapp.runs.predictions import Planned
from webapp.runs.requests import request_of

logger = logging.getLogger(__name__)
HOLDING = ("queued", *ACTIVE)
"""States of runs whose boards no point takes: people's go first, also those that wait."""

any_waiting = any_of(lambda: points.all_points().filter(status="waiting", world__in=points.BY_WORKERS))


def look_after(worker: workers.Identity, slots: int) -> None:
    """What an emulating worker does at every beat. Raises Redis' errors."""
    if not any_waiting.exists():
        return
    refuse_without_boards(worker)
    busy = Run.objects.filter(status__in=EMULATED, worker=str(worker)).count()
    for _ in range(slots - busy):
        feed(worker)


def feed(worker: workers.Identity) -> Run | None:
    """Plan and queue the next point, unless a run waits already that some worker can do, or this
    worker is not to work any more. Raises Redis' errors.
    """
    if waiting.is_anything_possible(waiting.fleet()):
        return None
    if release.reason_to_rest(worker.place, release.code_version()):
        return None
    for point_id in points.next_waiting(points.BY_WORKERS, 1, but=without_boards()):
        run = start(point_id, worker)
        if run is not None:
            runs.queue(run)
        return run
    return None


def start(point_id: int, worker: workers.Identity) -> Run | None:
    """This point as a queued run; None if another process was first, or if it cannot be planned.

    `worker` holds the point while it plans, outside of a transaction since that may take seconds.
    """
    point = points.take_one(point_id, worker)
    if point is None:
        return None
    if set(waiting.need_of(point).boards) & waiting.busy_boards(HOLDING, but=point):
        points.release(point)  # another worker has taken a point with the same board at the same time
        return None
    owner = lease.owner_of(point)
    try:
        spec = points.spec_of(point)
        budgets.check_emulation(spec)
        planned = runs.planned(spec)
    except EdgeLoomError as error:
        result = to_document(failure(error, **attempts.about_of(point, point.code_version)))
        attempts.let_go(owner, "finished", result=result, wall_s=0.0)
        return None
    columns = columns_of(point, spec, planned) | {"listed": True, "created_at": timezone.now()}
    if not attempts.let_go(owner, "queue", worker="", **columns):
        return None  # planning took so long that it was given to another worker
    point.refresh_from_db()
    return point


def refuse_without_boards(worker: workers.Identity) -> None:
    """Let the points fail of which a board was revoked: they would wait for ever."""
    for point_id, boards in boards_needed().items():
        if not (gone := boards - nodes.known()):
            continue
        if (point := points.take_one(point_id, worker)) is not None:
            sentence = f"The board {min(gone)} was revoked: add it on the page Machines, and retry."
            attempts.let_go(lease.owner_of(point), "failed", error=sentence)


def without_boards() -> list[int]:
    """The waiting points of which a board is away or another run's."""
    if not (needs := boards_needed()):
        return []
    free = nodes.connected() - waiting.busy_boards(HOLDING)
    return [point_id for point_id, boards in needs.items() if boards - free]


def boards_needed() -> dict[int, set[str]]:
    """Waiting point → its boards."""
    waiting_on_boards = points.waiting(("nodes",)).only("pk", "need")
    return {point.pk: set(waiting.need_of(point).boards) for point in waiting_on_boards}


def columns_of(point: Run, spec: RunSpec, planned: Planned) -> dict[str, Any]:
    """What makes a planned point a run as people ask for it, tagged with its experiments."""
    wanting = Execution.objects.filter(cells__run=point).distinct().select_related("experiment")
    names = [str(execution.experiment) for execution in wanting if execution.experiment]
    first = Cell.objects.filter(run=point).select_related("execution__owner").first()
    tags = [name[: budgets.MAX_TAG_CHARS] for name in dict.fromkeys(names)][: budgets.MAX_TAGS]
    label = place_text(executions.value_of(first.execution), first.coordinates) if first else ""
    request = request_of(spec, label[:100], tuple(tags))
    return runs.columns_of(request, spec, planned, first.execution.owner if first else None)


def on_turn_over(sender: Any, worker: workers.Identity, **more: Any) -> None:
    """Start the next emulated point at once, so that it need not wait for a beat."""
    try:
        feed(worker)
    except REDIS_ERRORS as error:
        logger.info("Redis %s: the next point is queued at a later beat", why_away(error))


def on_beat(sender: Any, queue: str, worker: workers.Identity, slots: int, **more: Any) -> None:
    if queue == "emulate":
        look_after(worker, slots)


runs.turn_over.connect(on_turn_over)
workers.beat.connect(on_beat)
