"""The events of a run as they happen: numbered batches, in a Redis Stream and, for good, in the database.

One publisher writes, any number of readers follow. Batches of a run are numbered 1, 2, 3, …; a reader's
cursor is the number of the last batch that it has. What leaves the stream was stored in the database before,
so a reader that finds a gap reads them there, and no event is ever missing: not after a reload, not when
Redis restarts empty, not when the stream is cut to keep Redis small.
"""

from __future__ import annotations

import gzip
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, NamedTuple, Self

from django.db import connection
from django.db.models import Max
from redis.exceptions import ResponseError

from engine.domain.events import Event, to_json_text
from engine.domain.stored import SCHEMA, upgrade_events_text
from webapp.redis import REDIS_ERRORS, client
from webapp.runs.models import EventSegment, Run

BATCH_S = 0.04
"""Events wait this long so that they travel together: as smooth in the browser, for a third of the CPU."""

BATCH_EVENTS = 1000
SEGMENT_EVENTS = 20_000
"""After so many events the worker stores a segment and cuts the stream."""

PAGE_CHARS = 4_000_000

KEEP_S = 600
"""How long the stream of a finished run stays, for readers that are in the middle of it."""


class Batch(NamedTuple):
    """`events` is the text of a JSON array, in the present version of events."""

    number: int
    events: str


def stream_of(run_id: int) -> str:
    return f"run:{run_id}"


def last_stored(run_id: int) -> int:
    return EventSegment.objects.filter(run_id=run_id).aggregate(last=Max("last"))["last"] or 0


def next_segment(run_id: int, since: int) -> list[Batch]:
    """The batches after `since` of the first stored segment that has any."""
    segment = EventSegment.objects.filter(run_id=run_id, last__gt=since).order_by("first").first()
    if segment is None:
        return []
    lines = gzip.decompress(segment.batches).decode().split("\n")
    return [
        Batch(number, upgrade_events_text(text, segment.schema))
        for number, text in enumerate(lines, segment.first)
        if number > since
    ]


def stored_batches(run_id: int, since: int) -> Iterator[Batch]:
    """All batches after `since` that are in the database, a segment at a time."""
    while batches := next_segment(run_id, since):
        yield from batches
        since = batches[-1].number


def live_batches(run_id: int, since: int) -> list[Batch]:
    """Batches after `since` that are in the stream now. Raises Redis' errors."""
    entries: Any = client().xrange(stream_of(run_id), min=f"({since}-0")
    return [batch_of(entry) for entry in entries]


def entry_of(events: str) -> dict[Any, Any]:
    """A batch's fields in the stream."""
    return {"events": events, "schema": str(SCHEMA)}


def batch_of(entry: tuple[str, dict[str, str]]) -> Batch:
    entry_id, fields = entry
    text = upgrade_events_text(fields["events"], int(fields.get("schema", 1)))
    return Batch(int(entry_id.partition("-")[0]), text)


def history(run_id: int, since: int) -> Iterator[Batch]:
    """All batches after `since`, stored ones first. Raises Redis' errors while the run is not archived."""
    archived = Run.objects.filter(pk=run_id, archived=True).exists()
    live = [] if archived else live_batches(run_id, since)
    if not live or live[0].number > since + 1:
        stored = stored_batches(run_id, since)
        yield from takewhile(lambda batch: not live or batch.number < live[0].number, stored)
    yield from live


def page_of_history(run_id: int, since: int) -> list[Batch]:
    """The first batches after `since`, together about PAGE_CHARS; none after the last."""
    page: list[Batch] = []
    size = 0
    for batch in history(run_id, since):
        page.append(batch)
        size += len(batch.events)
        if size >= PAGE_CHARS:
            break
    return page


def store_segment(run_id: int, batches: list[Batch]) -> None:
    text = "\n".join(batch.events for batch in batches)
    EventSegment.objects.create(
        run_id=run_id,
        first=batches[0].number,
        last=batches[-1].number,
        batches=gzip.compress(text.encode(), compresslevel=6),
        schema=SCHEMA,
    )


