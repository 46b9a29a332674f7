"""Probes, metrics and logs: what a person or a program that watches a server reads."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from contextlib import closing
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from tests.support.web import Browser, RedisServer
from webapp.base.logs import JsonLines
from webapp.http import health
from webapp.jobs import announcement as fleet
from webapp.jobs import workers
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
ANN = workers.Identity("emulate@ann", "home", 7, 70)


@pytest.fixture
def ann(live_redis: redis.Redis) -> Any:
    for key in live_redis.scan_iter(match="worker:*"):
        live_redis.delete(key)
    one = workers.introduction(ANN, "emulate", 1, event_lag_s=0.25, cores=2, load_1min=3.0)
    fleet.announce(one)
    yield one
    fleet.withdraw(one)


# Probes -------------------------------------------------------------------------------------------
def probe(path: str) -> tuple[int, Any]:
    answer = Client().get(path)
    return answer.status_code, answer.json()


def test_a_server_without_workers_is_ready_and_says_which_are_missing(ann: Any) -> None:
    status, found = probe("/healthz")
    assert status == 200
    assert [found[part] for part in ("web", "database", "redis", "storage", "emulate")] == ["ok"] * 5
    assert found["plan"] == found["points"] == "no worker"
    assert probe("/healthz/emulate") == (200, {"emulate": "ok"})
    assert probe("/healthz/plan") == (503, {"plan": "no worker"})
    assert probe("/healthz/workers")[0] == 503
    fleet.announce(ann.model_copy(update={"refused": "it was drained by eve"}))
    assert probe("/healthz/emulate") == (503, {"emulate": "no worker"})
    assert Client().get("/healthz/kitchen").status_code == 404


def test_without_redis_the_web_process_is_alive_and_not_ready(own_redis: RedisServer) -> None:
    own_redis.stop()
    assert probe("/healthz/web") == (200, {"web": "ok"})
    status, found = probe("/healthz")
    assert (status, found["web"], found["database"], found["redis"]) == (503, "ok", "ok", "does not answer")
    assert probe("/healthz/database")[0] == 200 and probe("/healthz/redis")[0] == 503


def test_without_a_database_it_is_not_ready(ann: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OperationalError("no connection")

    monkeypatch.setattr(connection, "cursor", fails)
    status, found = probe("/healthz")
    assert (status, found["database"], found["redis"]) == (503, "does not answer", "ok")


# Metrics ------------------------------------------------------------------------------------------
def samples(**more: Any) -> dict[tuple[str, ...], float]:
    """Name and values of the labels → value, as Prometheus' own parser reads them."""
    answer = Client().get("/metrics", **more)
    assert answer.status_code == 200, answer.content
    families = text_string_to_metric_families(answer.content.decode())
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_metrics_count_runs_waits_verdicts_lag_and_workers(ann: Any) -> None:
    now = timezone.now()
    started = [
        Run.objects.create(request={}, spec={}, status="finished", valid=valid, correct=correct)
        for valid, correct in ((True, True), (False, True), (True, False))
    ]
    for run, wait_s in zip(started, (1, 2, 6), strict=True):
        Run.objects.filter(pk=run.pk).update(
            created_at=now - timedelta(seconds=100), started_at=now - timedelta(seconds=100 - wait_s)
        )
    waiting = Run.objects.create(request={}, spec={})
    Run.objects.filter(pk=waiting.pk).update(created_at=now - timedelta(seconds=50))
    found = samples()
    assert found["edgeloom_runs", "finished"] == 3 and found["edgeloom_runs", "queued"] == 1
    verdicts = [found["edgeloom_run_verdicts", one] for one in ("valid", "invalid", "wrong")]
    assert verdicts == [1, 1, 1]
    assert found[("edgeloom_queue_wait_mean_seconds",)] == pytest.approx(3.0)
    assert found[("edgeloom_queue_wait_max_seconds",)] == pytest.approx(6.0)
    assert found[("edgeloom_queue_oldest_seconds",)] >= 50
    assert found["edgeloom_event_lag_seconds", str(ANN)] == 0.25
    assert found["edgeloom_worker_load", str(ANN)] == 1.5
    assert found["edgeloom_workers", "emulate", "working"] == 1
    assert found["edgeloom_workers", "plan", "working"] == 0
    assert found[("edgeloom_redis_up",)] == 1


