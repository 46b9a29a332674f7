"""What an emulator worker does every few seconds: close runs of dead workers, queue runs again whose Redis
message is missing.
"""

from __future__ import annotations

from webapp.celery import app as celery
from webapp.redis import client
from webapp.runs import services, workers
from webapp.runs.models import ACTIVE, Run


def fail_lost_runs(me: workers.Identity) -> list[int]:
    """Mark the runs of dead workers of this host failed; returns their ids. Raises Redis' errors."""
    lost = []
    for run in Run.objects.filter(status__in=ACTIVE, worker__startswith=f"{me.node}/"):
        if not workers.is_running_here(workers.parse_identity(run.worker)):
            services.fail_lost(run)
            lost.append(run.pk)
    return lost


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
