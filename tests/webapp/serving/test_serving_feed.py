"""Whose request an event belongs to, and what happens to those who ask when reading a run breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from webapp.events.stream import Batch
from webapp.serving import feed, served

RUN = 7


@pytest.fixture
def follows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a run was followed; each time reading ends with an error of Redis."""
    begun: list[int] = []

    async def newest(run_id: int) -> int:
        return 0

    async def follow(run_id: int, since: int) -> AsyncGenerator[list[Batch]]:
        begun.append(run_id)
        yield []
        raise redis.ConnectionError

    monkeypatch.setattr(feed, "newest", newest)
    monkeypatch.setattr(feed, "follow", follow)
    return begun


async def test_who_asks_after_reading_broke_off_reads_anew_though_somebody_listens_still(
    follows: list[int],
) -> None:
    async with feed.listening(RUN, "slow") as slow:
        assert (await asyncio.wait_for(slow.get(), 120))["type"] == "over"
        async with feed.listening(RUN, "new") as new:
            assert (await asyncio.wait_for(new.get(), 120))["type"] == "over"
        assert follows == [RUN, RUN]


async def test_events_reach_the_request_that_they_belong_to_and_no_other(follows: list[int]) -> None:
    async with feed.listening(RUN, "one") as one, feed.listening(RUN, "other") as other:
        assert {(await asyncio.wait_for(queue.get(), 120))["type"] for queue in (one, other)} == {"over"}
        run = next(iter(feed._feeds[asyncio.get_running_loop()].values()))
        for number, name in enumerate(("one", "other")):
            run.take(mark("request_accepted", request=number, id=name))
            run.take(mark("token_emitted", request=number, token=10 + number))
        run.take({"type": "request_refused", "id": "other", "reason": "full"})
        assert [item.get("facts", {}).get("token") for item in drained(one)] == [None, 10]
        assert [item["type"] for item in drained(other)] == ["mark", "mark", "request_refused"]


def mark(name: str, **facts: Any) -> dict[str, Any]:
    return {"type": "mark", "name": name, "facts": facts}


def drained(queue: asyncio.Queue[dict[str, Any]]) -> list[dict[str, Any]]:
    return [queue.get_nowait() for _ in range(queue.qsize())]


def test_a_request_is_of_the_person_whose_whole_number_its_name_begins_with() -> None:
    user: Any = SimpleNamespace(pk=1)
    assert served.is_of("1-ab", user)
    assert not served.is_of("11-ab", user)