def test_metrics_are_for_this_machine_or_for_who_has_the_token(ann: Any, settings: Any) -> None:
    far = {"REMOTE_ADDR": "192.0.2.7"}
    assert Client().get("/metrics", **far).status_code == 403
    assert Client().get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 403
    for header in ("Forwarded", "X-Forwarded-Proto", "X-Real-IP", "Via"):
        assert Client().get("/metrics", headers={header: "of a proxy"}).status_code == 403, header
    assert Client().get("/metrics", REMOTE_ADDR="").status_code == 403, "a Unix socket has no address"
    assert Client().get("/metrics", headers={"Authorization": "Bearer "}, **far).status_code == 403
    settings.METRICS_TOKEN = "s3cret"
    assert Client().get("/metrics", headers={"Authorization": "Bearer wrong"}, **far).status_code == 403
    assert samples(headers={"Authorization": "Bearer s3cret"}, **far)


def busy_timeout_ms() -> int:
    (found,) = connection.connection.execute("PRAGMA busy_timeout").fetchone()
    return int(found)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite locks the whole database")
def test_health_says_that_the_database_is_locked_and_waits_for_it_much_shorter_than_others(
    ann: Any, alice: Browser
) -> None:
    orphan = Run.objects.create(request={}, spec={}, worker=str(ANN), lease_until=timezone.now())
    Run.objects.update(lease_until=timezone.now() + timedelta(days=1))  # too long: it is to be shortened
    secret = alice.post("/account/tokens", {"name": "probe", "role": "viewer"}).json()["secret"]
    patience_ms: list[int] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("UPDATE"):
            patience_ms.append(busy_timeout_ms())
        return execute(sql, params, many, context)

    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with connection.execute_wrapper(note):
            answer = Client().get("/api/health", headers={"Authorization": f"Bearer {secret}"}).json()
        other.execute("ROLLBACK")
    assert "locked" in answer["storage"]
    assert answer["busy_run"] is answer["redis"] is None
    assert len(patience_ms) == 2 and max(patience_ms) <= 500, "of the token's use, and of the job"
    assert busy_timeout_ms() == 20_000
    assert alice.get("/health").json()["storage"] is None
    orphan.refresh_from_db()
    assert orphan.lease_until < timezone.now() + timedelta(hours=1)


def test_missing_workers_may_be_on_their_way_only_while_the_server_is_young(
    alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "alive", lambda: {"emulate": [], "plan": ["one"], "points": []})
    monkeypatch.setattr(health, "BEGAN_S", time.monotonic())
    assert alice.get("/health").json()["starting"]
    monkeypatch.setattr(health, "BEGAN_S", time.monotonic() - health.STARTS_S)
    assert not alice.get("/health").json()["starting"]
    monkeypatch.setattr(health, "BEGAN_S", time.monotonic())
    monkeypatch.setattr(workers, "alive", lambda: {"emulate": ["two"], "plan": ["one"], "points": []})
    assert not alice.get("/health").json()["starting"]


def test_metrics_without_redis_say_so(own_redis: RedisServer) -> None:
    own_redis.stop()
    assert samples()[("edgeloom_redis_up",)] == 0


# Logs ---------------------------------------------------------------------------------------------
def line(message: str, *arguments: Any, thread: str = "MainThread", error: bool = False) -> dict[str, Any]:
    info = None
    if error:
        try:
            raise ValueError("broken")
        except ValueError as caught:
            info = (ValueError, caught, caught.__traceback__)
    record = logging.LogRecord("webapp", logging.WARNING, str(Path(__file__)), 1, message, arguments, info)
    record.threadName = thread
    text = JsonLines().format(record)
    assert "\n" not in text
    row: dict[str, Any] = json.loads(text)
    return row


def test_a_json_line_names_its_run_by_the_thread_or_by_the_message() -> None:
    assert threading.current_thread().name == "MainThread"
    assert line("Redis is\nback", thread="publisher of run 12")["run"] == 12
    assert line("run %s gets no prediction", 7)["run"] == 7
    assert "run" not in line("the worker runs 3 threads")
    assert "ValueError: broken" in line("run 5 broke", error=True)["exception"]


def test_a_request_for_another_host_is_one_line_of_the_log_and_a_defect_has_its_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody could fill the log with traces of his own requests."""
    (console,) = [one for one in logging.getLogger().handlers if type(one) is logging.StreamHandler]
    written = StringIO()
    monkeypatch.setattr(console, "stream", written)
    assert Client().get("/api/session", headers={"host": "evil.example"}).status_code == 400
    assert "'evil.example'" in written.getvalue() and "Traceback" not in written.getvalue()
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("django.request").exception("it broke")
    assert "ValueError: broken" in written.getvalue()
