"""What a page reads of a run's past when it opens: stored segments and the stream as chunks of columns."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

from webapp.runs import archive, stream
from webapp.runs.columns import compressed, framed
from webapp.runs.models import EventSegment, Run

PAGE_BYTES = 2_000_000
"""About 150,000 events, which take a server 0.3 s when nobody has asked for them before."""
KEPT_BYTES = 64_000_000
END = framed(b"")


class Kept:
    """The answers that were needed last, together at most `most_bytes`. For all threads."""

    def __init__(self, most_bytes: int):
        self.most_bytes = most_bytes
        self.bytes = 0
        self.answers: OrderedDict[tuple[bytes, int], bytes] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: tuple[bytes, int], make: Callable[[], bytes]) -> bytes:
        with self.lock:
            if key in self.answers:
                self.answers.move_to_end(key)
                return self.answers[key]
        made = make()  # two threads may make the same: the lock is not held so long
        with self.lock:
            self.bytes += len(made) - len(self.answers.get(key, b""))
            self.answers[key] = made
            while self.bytes > self.most_bytes:
                _, oldest = self.answers.popitem(last=False)
                self.bytes -= len(oldest)
        return made


kept = Kept(KEPT_BYTES)
"""By the content of a segment, which never changes, and the cursor. Only what people look at is ever made."""


def page_of_past(run_id: int, since: int) -> bytes:
    """Frames, each a compressed chunk (`webapp/runs/columns.py`), of the events after batch `since`.

    An empty frame at the end says that there is no more now; without it, ask again from the newest cursor.
    What follows a gap in the numbers of the stream is left to the feed. Raises Redis' errors for a live run.
    """
    frames: list[bytes] = []
    size = 0
    while (segment := archive.segment_after(run_id, since)) is not None:
        if size >= PAGE_BYTES:
            return b"".join(frames)
        chunk = chunk_of_segment(segment, since)
        frames.append(framed(chunk))
        size, since = size + len(chunk), segment.last
    if not Run.objects.filter(pk=run_id, archived=True).exists():
        live = stream.batches(run_id, since)
        if live and live[0].number == since + 1:
            frames.append(framed(compressed(live)))
    return b"".join((*frames, END))


def chunk_of_segment(segment: EventSegment, since: int) -> bytes:
    stored = bytes(segment.batches) + bytes([segment.schema])
    content = hashlib.blake2b(stored, digest_size=16).digest()
    key = content, max(since, segment.first - 1)
    return kept.get(key, lambda: compressed(archive.batches_of(segment, since)))
