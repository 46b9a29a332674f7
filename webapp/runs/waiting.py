"""Queued runs: their order, who may take which, and when each is likely to start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from statistics import fmean
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Window
from django.db.models.functions import Coalesce, RowNumber
from django.utils import timezone

from engine.domain.command_name import COMMAND
from webapp.base.database import any_of
from webapp.base.redis import REDIS_ERRORS, client
from webapp.clusters import nodes
from webapp.jobs import calibration, lease, release, workers
from webapp.jobs.announcement import Announcement, announced, holder_of
from webapp.jobs.intake import own_queue, wake
from webapp.jobs.models import ACTIVE
from webapp.jobs.need import Need, reason_against
from webapp.runs.models import EMULATED, Run

RECENT = 20
"""How many runs tell how long one takes."""

NOBODY = f"No emulating worker is running: start one with {COMMAND} up, or {COMMAND} worker --queue emulate."

any_queued = any_of(lambda: Run.objects.filter(status="queued"))


def queued() -> list[Run]:
    """The waiting runs in the order in which workers take them, without their documents."""
    light = in_turn(Run.objects.filter(status="queued"))
    return list(light.only("pk", "name", "status", "need", "owner_id", "created_at"))


def in_turn(queued: QuerySet[Run]) -> QuerySet[Run]:
    """Waiting runs, round robin over their owners: each owner's first run comes before anybody's second. A
    run that goes on counts as its owner's first.

    Within a round, and for one owner, the run that was asked for first goes first.
    """
    running = Run.objects.filter(status__in=ACTIVE, owner=OuterRef("owner")).order_by()
    of_owner = running.values("owner").annotate(number=Count("pk")).values("number")
    numbered = queued.annotate(
        turn=Window(RowNumber(), partition_by=[F("owner")], order_by="pk") + Coalesce(Subquery(of_owner), 0)
    )
    return numbered.order_by("turn", "pk")


def need_of(run: Run) -> Need:
    """What a run needs of its worker; one that was stored before needs were noted needs nothing in
    particular.
    """
    return Need.model_validate(run.need)


def fleet() -> list[Announcement]:
    """The emulating workers. Raises Redis' errors."""
    return announced("emulate")


def busy_boards(states: Sequence[str] = ACTIVE, but: Run | None = None) -> set[str]:
    """The boards of runs in these states, and of points that are being planned."""
    found = Run._base_manager.filter(status__in=states, need__has_key="boards").only("pk", "need")
    return {board for run in found if but is None or run.pk != but.pk for board in need_of(run).boards}


def startable() -> list[Run]:
    """The waiting runs, in their order, of which no board is another run's."""
    runs = queued()
    if not any(need_of(run).boards for run in runs):
        return runs
    busy = busy_boards()
    return [run for run in runs if busy.isdisjoint(need_of(run).boards)]


def first_for(worker: Announcement, others: Sequence[Announcement]) -> Run | None:
    """The next run that `worker` can do; `others` may include it."""
    return next((run for run in startable() if not reason_against(need_of(run), worker, others)), None)


def is_anything_possible(others: Sequence[Announcement]) -> bool:
    """Whether some worker can do some run that is queued."""
    return any(first_for(worker, others) is not None for worker in others)


def take(me: workers.Identity, worker: Announcement, others: Sequence[Announcement]) -> Run | None:
    """Give `me` the next run that it can do; None if there is none, or if `me` may not work.

    The last beat may be older than a drain, and a worker that has just started has not beaten yet.
    """
    if release.reason_to_rest(worker.place, worker.version):
        return None
    for run in startable():
        if not reason_against(need_of(run), worker, others):
            taken = claim_with_boards(run, me)
            if taken is not None:
                return taken
    return None


def look_for_work(me: workers.Identity, worker: Announcement) -> bool:
    """Wake this worker if it is idle and has a calibration to do or a queued run whose message is elsewhere:
    Redis may have restarted empty, or a worker that cannot do the run has taken it. Returns whether it did.

    A second message for a run does no harm: a run starts once. Raises Redis' errors.
    """
    wanted = calibration.is_wanted(worker.worker)
    if not wanted and not any_queued.exists():
        return False
    busy = Run.objects.filter(status__in=EMULATED, worker=str(me)).count()
    if worker.refused or worker.calibrating or busy >= worker.slots:
        return False
    own = own_queue("emulate", worker.worker)
    if client().llen("emulate") or client().llen(own):
        return False
    if not wanted and first_for(worker, fleet()) is None:
        return False
    wake("emulate.next", own)
    return True


def claim(run_id: int, worker: workers.Identity) -> Run | None:
    """Give a queued run to `worker`; None if it is not queued any more."""
    return lease.claim(Run.objects.all(), run_id, worker, started_at=lease.now())


def claim_with_boards(run: Run, worker: workers.Identity) -> Run | None:
    """As `claim`; None, too, if another worker has taken a run with the same board since somebody looked."""
    if not (boards := need_of(run).boards):
        return claim(run.pk, worker)
    with transaction.atomic():
        nodes.hold(boards)
        return claim(run.pk, worker) if busy_boards().isdisjoint(boards) else None


