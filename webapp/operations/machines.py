"""The page Machines over HTTP: every worker, what it does, the queue; draining a worker."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.http import Http404, HttpRequest
from ninja import Router, Schema
from ninja.responses import Status
from pydantic import Field

from webapp.accounts import audit
from webapp.accounts.access import UserRequest, operator
from webapp.fleet import release
from webapp.fleet.announcement import Announcement, announced
from webapp.redis import redis_needed
from webapp.runs import waiting
from webapp.runs.models import ACTIVE, Run
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
    models: int = Field(description="How many model directories it has or can fetch.")
    refused: str = Field(description="Why it takes nothing at present, or empty.")
    drained: bool
    silent_s: float = Field(description="Since its last heartbeat, by the clocks of both machines.")
    runs: list[OngoingRun]


class WaitingRun(Schema):
    id: int
    name: str
    owner: str
    position: int
    starts_in_s: float | None = Field(description="An estimate from the last runs; null if there is none.")
    problem: str = Field(description="Why no worker can do it, or empty.")
    refusals: dict[str, str] = Field(description="Name of a worker → why it leaves the run to others.")


class FleetOut(Schema):
    version: str = Field(description="Of the server; workers with another one are refused.")
    workers: list[WorkerOut]
    queue: list[WaitingRun]


class PlaceIn(Schema):
    worker: str = Field(max_length=400)


@router.get("", response=FleetOut)
def get_fleet(request: HttpRequest) -> FleetOut:
    """Every worker that has announced itself in the last seconds, and the queue of emulations."""
    with redis_needed():
        found = announced()
        places = waiting.places()
    active = Run.objects.filter(status__in=ACTIVE)
    going_on = list(active.only("pk", "name", "status", "worker", "started_at", "strategy", "cluster_name"))
    names = Run.objects.filter(pk__in=places).select_related("owner")
    rows = {run.pk: run for run in names.only("pk", "name", "strategy", "cluster_name", "owner__username")}
    return FleetOut(
        version=release.released() or release.code_version(),
        workers=[worker_out(one, going_on) for one in found],
        queue=[waiting_run(rows[run_id], place) for run_id, place in places.items() if run_id in rows],
    )


def worker_out(one: Announcement, going_on: Sequence[Run]) -> WorkerOut:
    now = time.time()
    works = [
        OngoingRun(id=run.pk, name=name_of(run), status=run.status, seconds=now - run.started_at.timestamp())
        for run in going_on
        if run.worker == one.worker and run.started_at is not None
    ]
    fields = one.model_dump(exclude={"place", "at", "models", "event_lag_s", "capabilities", "holds"})
    return WorkerOut(
        **fields,
        capabilities=list(one.capabilities),
        models=len(one.models),
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
    release.drain(place_of(body.worker), request.auth.username)
    audit.note(request.auth, "drained", f"worker {body.worker}")
    return Status(204, None)


@router.post("/undrain", response={204: None}, auth=operator)
def undrain_worker(request: UserRequest, body: PlaceIn) -> Status[None]:
    """The worker takes tasks again, from its next beat on."""
    release.undrain(place_of(body.worker))
    audit.note(request.auth, "undrained", f"worker {body.worker}")
    return Status(204, None)


def place_of(worker: str) -> str:
    """Raises `Http404` for a worker that does not announce itself."""
    with redis_needed():
        found = next((one.place for one in announced() if one.worker == worker), None)
    if found is None:
        raise Http404(f"There is no worker {worker[:100]} at present")
    return found
