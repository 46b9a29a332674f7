"""The page Machines over HTTP: every worker, what it does, the queue; draining and calibrating a worker."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence

from django.http import Http404, HttpRequest
from ninja import Router, Schema
from ninja.responses import Status
from pydantic import Field

from engine.plugins.packs import installed_packs
from engine.strategies.registry import installed_code
from topologies.left_out import left_out
from webapp.accounts import audit
from webapp.accounts.access import UserRequest, operator
from webapp.base.errors import Conflict
from webapp.base.redis import redis_needed
from webapp.jobs import calibration, release
from webapp.jobs.announcement import Announcement, Holder, announced
from webapp.jobs.calibration import Calibrating
from webapp.jobs.intake import own_queue, wake
from webapp.jobs.models import ACTIVE
from webapp.runs import waiting
from webapp.runs.models import Run
from webapp.runs.schemas import name_of

router = Router(tags=["fleet"])


class OngoingRun(Schema):
    id: int
    name: str
    status: str
    seconds: float = Field(description="Since the worker took it.")


class WorkerOut(Schema):
    worker: str
    node: str
    queue: str
    slots: int
    pid: int
    version: str
    processor: str
    cores: int
    memory_bytes: int
    available_bytes: int
    load_1min: float
    capabilities: list[str]
    calibration: str = Field(description="Digest of its calibration, empty before the first.")
    calibrated: str = Field(description="How that was measured, or empty.")
    calibrated_at: float = Field(description="When, in seconds since 1970; 0 before the first.")
    calibration_caution: str = Field(description="What is to be said beside its figures, or empty.")
    calibration_takes_s: float = Field(description="About how long calibrating takes on this machine now.")
    calibration_wanted: bool = Field(description="Whether somebody asked for one that is not over.")
    calibrating: Calibrating | None = Field(description="What a calibration under way does.")
    calibration_failure: str = Field(description="Why the last one that was asked for failed, or empty.")
    methods: list[str] = Field(
        description="Package, version and digest of the methods from outside that it uses."
    )
    packs: list[str] = Field(description="Package and version of the packs of data that it uses.")
    left_out: list[str] = Field(description="Why it uses others not that it should.")
    models: int = Field(description="How many model directories it has or can fetch.")
    refused: str = Field(description="Why it takes nothing at present, or empty.")
    drained: bool
    beside: list[Holder] = Field(
        description="Other programs that emulate on its machine: an EdgeLoom, the command line."
    )
    silent_s: float = Field(description="Since its last heartbeat, by the clocks of both machines.")
    runs: list[OngoingRun]


class WaitingRun(Schema):
    id: int
    name: str
    owner: str
    position: int
    starts_in_s: float | None = Field(description="An estimate from the last runs; null if there is none.")
    problem: str = Field(description="Why no worker can do it, or empty.")
    waits_for: str = Field(description="What must happen before it starts, as a sentence, or empty.")
    refusals: dict[str, str] = Field(description="Name of a worker → why it leaves the run to others.")


class FleetOut(Schema):
    version: str = Field(description="Of the server; workers with another one are refused.")
    workers: list[WorkerOut]
    uses: list[str] = Field(description="What packages add to the server: methods, packs of data.")
    left_out: list[str] = Field(description="What packages add and the server does not use, and why.")
    gaps: list[str] = Field(description="Methods that the server has and no worker.")
    elsewhere: list[str] = Field(description="Methods that a worker has and the server not.")
    queue: list[WaitingRun]


class PlaceIn(Schema):
    worker: str = Field(max_length=400)


@router.get("", response=FleetOut)
def get_fleet(request: HttpRequest) -> FleetOut:
    """Every worker that has announced itself in the last seconds, and the queue of emulations."""
    with redis_needed():
        found = announced()
        places = waiting.places()
        to_calibrate = calibration.wanted([one.worker for one in found])
    active = Run.objects.filter(status__in=ACTIVE)
    going_on = list(active.only("pk", "name", "status", "worker", "started_at", "strategy", "cluster_name"))
    names = Run.objects.filter(pk__in=places).select_related("owner")
    rows = {run.pk: run for run in names.only("pk", "name", "strategy", "cluster_name", "owner__username")}
    return FleetOut(
        version=release.released() or release.code_version(),
        uses=[*installed_code(), *installed_packs()],
        left_out=list(left_out()),
        gaps=list(gaps(installed_code(), found)),
        elsewhere=list(elsewhere(installed_code(), found)),
        workers=[worker_out(one, going_on, one.worker in to_calibrate) for one in found],
        queue=[waiting_run(rows[run_id], place) for run_id, place in places.items() if run_id in rows],
    )


DOES = {"emulate": "emulates", "points": "predicts points of experiments"}


def gaps(mine: Collection[str], workers: Sequence[Announcement]) -> Iterator[str]:
    """In sentences: methods from outside that the server has and no worker of a queue."""
    for queue, does in DOES.items():
        there = [one for one in workers if one.queue == queue and not one.refused]
        for code in mine if there else ():
            if not any(code in one.methods for one in there):
                yield f"No worker that {does} has {code}: what needs it waits until one has it."


def elsewhere(mine: Collection[str], workers: Sequence[Announcement]) -> Iterator[str]:
    """In sentences: methods from outside that a worker has and the server not. No form can offer them."""
    others = {code: one.node.partition("@")[2] for one in workers for code in one.methods if code not in mine}
    for code, host in others.items():
        yield (
            f"A worker on {host} has {code}, which the server lacks: forms offer it when it is installed "
            "where the server runs, and LOOM_METHODS names it there."
        )


def worker_out(one: Announcement, going_on: Sequence[Run], to_calibrate: bool) -> WorkerOut:
    now = time.time()
    works = [
        OngoingRun(id=run.pk, name=name_of(run), status=run.status, seconds=now - run.started_at.timestamp())
        for run in going_on
        if run.worker == one.worker and run.started_at is not None
    ]
    fields = one.model_dump(exclude={"place", "at", "models", "event_lag_s", "holds"})
    return WorkerOut(
        **fields,
        models=len(one.models),
        calibration_wanted=to_calibrate,
        drained=release.is_drained(one.place),
        silent_s=max(0.0, now - one.at),
        runs=works if one.queue == "emulate" else [],
    )


def waiting_run(run: Run, place: waiting.Place) -> WaitingRun:
    owner = run.owner.username if run.owner else ""
    return WaitingRun(id=run.pk, name=name_of(run), owner=owner, **place._asdict())


@router.post("/drain", response={204: None}, auth=operator)
def drain_worker(request: UserRequest, body: PlaceIn) -> Status[None]:
    """The worker finishes what it does and takes nothing more, also after a restart."""
    release.drain(worker_of(body.worker).place, request.auth.username)
    audit.note(request.auth, "drained", f"worker {body.worker}")
    return Status(204, None)


@router.post("/undrain", response={204: None}, auth=operator)
def undrain_worker(request: UserRequest, body: PlaceIn) -> Status[None]:
    """Let a worker take tasks again, from its next beat on."""
    release.undrain(worker_of(body.worker).place)
    audit.note(request.auth, "undrained", f"worker {body.worker}")
    return Status(204, None)


@router.post("/calibrate", response={204: None}, auth=operator)
def calibrate_worker(request: UserRequest, body: PlaceIn) -> Status[None]:
    """An emulating worker measures its machine as soon as no run goes on there, and before the next run."""
    one = worker_of(body.worker, "emulate")
    if one.refused:
        raise Conflict(f"{one.node} takes nothing at present: {one.refused}. Let it take work again first.")
    with redis_needed():
        if calibration.ask(one.worker, request.auth.username):
            audit.note(request.auth, "asked to calibrate", f"worker {one.worker}")
            wake("emulate.next", own_queue("emulate", one.worker))
    return Status(204, None)


@router.post("/calibrate/stop", response={204: None}, auth=operator)
def stop_calibration(request: UserRequest, body: PlaceIn) -> Status[None]:
    """Stop the calibration under way or asked for, if any; the machine keeps what it had."""
    one = worker_of(body.worker, "emulate")
    with redis_needed():
        if calibration.call_off(one.worker):
            audit.note(request.auth, "stopped calibrating", f"worker {one.worker}")
    return Status(204, None)


def worker_of(worker: str, queue: str = "") -> Announcement:
    """What a worker says of itself. Raises `Http404` for one that is not there, or not in this queue."""
    with redis_needed():
        found = next((one for one in announced(queue or "*") if one.worker == worker), None)
    if found is None:
        raise Http404(f"There is no worker {worker[:100]} at present")
    return found