# When ---------------------------------------------------------------------------------------------
class Place(NamedTuple):
    """A run's place in the queue. `position` counts from 1. `starts_in_s` is None where nothing is known or
    nobody can do the run: `problem` says why then. `waits_for` is a sentence on what must happen first.
    `refusals` is for every worker that leaves the run to others.
    """

    position: int
    starts_in_s: float | None
    problem: str
    waits_for: str
    refusals: dict[str, str]


class Ongoing(NamedTuple):
    worker: str
    started_at: datetime | None
    run_id: int
    boards: tuple[str, ...] = ()


class Slot(NamedTuple):
    """When a worker's slot becomes free, after what: a sentence, "" of one that is free now. A time is known
    unless what goes on takes longer than such runs take.
    """

    free_in_s: float
    after: str
    is_known: bool = True


def places() -> dict[int, Place]:
    """The place of every queued run; without Redis, only positions."""
    runs = queued()
    if not runs:
        return {}
    try:
        others = fleet()
    except REDIS_ERRORS:
        return {run.pk: Place(number, None, "", "", {}) for number, run in enumerate(runs, 1)}
    active = Run.objects.filter(status__in=EMULATED).only("worker", "started_at", "pk", "need")
    ongoing = [Ongoing(one.worker, one.started_at, one.pk, need_of(one).boards) for one in active]
    return forecast(runs, others, ongoing, typical_run_s(), timezone.now())


def forecast(
    runs: Sequence[Run],
    others: Sequence[Announcement],
    active: Sequence[Ongoing],
    run_s: float | None,
    now: datetime,
) -> dict[int, Place]:
    """When waiting runs will start: each goes to the first free slot of a worker that can do it, and takes
    `run_s` there. One whose boards are another run's waits for its end, and leaves the slot to others.
    """
    boards = {board: _slot_after(one, run_s or 0.0, now) for one in active for board in one.boards}
    slots = {one.worker: _slots(one, active, run_s or 0.0, now) for one in others}
    found = {}
    for position, run in enumerate(runs, 1):
        reasons = {one.worker: reason_against(need_of(run), one, others) for one in others}
        able = [worker for worker, reason in reasons.items() if not reason]
        refusals = {one.node: reasons[one.worker] for one in others if reasons[one.worker]}
        if not able:
            problem = "; ".join(f"{node}: {reason}" for node, reason in refusals.items())
            sentence = f"No worker can run it: {problem}." if problem else NOBODY
            found[run.pk] = Place(position, None, sentence, "", refusals)
            continue
        worker = min(able, key=lambda one: min(slots[one]))
        first = min(slots[worker])
        slot = max([first, *(boards[board] for board in need_of(run).boards if board in boards)])
        after = Slot(slot.free_in_s + (run_s or 0.0), _end_of(run.pk), slot.is_known)
        boards |= dict.fromkeys(need_of(run).boards, after)
        if slot == first:
            slots[worker].remove(first)
            slots[worker].append(after)
        starts_in_s = slot.free_in_s if slot.is_known and run_s is not None else None
        found[run.pk] = Place(position, starts_in_s, "", slot.after or "A worker takes it now.", refusals)
    return found


def _slots(worker: Announcement, active: Sequence[Ongoing], run_s: float, now: datetime) -> list[Slot]:
    """The worker's slots. No run goes on beside a calibration."""
    taken = [
        _slot_after(one, run_s, now)
        for one in active
        if one.worker == worker.worker and one.started_at is not None
    ]
    slots = taken[: worker.slots] + [Slot(0.0, "")] * (worker.slots - len(taken))
    if (holder := holder_of([worker])) is not None:
        return [max(Slot(0.0, f"It starts when {holder} ends.", is_known=False), slot) for slot in slots]
    if not worker.calibrating:
        return slots
    calibrated = Slot(worker.calibrating.left_s, f"It starts when {worker.node} is calibrated.")
    return [max(calibrated, slot) for slot in slots]


def _slot_after(run: Ongoing, run_s: float, now: datetime) -> Slot:
    """When a run that goes on leaves what it has, if it takes `run_s`."""
    left_s = run_s - (now - run.started_at).total_seconds() if run.started_at else run_s
    return Slot(max(0.0, left_s), _end_of(run.run_id), is_known=left_s > 0)


def _end_of(run_id: int) -> str:
    return f"It starts when run {run_id} ends."


def typical_run_s() -> float | None:
    """Wall seconds of the last runs, on average; None before the first has finished."""
    last = Run.objects.filter(status="finished", started_at__isnull=False, finished_at__isnull=False)
    times = last.order_by("-pk").values_list("started_at", "finished_at")[:RECENT]
    durations = [(end - start).total_seconds() for start, end in times if start and end]
    return fmean(durations) if durations else None
