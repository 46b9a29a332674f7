"""What every worker does each few seconds, and the server when it is asked for its health: settle runs that
have lost their owner; an emulator worker also queues runs again whose Redis message is missing.
"""

from __future__ import annotations

from webapp.celery import app as celery
from webapp.redis import client
from webapp.runs import closing, ownership, workers
from webapp.runs.models import ACTIVE, Run


def settle_abandoned() -> list[int]:
    """Bring the runs without an owner to their end; returns their ids. Raises Redis' errors."""
    return [run.pk for run in ownership.abandoned(workers.home()) if closing.settle(run)]


def requeue(me: workers.Identity) -> list[int]:
    """Queue again the runs that are queued in the database but not in Redis, which may have restarted empty.

    A second message for a run does no harm: a run starts once. Raises Redis' errors.
    """
    if client().llen("emulate") or Run.objects.filter(status__in=ACTIVE, worker=str(me)).exists():
        return []
    waiting = list(Run.objects.filter(status="queued").order_by("pk").values_list("pk", flat=True))
    for run_id in waiting:
        celery.send_task("emulate.run", [run_id], queue="emulate")
    return waiting