def append(run_id: int, events: Sequence[Event]) -> None:
    """One batch of a run that has no publisher: before it begins, or after its worker died."""
    stored = last_stored(run_id)
    live = live_batches(run_id, stored)
    number = (live[-1].number if live else stored) + 1
    client().xadd(stream_of(run_id), entry_of(to_json_text(events)), id=f"{number}-0")


def archive_rest(run_id: int) -> None:
    """Store what only the stream has of a run whose publisher died, then mark the run archived."""
    rest = live_batches(run_id, last_stored(run_id))
    if rest:
        store_segment(run_id, rest)
    Run.objects.filter(pk=run_id).update(archived=True)
    client().expire(stream_of(run_id), KEEP_S)


class Publisher:
    """The one writer of a run's events, with a thread of its own: publishing never waits for Redis.

    While Redis does not answer, events are kept here, numbered, and sent later. A context manager: leaving it
    stores everything that is not stored yet and marks the run archived.
    """

    def __init__(self, run_id: int):
        self.run_id = run_id
        self.pending: deque[Event] = deque()
        self.unsent: deque[Batch] = deque()
        stored = last_stored(run_id)
        self.unstored: list[Batch] = live_batches(run_id, stored)  # events from before the run began
        self.unstored_events = 0
        self.number = self.unstored[-1].number if self.unstored else stored
        self.redis_was_gone = False
        self.failure: BaseException | None = None
        self.news = threading.Event()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work, name=f"publisher of run {run_id}", daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        self.news.set()
        self.thread.join()
        self._raise_failure()

    def publish(self, events: Sequence[Event]) -> None:
        """From any thread. Raises what went wrong in the publishing thread, if something did."""
        self._raise_failure()
        self.pending.extend(events)
        self.news.set()

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise RuntimeError(f"the events of run {self.run_id} cannot be kept") from self.failure

    def _work(self) -> None:
        try:
            while not self.stopping.is_set():
                self.news.wait(1.0 if self.unsent else None)
                self.stopping.wait(BATCH_S)
                self.news.clear()
                self._take()
                self._send()
                if self.unstored_events >= SEGMENT_EVENTS:
                    self._store()
            self._finish()
        except BaseException as error:  # kept: publish and __exit__ raise it in the run's own thread
            self.failure = error
        finally:
            connection.close()

    def _take(self) -> None:
        """Make batches of what is pending."""
        while self.pending:
            events = [self.pending.popleft() for _ in range(min(len(self.pending), BATCH_EVENTS))]
            self.number += 1
            batch = Batch(self.number, to_json_text(events))
            self.unsent.append(batch)
            self.unstored.append(batch)
            self.unstored_events += len(events)

    def _send(self) -> None:
        if not self.unsent:
            return
        try:
            if self.redis_was_gone:
                client().ping()
                self._store()  # Redis may be back empty: readers find the gap in the database
                self.redis_was_gone = False
            while self.unsent:
                self._add(self.unsent[0])
                self.unsent.popleft()
        except REDIS_ERRORS:
            self.redis_was_gone = True

    def _add(self, batch: Batch) -> None:
        try:
            client().xadd(stream_of(self.run_id), entry_of(batch.events), id=f"{batch.number}-0")
        except ResponseError as error:
            # Sent before, but the answer was lost with the connection.
            if "equal or smaller" not in str(error):
                raise

    def _store(self) -> None:
        """Move what is unstored into the database, then cut the stream down to what is younger."""
        if not self.unstored:
            return
        store_segment(self.run_id, self.unstored)
        stored = self.unstored[-1].number
        self.unstored, self.unstored_events = [], 0
        if not self.redis_was_gone:
            with suppress(*REDIS_ERRORS):
                client().xtrim(stream_of(self.run_id), minid=f"{stored}-0")

    def _finish(self) -> None:
        self._take()
        self._send()
        if self.unstored:
            store_segment(self.run_id, self.unstored)
        Run.objects.filter(pk=self.run_id).update(archived=True)
        with suppress(*REDIS_ERRORS):  # if Redis does not answer, there is no stream to expire
            client().expire(stream_of(self.run_id), KEEP_S)
