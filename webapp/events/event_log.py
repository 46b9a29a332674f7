"""One owner's side of a run's events: it numbers batches, sends them to Redis, stores them in the database.

Batches are numbered 1, 2, 3, …; a reader's cursor is the number of the last batch that it has. No event is
ever missing: not after a reload, not when Redis restarts empty, not when the stream is cut to keep Redis
small. The first batch always says that the run was queued: whoever finds an empty log knows what was in it.

If an owner dies and Redis restarts empty too, batches are lost that readers have seen already. The next owner
must not give their numbers to other batches, so it goes on at a higher number: `STEP` for every owner.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from engine.domain.events import Event, StateChanged, to_json_text
from webapp.base.redis import REDIS_ERRORS, check_writable, why_away
from webapp.events import archive, stream
from webapp.events.stream import Batch
from webapp.jobs.lease import Ownership

logger = logging.getLogger(__name__)
STEP = 1_000_000
"""The step from one owner's batch numbers to the next one's, more than an owner makes: 25 in a second for
eleven hours. Numbers have 31 bits.
"""


class EventLog:
    """The events of one run on their way to Redis and the database. `unsent` is what Redis has not got yet,
    `unstored` what the database has not. For one thread.
    """

    def __init__(self, owner: Ownership):
        """Go on after the events that there are. Raises Redis' errors."""
        self.owner = owner
        self.unsent: deque[Batch] = deque()
        stored = archive.last_stored(owner.id)
        stream.take(owner)
        self.unstored: list[Batch] = stream.batches(owner.id, stored)
        self.number = self.unstored[-1].number if self.unstored else stored
        self.redis_was_gone = False
        self.number_before = max(0, owner.fence - 1) * STEP

    def begin(self) -> None:
        """Add the first batch, if there is none."""
        if self.number == 0:
            self._append(1, [StateChanged(state="queued")])

    def add(self, events: Sequence[Event]) -> None:
        """One batch more, not sent yet."""
        self._append(max(self.number, self.number_before) + 1, events)

    def _append(self, number: int, events: Sequence[Event]) -> None:
        self.number = number
        batch = Batch(number, to_json_text(events))
        self.unsent.append(batch)
        self.unstored.append(batch)

    def send(self) -> None:
        """Send what is unsent, if Redis takes it. Raises `Lost`, and the database's errors."""
        if not self.unsent:
            return
        try:
            vouched = self.redis_was_gone
            if vouched:
                check_writable()
                self.store()  # Redis may be back empty: readers find the gap in the database
                self.redis_was_gone = False
            while self.unsent:
                try:
                    stream.append(self.owner, self.unsent[0], vouched)
                except stream.Unknown:
                    self.store()
                    stream.append(self.owner, self.unsent[0], vouched=True)
                self.unsent.popleft()
        except REDIS_ERRORS as error:
            if not self.redis_was_gone:
                logger.warning("Redis %s: the events of %s wait here", why_away(error), self.owner.title)
            self.redis_was_gone = True

    def store(self) -> None:
        """Move what is unstored into the database, then cut the stream down to what is younger.

        Raises `Lost`, also with nothing to store, and the database's errors.
        """
        archive.store(self.owner, self.unstored)
        stored = self.number
        self.unstored = []
        if not self.redis_was_gone:
            with suppress(*REDIS_ERRORS):
                stream.cut(self.owner.id, stored)

    def close(self) -> None:
        """Store everything and mark the run archived. Raises `Lost`, and the database's errors."""
        self.send()
        self.store()
        archive.complete(self.owner)
        with suppress(*REDIS_ERRORS):  # if Redis does not answer, there is no stream to expire
            stream.expire(self.owner.id)
