"""What a page reads of a run's past when it opens: stored segments and the stream as chunks of columns."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

from webapp.events import archive, stream
from webapp.events.columns import Deflated, chunk_of, deflated, joined
from webapp.events.models import EventSegment

PAGE_BYTES = 2_000_000
"""The size of a page of the past: about 150,000 events, which take a server 0.3 s when nobody has asked for
them before.
"""
KEPT_BYTES = 64_000_000
END = deflated(bytes(4))
"""Says that no chunk follows, in place of the length of its header."""


class Kept:
    """The chunks that were needed last, together at most `most_bytes`. For all threads."""

    def __init__(self, most_bytes: int):
        self.most_bytes = most_bytes
        self.bytes = 0
        self.chunks: OrderedDict[tuple[bytes, int], Deflated] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: tuple[bytes, int], make: Callable[[], Deflated]) -> Deflated:
        with self.lock:
            if key in self.chunks:
                self.chunks.move_to_end(key)
                return self.chunks[key]
        made = make()  # two threads may make the same: the lock is not held so long
        with self.lock:
            if key not in self.chunks:
                self.bytes += len(made.blocks)
            self.chunks[key] = made
            while self.bytes > self.most_bytes:
                _, oldest = self.chunks.popitem(last=False)
                self.bytes -= len(oldest.blocks)
        return made


kept = Kept(KEPT_BYTES)
"""Chunks by the content of a segment, which never changes, and the cursor. Only what people look at is ever
made.
"""


def page_of_past(run_id: int, since: int) -> bytes:
    """Chunks (`webapp/events/columns.py`) of the events after batch `since`, together in zlib's format.

    After the last chunk, four bytes of zeros say that there is no more now; without them, ask again from the
    newest cursor. What follows a gap in the numbers of the stream is left to the feed. Raises Redis' errors
    for a live run.
    """
    chunks: list[Deflated] = []
    while (segment := archive.segment_after(run_id, since)) is not None:
        if sum(len(chunk.blocks) for chunk in chunks) >= PAGE_BYTES:
            return joined(chunks)
        chunks.append(chunk_of_segment(segment, since))
        since = segment.last
    if not archive.is_complete(run_id):
        live = stream.batches(run_id, since)
        if live and live[0].number == since + 1:
            chunks.append(deflated(chunk_of(live)))
    return joined([*chunks, END])


def chunk_of_segment(segment: EventSegment, since: int) -> Deflated:
    content = hashlib.blake2b(segment.batches, digest_size=16).digest()
    key = content, max(since, segment.first - 1)
    return kept.get(key, lambda: deflated(chunk_of(archive.batches_of(segment, since))))
