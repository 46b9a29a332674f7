"""Publishing the events of a run as they happen, from a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Self

from django.db import connection

from engine.domain.events import Event
from webapp.events.event_log import EventLog
from webapp.jobs import storage
from webapp.jobs.lease import Lost, Ownership

BATCH_S = 0.04
"""How long events wait so that they travel together: as smooth in the browser, for a third of the CPU."""

BATCH_EVENTS = 1000
SEGMENT_EVENTS = 20_000
"""How many events the worker stores as a segment; then it cuts the stream."""

logger = logging.getLogger(__name__)


class Publisher:
    """Publishes the events of a run without ever waiting: not for Redis, not for the database.

    While one of them cannot be written, events are kept here, numbered, and sent later. A context manager:
    leaving it stores everything that is not stored yet, with as many attempts as it takes, and marks the run
    archived, unless it `lets_go` of a run that goes on elsewhere. Once the run is lost to another owner,
    events are dropped.
    """

    def __init__(self, owner: Ownership):
        self.run_id = owner.id
        self.log = EventLog(owner)
        self.pending: deque[Event] = deque()
        self.unstored_events = 0
        self.behind_since: float | None = None
        self.lost = False
        self.lets_go = False
        self.failure: BaseException | None = None
        self.to_do = threading.Event()
        self.flushes: deque[threading.Event] = deque()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work, name=f"publisher of run {self.run_id}", daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        self.to_do.set()
        self.thread.join()
        self._raise_failure()

    def lag_s(self) -> float:
        """How long the oldest event waits that readers cannot have yet."""
        behind_since = self.behind_since
        return 0.0 if behind_since is None else time.monotonic() - behind_since

    @property
    def idle(self) -> bool:
        """Whether readers could have everything that was published."""
        return not self.pending and not self.log.unsent

    def publish(self, events: Sequence[Event]) -> None:
        """Publish events, from any thread. Raises what went wrong in the publishing thread, if
        something did.
        """
        self._raise_failure()
        self.pending.extend(events)
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        self.to_do.set()

    def flush(self) -> None:
        """Return when the database has what was published until now, or the publishing thread has ended.

        A run is over only after that: its worker may die right after it has written the end.
        """
        done = threading.Event()
        self.flushes.append(done)
        self.to_do.set()
        while not done.wait(storage.AGAIN_S) and self.thread.is_alive():
            pass

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise RuntimeError(f"the events of run {self.run_id} cannot be kept") from self.failure

    def _work(self) -> None:
        try:
            while not self.stopping.is_set():
                self.to_do.wait(storage.AGAIN_S if self._is_behind() else None)
                self.stopping.wait(BATCH_S)
                self.to_do.clear()
                self._pass_on()
                self._flush()
            if not self.lets_go:
                storage.keep_trying(self._finish)
        except Lost as lost:
            logger.warning("%s", lost)
            self.lost = True
        except BaseException as error:  # kept: publish and __exit__ raise it in the run's own thread
            self.failure = error
        finally:
            connection.close()

    def _is_behind(self) -> bool:
        return bool(self.log.unsent) or self.unstored_events >= SEGMENT_EVENTS

    def _pass_on(self) -> None:
        self._take()
        try:
            self.log.send()
            if self.idle:
                self.behind_since = None
            if self.unstored_events >= SEGMENT_EVENTS:
                self.log.store()
                self.unstored_events = 0
        except storage.ERRORS as error:
            storage.report(error)
            connection.close()

    def _take(self) -> None:
        """Make batches of what is pending."""
        while self.pending:
            events = [self.pending.popleft() for _ in range(min(len(self.pending), BATCH_EVENTS))]
            self.log.add(events)
            self.unstored_events += len(events)

    def _flush(self) -> None:
        """Store all that waits, and wake those who asked for it. Raises `Lost`."""
        while self.flushes:
            storage.keep_trying(self._store)
            self.flushes.popleft().set()

    def _store(self) -> None:
        self._take()
        self.log.store()
        self.unstored_events = 0

    def _finish(self) -> None:
        self._take()
        self.log.close()
