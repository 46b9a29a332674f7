"""Points of an experiment with a method from outside go to workers that have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from engine.strategies import registry
from tests.support.experiments import BASE, FIGURE, RATES, fields
from tests.support.waiting_points import ME, stored
from tests.support.web import Browser, RedisServer, Worker, wait_until
from webapp.experiments import executions, points
from webapp.experiments.points import all_points

METHODS = {"name": "strategy", "path": "strategy", "values": ["single", "thirds"]}
TEN_RATES = RATES | {"values": [1e6 * (number + 1) for number in range(10)]}


def code() -> str:
    origin = registry.origin_of("thirds")
    assert origin is not None
    return origin.code


@pytest.mark.django_db
@pytest.mark.usefixtures("nobody_hears")
def test_a_worker_takes_only_points_whose_method_it_has(
    anna: User, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = executions.start(stored(anna, factors=[METHODS, RATES]))
    found = points.take(ME, 10)
    assert [one.method for one in found] == ["", ""]
    assert not points.is_any_for_this_worker(points.PREDICTED), "it would look in vain"
    assert points.waiting(points.PREDICTED).count() == 2
    for present in ((), ("two-thirds 0.2 other",)):
        monkeypatch.setattr(points, "installed_code", lambda present=present: present)
        assert points.take(ME, 10) == []
    monkeypatch.setattr(points, "installed_code", lambda: (code(),))
    assert points.is_any_for_this_worker(points.PREDICTED)
    assert [one.method for one in points.take(ME, 10)] == [code()] * 2
    assert execution.cells.count() == 4


@pytest.mark.django_db
@pytest.mark.usefixtures("nobody_hears")
def test_the_experiment_of_nobody_here_does_not_hold_up_those_behind_it(anna: User, site: Path) -> None:
    executions.start(stored(anna, factors=[METHODS | {"values": ["thirds"]}, RATES]))
    executions.start(stored(anna, factors=[METHODS | {"values": ["single"]}, RATES]))
    assert [one.method for one in points.take(ME, 10)] == ["", ""]


@pytest.mark.django_db
@pytest.mark.usefixtures("nobody_hears")
def test_after_an_upgrade_a_point_still_needs_its_method(anna: User, site: Path) -> None:
    executions.start(stored(anna, factors=[METHODS | {"values": ["thirds"]}, RATES]))
    all_points().update(code_version="older")
    assert points.adopt() == 2
    assert {one.method for one in points.waiting(points.PREDICTED)} == {code()}


@pytest.mark.redis
@pytest.mark.django_db(transaction=True)
def test_points_wait_for_a_worker_with_their_method_and_say_so(
    own_redis: RedisServer, alice: Browser, site: Path, tmp_path: Path
) -> None:
    """The worker without it takes every message for all: the other one wakes itself."""
    about: dict[str, Any] = fields(base=BASE, factors=[METHODS, TEN_RATES], figures=[FIGURE])
    with Worker("points", tmp_path):
        address = f"/experiments/{alice.post('/experiments', {'experiment': about}).json()['id']}"
        assert alice.post(f"{address}/predict").status_code == 202

        def there() -> dict[str, Any]:
            return alice.get(address).json()["progress"]["predicted"]

        wait_until(lambda: there()["done"] == 10, "the points of EdgeLoom's own method")
        assert there()["lacking"] == {code(): 10} and there()["failed"] == 0
        assert there()["left_s"] is None
        (tmp_path / "other").mkdir()
        with Worker("points", tmp_path / "other", PYTHONPATH=str(site), LOOM_METHODS="thirds"):
            wait_until(lambda: there()["done"] == 20, "the points of the method from outside")
        assert there()["lacking"] == {}
    rows = alice.get(f"{address}/rows").json()["rows"]
    assert {row["outcome"] for row in rows} == {"finished"}
