"""The past of a run as columns: the same events as one by one, from wherever they are."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.events import to_json, to_json_text
from tests.support.web import ROOT, Browser, recorded
from tests.webapp.events.test_live import in_pieces, new_run, published
from tests.webapp.runs.test_stored_runs import put, stored
from webapp.events import past, stream
from webapp.events.columns import Deflated, chunk_of, deflated, joined
from webapp.events.publisher import Publisher
from webapp.events.stream import Batch
from webapp.jobs.lease import owner_of

FIELDS = ("start_s", "end_s", "bytes", "payload_bytes", "flops", "layer", "request", "token", "message")
TEXTS = ("device", "kind", "name", "peer")


def events_of(chunk: bytes) -> tuple[str, list[dict[str, Any]], bytes]:
    """The cursor and the events of a chunk, after its description; and what follows it."""
    (length,) = struct.unpack_from("<I", chunk)
    head = json.loads(chunk[4 : 4 + length])
    count, columns = head["spans"], chunk[4 + length :]
    assert (4 + length) % 8 == 0, "columns begin where a browser can read them in place"
    numbers = [*struct.unpack_from(f"<{5 * count}d", columns)]
    numbers += struct.unpack_from(f"<{8 * count}i", columns, 40 * count)
    found: list[dict[str, Any]] = []
    for values in (numbers[at::count] for at in range(count)):
        texts = {field: head["names"][int(place)] for field, place in zip(TEXTS, values[9:], strict=True)}
        found.append({"type": "span", **dict(zip(FIELDS, values, strict=False)), **texts})
    for done, (event, before) in enumerate(head["others"]):
        found.insert(done + before, event)
    return head["cursor"], found, columns[72 * count :]


def read(browser: Browser, run_id: int, since: int = 0) -> tuple[int, list[dict[str, Any]], bool]:
    """Cursor, events, and whether this was all, of one page."""
    answer = browser.get(f"/runs/{run_id}/past?since={since}")
    assert answer.status_code == 200, answer.content
    events: list[dict[str, Any]] = []
    cursor, rest = str(since), answer.content
    while len(rest) > 4:
        cursor, found, rest = events_of(rest)
        events += found
    assert rest in (b"", bytes(4))
    return int(cursor), events, len(rest) == 4


def test_a_chunk_is_what_the_front_end_reads() -> None:
    golden = json.loads((ROOT / "webapp/frontend/src/run/data/columns.golden.json").read_text())
    batches = [Batch(41 + at, json.dumps(events)) for at, events in enumerate(golden["batches"])]
    chunk = chunk_of(batches)
    assert events_of(chunk) == ("42", [event for events in golden["batches"] for event in events], b"")
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


@pytest.mark.redis
@pytest.mark.django_db(transaction=True)
def test_what_follows_a_gap_is_left_to_the_feed(alice: Browser, live_redis) -> None:
    events, _ = recorded()
    run = new_run()
    owner = owner_of(run)
    with Publisher(owner) as publisher:
        publisher.publish(events[:40])
        publisher.flush()
        cursor, found, _ = read(alice, run.pk)
        stream.append(owner, Batch(cursor + 2, to_json_text(events[40:50])), vouched=True)
        assert read(alice, run.pk) == (cursor, found, True)
        assert found == to_json(events[:40])


@pytest.mark.django_db
def test_old_events_are_read_as_present_ones(alice: Browser) -> None:
    run = put(stored("voltage"))
    _, found, whole = read(alice, run.pk)
    then = alice.get(f"/runs/{run.pk}/events").json()["events"]
    assert whole and [event["type"] for event in found] == [event["type"] for event in then]
    for event, before in zip(found, then, strict=True):
        assert before.items() <= event.items()
    assert alice.get(f"/runs/{run.pk + 1}/past").status_code == 404


@pytest.mark.django_db
def test_the_past_comes_compressed_for_whoever_takes_that(alice: Browser) -> None:
    run = put(stored("voltage"))
    path = f"/api/runs/{run.pk}/past"
    plain = alice.client.get(path)
    small = alice.client.get(path, headers={"accept-encoding": "gzip, deflate, br"})
    assert small["Content-Encoding"] == "deflate" and not plain.has_header("Content-Encoding")
    assert zlib.decompress(small.content) == plain.content
    assert len(small.content) < len(plain.content) / 4


@given(st.lists(st.binary(max_size=300_000), max_size=5))
@settings(max_examples=25, deadline=None)
def test_contents_that_were_compressed_alone_are_one_stream(contents: list[bytes]) -> None:
    assert zlib.decompress(joined([deflated(content) for content in contents])) == b"".join(contents)


def test_what_was_needed_last_is_kept_up_to_a_limit() -> None:
    chunk = Deflated(bytes(100), 1, 0)
    kept = past.Kept(250)
    made: list[int] = []

    def ask(number: int) -> None:
        def make() -> Deflated:
            made.append(number)
            return chunk

        assert kept.get((b"segment", number), make) is chunk

    for number in (1, 2, 1, 3, 1, 2):
        ask(number)
    assert made == [1, 2, 3, 2], "2 was the one that nobody had asked for longest when 3 came"
    assert kept.bytes == 200
