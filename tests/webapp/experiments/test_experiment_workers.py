"""An experiment that real workers predict, and resume after what people fear."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.experiments import BASE, fields
from tests.support.web import Browser, RedisServer, Worker, wait_until
from webapp.experiments.points import all_points

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
MANY = [1e6 * (number + 1) for number in range(30)]
TRIES = 6


def begun(browser: Browser, **changes: Any) -> str:
    """An experiment that is being predicted; returns its address."""
    answer = browser.post("/experiments", {"experiment": fields(**changes)})
    assert answer.status_code == 201, answer.content
    address = f"/experiments/{answer.json()['id']}"
    assert browser.post(f"{address}/predict").status_code == 202
    return address


def rows_of(browser: Browser, address: str) -> list[dict[str, Any]]:
    return browser.get(f"{address}/rows").json()["rows"]


def finished(browser: Browser, address: str) -> dict[str, Any]:
    return wait_until(
        lambda: (found := browser.get(address).json())["state"] == "finished" and found, "the points"
    )


def killed_in_the_middle(worker: Worker, browser: Browser, new_tokens: int) -> tuple[str, set[int]]:
    """The address of an experiment whose worker is killed after its first point, and what is done of it."""
    factors = [{"name": "rate", "unit": "bit/s", "path": "cluster.links[*].bit_per_s", "values": MANY}]
    longer = {"prompt_tokens": 8, "new_tokens": new_tokens}
    before = list(all_points().filter(status="finished").values_list("pk", flat=True))
    address = begun(browser, base=BASE | {"strategy": "voltage", "workload": longer}, factors=factors)
    new = all_points().filter(status="finished").exclude(pk__in=before)
    wait_until(new.exists, "the first point")
    worker.stop(signal.SIGKILL)
    return address, set(new.values_list("pk", flat=True))


def test_points_survive_the_death_of_their_worker_and_an_empty_redis(
    own_redis: RedisServer, alice: Browser, tmp_path: Path
) -> None:
    """Killed in the middle of a point, and the messages of all others lost."""
    worker = Worker("points", tmp_path)
    with worker:
        for new_tokens in range(40, 40 + TRIES):
            address, done = killed_in_the_middle(worker, alice, new_tokens)
            if len(done) < len(MANY):
                break
            worker.start()  # this host let the worker finish before it let this test look
        assert len(done) < len(MANY), "the worker was not killed in the middle"
        own_redis.stop()
        assert alice.get(address).json()["progress"]["predicted"]["done"] == len(done)
        own_redis.start()
        times = dict(all_points().filter(pk__in=done).values_list("pk", "changed_at"))
        worker.start()
        detail = finished(alice, address)
    assert detail["done"] == len(MANY) and detail["failed"] == 0
    assert dict(all_points().filter(pk__in=done).values_list("pk", "changed_at")) == times
    totals = [row["metrics"]["latency_s"] for row in rows_of(alice, address)]
    assert totals == sorted(totals, reverse=True), "a faster link is never slower"
