"""GET /api/health: whether Redis writes and workers answer. The front end's banner and monitoring use it."""

from __future__ import annotations

import time
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from webapp.base.database import lock_timeout
from webapp.base.redis import REDIS_ERRORS, check_writable, why_away
from webapp.experiments import points
from webapp.jobs import storage, workers
from webapp.jobs.announcement import Holder, announced, holder_of
from webapp.jobs.models import ACTIVE
from webapp.runs.closing import settle_abandoned
from webapp.runs.models import Run

router = Router(tags=["health"])

BEGAN_S = time.monotonic()
STARTS_S = 60
"""After so long, workers that were started with this process have announced themselves."""
PATIENCE_MS = 300
"""How long an answer waits for somebody else who writes to the database."""


class Health(Schema):
    redis: str | None = Field(description="What is wrong with Redis, such as `does not answer`.")
    worker_emulate: bool
    worker_plan: bool
    starting: bool = Field(description="The server has just begun: missing workers may be on their way.")
    queue_length: int
    waiting_points: int = Field(description="Points of experiments that wait to be emulated.")
    busy_run: int | None
    held_by: Holder | None = Field(
        description="Another program that emulates on every emulating worker's machine: runs wait for it."
    )
    workers: dict[str, list[str]]
    storage: str | None = Field(description="Why a worker could not write to the database just now.")
    server_time: float


@router.get("/health", response=Health)
def health(request: HttpRequest) -> dict[str, Any]:
    """Answers also when Redis does not, or the database takes no write. Settles runs without an owner: all
    workers may be gone.
    """
    found: dict[str, list[str]] = {queue: [] for queue in workers.QUEUES}
    problem = redis_problem = holder = None
    try:
        check_writable()
        found = workers.alive()
        holder = holder_of(announced("emulate"))
        problem = storage.problem()
        with lock_timeout(PATIENCE_MS):
            settle_abandoned()
    except REDIS_ERRORS as error:
        redis_problem = why_away(error)
    except storage.ERRORS as error:
        problem = str(error)
    missing = not (found["emulate"] and found["plan"])
    return {
        "redis": redis_problem,
        "worker_emulate": bool(found["emulate"]),
        "worker_plan": bool(found["plan"]),
        "starting": redis_problem is None and missing and time.monotonic() < BEGAN_S + STARTS_S,
        "queue_length": Run.objects.filter(status="queued").count(),
        "waiting_points": points.waiting(points.BY_WORKERS).count(),
        "busy_run": Run.objects.filter(status__in=ACTIVE).values_list("pk", flat=True).first(),
        "held_by": holder,
        "workers": found,
        "storage": problem,
        "server_time": time.time(),
    }
