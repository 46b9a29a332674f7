"""The past of a run as columns: the same events as one by one, from wherever they are."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from engine.domain.events import to_json
from tests.support.web import ROOT, Browser, recorded
from tests.webapp.test_live import in_pieces, new_run, published
from tests.webapp.test_stored_runs import put, stored
from webapp.runs import past
from webapp.runs.columns import chunk_of
from webapp.runs.live import Publisher
from webapp.runs.ownership import owner_of
from webapp.runs.stream import Batch

FIELDS = ("start_s", "end_s", "bytes", "payload_bytes", "flops", "layer", "request", "token", "message")
TEXTS = ("device", "kind", "name", "peer")


def events_of(chunk: bytes) -> tuple[str, list[dict[str, Any]]]:
    """The cursor and the events of a chunk, after its description."""
    (length,) = struct.unpack_from("<I", chunk)
    head = json.loads(chunk[4 : 4 + length])
    count, columns = head["spans"], chunk[4 + length :]
    assert (4 + length) % 8 == 0, "columns begin where a browser can read them in place"
    numbers = [*struct.unpack_from(f"<{5 * count}d", columns)]
    numbers += struct.unpack_from(f"<{8 * count}i", columns, 40 * count)
    assert len(columns) == 72 * count
    found: list[dict[str, Any]] = []
    for values in (numbers[at::count] for at in range(count)):
        texts = {field: head["names"][int(place)] for field, place in zip(TEXTS, values[9:], strict=True)}
        found.append({"type": "span", **dict(zip(FIELDS, values, strict=False)), **texts})
    for done, (event, before) in enumerate(head["others"]):
        found.insert(done + before, event)
    return head["cursor"], found


def frames_of(body: bytes) -> Iterator[bytes]:
    while body:
        (length,) = struct.unpack_from("<I", body)
        yield body[4 : 4 + length]
        body = body[4 + length :]


def read(browser: Browser, run_id: int, since: int = 0) -> tuple[int, list[dict[str, Any]], bool]:
    """Cursor, events, and whether this was all, of one page."""
    answer = browser.get(f"/runs/{run_id}/past?since={since}")
    assert answer.status_code == 200, answer.content
    events: list[dict[str, Any]] = []
    cursor = since
    for frame in frames_of(answer.content):
        if not frame:
            return cursor, events, True
        name, found = events_of(zlib.decompress(frame))
        cursor, events = int(name), events + found
    return cursor, events, False


def test_a_chunk_is_what_the_front_end_reads() -> None:
    golden = json.loads((ROOT / "webapp/frontend/src/run/data/columns.golden.json").read_text())
    batches = [Batch(41 + at, json.dumps(events)) for at, events in enumerate(golden["batches"])]
    chunk = chunk_of(batches)
    assert events_of(chunk) == ("42", [event for events in golden["batches"] for event in events])
    assert base64.b64encode(chunk).decode() == golden["chunk"]


@pytest.mark.redis
@pytest.mark.django_db(transaction=True)
def test_the_past_of_a_live_run_is_what_is_stored_and_what_is_streamed(alice: Browser, live_redis) -> None:
    events, _ = recorded()
    run = new_run()
    half = len(events) // 2
    with Publisher(owner_of(run)) as publisher:
        for piece in in_pieces(events[:half], 40):
            published(publisher, piece)
        publisher.flush()
        for piece in in_pieces(events[half:], 40):
            published(publisher, piece)
        cursor, found, whole = read(alice, run.pk)
        assert (found, whole) == (to_json(events), True)
        assert read(alice, run.pk, cursor) == (cursor, [], True)
        newest = read(alice, run.pk, cursor - 1)[1]
        assert newest and newest == to_json(events)[-len(newest) :]
    assert read(alice, run.pk)[1] == to_json(events), "and the same when it is archived"


@pytest.mark.redis
@pytest.mark.django_db(transaction=True)
def test_a_page_ends_after_a_segment_and_the_next_one_goes_on(
    alice: Browser, live_redis, monkeypatch
) -> None:
    monkeypatch.setattr(past, "PAGE_BYTES", 1)
    events, _ = recorded()
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        for number, piece in enumerate(in_pieces(events, len(events) // 9)):
            published(publisher, piece)
            if number % 3 == 2:
                publisher.flush()
    cursor, found, whole = read(alice, run.pk)
    assert not whole and 0 < len(found) < len(events)
    inside = read(alice, run.pk, 1)[1]
    assert 0 < len(inside) < len(found)
    assert inside == found[len(found) - len(inside) :], "a cursor within a segment is followed by its rest"
    while not whole:
        cursor, more, whole = read(alice, run.pk, cursor)
        found += more
    assert found == to_json(events)


@pytest.mark.django_db
def test_old_events_are_read_as_present_ones(alice: Browser) -> None:
    run = put(stored(1, "voltage"), 1)
    _, found, whole = read(alice, run.pk)
    then = alice.get(f"/runs/{run.pk}/events").json()["events"]
    assert whole and [event["type"] for event in found] == [event["type"] for event in then]
    for event, before in zip(found, then, strict=True):
        assert before.items() <= event.items()
    assert alice.get(f"/runs/{run.pk + 1}/past").status_code == 404


def test_what_was_needed_last_is_kept_up_to_a_limit() -> None:
    kept = past.Kept(250)
    made: list[int] = []

    def answer(number: int) -> bytes:
        def make() -> bytes:
            made.append(number)
            return bytes(100)

        return kept.get((b"segment", number), make)

    for number in (1, 2, 1, 3, 1, 2):
        assert answer(number) == bytes(100)
    assert made == [1, 2, 3, 2], "2 was the one that nobody had asked for longest when 3 came"
    assert kept.bytes == 200
