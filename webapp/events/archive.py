"""The events of a run for good: segments of batches in the database, and both sources read as one sequence.

What leaves the stream in Redis was stored here before, so a reader that finds a gap there reads it here.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from itertools import takewhile

from django.db import transaction
from django.db.models import Max

from engine.domain.stored import SCHEMA, upgrade_events_text
from webapp.events import stream
from webapp.events.models import EventSegment, told
from webapp.events.stream import Batch
from webapp.jobs import lease
from webapp.jobs.lease import Ownership

PAGE_CHARS = 4_000_000


def store(owner: Ownership, batches: Sequence[Batch]) -> None:
    """Add them as segments; without batches only check that `owner` owns the run. Raises `Lost`."""
    if not batches:
        return lease.write(owner, fence=owner.fence)
    with transaction.atomic():
        lease.write(owner, fence=owner.fence)  # locks the run: nobody takes it before the segments are in
        for part in consecutive(batches):
            text = "\n".join(batch.events for batch in part)
            EventSegment.objects.create(
                run_id=owner.id,
                first=part[0].number,
                last=part[-1].number,
                batches=gzip.compress(text.encode(), compresslevel=6),
                schema=SCHEMA,
            )


def consecutive(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """Parts whose numbers have no gap: an owner after the first one goes on at a higher number."""
    part: list[Batch] = []
    for batch in batches:
        if part and batch.number != part[-1].number + 1:
            yield part
            part = []
        part.append(batch)
    yield part


def complete(owner: Ownership) -> None:
    """Give a run up for good whose events are all stored. Raises `Lost`."""
    lease.write(owner, archived=True, lease_until=None)


def is_complete(run_id: int) -> bool | None:
    """Whether all events are stored; None if there is no such run."""
    return told().filter(pk=run_id).values_list("archived", flat=True).first()


def last_stored(run_id: int) -> int:
    return EventSegment.objects.filter(run_id=run_id).aggregate(last=Max("last"))["last"] or 0


def segment_after(run_id: int, since: int) -> EventSegment | None:
    """The first stored segment that has batches after `since`."""
    return EventSegment.objects.filter(run_id=run_id, last__gt=since).order_by("first").first()


def batches_of(segment: EventSegment, since: int) -> list[Batch]:
    """The batches of the segment after `since`."""
    lines = gzip.decompress(segment.batches).decode().split("\n")
    return [
        Batch(number, upgrade_events_text(text, segment.schema))
        for number, text in enumerate(lines, segment.first)
        if number > since
    ]


def next_segment(run_id: int, since: int) -> list[Batch]:
    """The batches after `since` of the first stored segment that has any."""
    segment = segment_after(run_id, since)
    return [] if segment is None else batches_of(segment, since)


def stored_batches(run_id: int, since: int) -> Iterator[Batch]:
    """All batches after `since` that are in the database, a segment at a time."""
    while batches := next_segment(run_id, since):
        yield from batches
        since = batches[-1].number


def history(run_id: int, since: int) -> Iterator[Batch]:
    """All batches after `since`, stored ones first. Raises Redis' errors while the run is not archived."""
    live = [] if is_complete(run_id) else stream.batches(run_id, since)
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
