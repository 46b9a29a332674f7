"""Who may write a run: its worker holds a lease, which it renews, and every write carries a fencing number.

A lease ends by itself when its holder falls silent (Gray and Cheriton, 1989). A holder that was only paused
does not notice that. Therefore every write names the number of its lease, and the database and Redis refuse a
number that is not the present one. The clock is that of the database: those of the workers may differ.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, Self

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from webapp.runs import storage, workers
from webapp.runs.models import ACTIVE, Run

LEASE_S = 20.0
"""A worker that does not renew for so long has lost its run. It renews every `workers.BEAT_S`."""

logger = logging.getLogger(__name__)


class Ownership(NamedTuple):
    """The right to write run `run_id`, as long as `fence` is the run's present number."""

    run_id: int
    fence: int


class Lost(Exception):
    """The run belongs to somebody else by now, or was deleted: its former owner writes nothing more."""

    def __init__(self, owner: Ownership):
        super().__init__(
            f"Run {owner.run_id} was taken from this worker, which was silent for more than {LEASE_S:.0f} s, "
            "or was deleted: nothing more is written for it here."
        )


def now() -> Combinable:
    """The time at the database."""
    return Now()


def lease() -> Combinable:
    """When a lease that is taken or renewed now ends."""
    return now() + timedelta(seconds=LEASE_S)


def claim(run_id: int, worker: workers.Identity) -> Run | None:
    """Give a queued run to `worker`; None if it is not queued any more."""
    taken = Run.objects.filter(pk=run_id, status="queued").update(
        status=ACTIVE[0], worker=str(worker), started_at=now(), fence=F("fence") + 1, lease_until=lease()
    )
    return Run.objects.get(pk=run_id) if taken else None


def owner_of(run: Run) -> Ownership:
    return Ownership(run.pk, run.fence)


def owned(owner: Ownership) -> QuerySet[Run]:
    """The run, if `owner` still owns it: every write goes through this filter."""
    return Run.objects.filter(pk=owner.run_id, fence=owner.fence)


def write(owner: Ownership, **changes: Any) -> None:
    """Change the run. Raises `Lost`."""
    if not owned(owner).update(**changes):
        raise Lost(owner)


def renew(owner: Ownership) -> str:
    """Hold the run for another `LEASE_S`, unless all is written; returns who wants it cancelled, or "".

    Raises `Lost`.
    """
    if not owned(owner).filter(archived=False).update(lease_until=lease()) and not owned(owner).exists():
        raise Lost(owner)
    return owned(owner).values_list("cancel_by", flat=True).first() or ""


def take_over(run: Run) -> Ownership | None:
    """Take an abandoned run from its holder; None if that renewed or somebody else was first."""
    seen = {"fence": run.fence, "lease_until": run.lease_until, "archived": False}
    next_fence = run.fence + 1
    taken = Run.objects.filter(pk=run.pk, **seen).update(fence=next_fence, lease_until=lease())
    return Ownership(run.pk, next_fence) if taken else None


class Renewal(threading.Thread):
    """Renews a lease again and again inside the `with` block.

    Calls `on_stop` once when the run was lost or is to be cancelled.
    """

    def __init__(self, owner: Ownership, on_stop: Callable[[], None]):
        super().__init__(name=f"lease of run {owner.run_id}", daemon=True)
        self.owner = owner
        self.on_stop = on_stop
        self.told = False
        self.ending = threading.Event()

    def __enter__(self) -> Self:
        workers.held.add(self.owner.run_id)
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.ending.set()
        self.join()
        workers.held.discard(self.owner.run_id)

    def run(self) -> None:
        while not self.ending.wait(workers.BEAT_S):
            try:
                if renew(self.owner):
                    self._stop_the_run()
            except Lost as lost:
                logger.warning("%s", lost)
                self._stop_the_run()
                return
            except storage.ERRORS as error:
                storage.report(error)
            finally:
                connection.close()

    def _stop_the_run(self) -> None:
        if not self.told:
            self.told = True
            self.on_stop()
