"""What every worker does each few seconds, and the server when it is asked for its health: settle runs that
have lost their owner; an emulator worker also looks for runs whose Redis message is missing.
"""

from __future__ import annotations

from webapp.fleet import calibration
from webapp.fleet.announcement import Announcement
from webapp.redis import client
from webapp.runs import closing, waiting, workers
from webapp.runs.intake import own_queue, wake_only
from webapp.runs.models import ACTIVE, Run
from webapp.runs.suspicion import suspicion


def settle_abandoned() -> list[int]:
    """Bring the runs without an owner to their end; returns their ids. Raises Redis' errors."""
    return [run.pk for run in suspicion.abandoned(workers.home()) if closing.settle(run)]


def look_for_work(me: workers.Identity, worker: Announcement) -> bool:
    """Wake this worker if it is idle and has a calibration to do or a queued run whose message is elsewhere:
    Redis may have restarted empty, or a worker that cannot do the run has taken it. Returns whether it did.

    A second message for a run does no harm: a run starts once. Raises Redis' errors.
    """
    busy = Run.objects.filter(status__in=ACTIVE, worker=str(me)).count()
    own = own_queue(worker.worker)
    if worker.refused or worker.calibrating or busy >= worker.slots:
        return False
    if client().llen("emulate") or client().llen(own):
        return False
    if not calibration.is_wanted(worker.worker) and waiting.first_for(worker, waiting.fleet()) is None:
        return False
    wake_only(worker.worker)
    return True
