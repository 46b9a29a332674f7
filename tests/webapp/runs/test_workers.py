"""Real worker processes, started as people start them: predictions, and whole emulated runs."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import redis

import topologies
from emulator.calibration.known import host_name
from emulator.host.leftovers import Process, children, is_alive
from emulator.host.places import queue_name
from emulator.session.turns import turn
from engine.domain.calibration import Calibration
from engine.domain.host_times import HostProfile, MeasuredRow
from engine.domain.report import RunReport
from tests.support import experiments
from tests.support.web import Browser, Worker, request_body, wait_until
from webapp.celery import app as celery
from webapp.jobs import answers
from webapp.jobs.models import OVER
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
EMULATION_S = 600.0
"""Patience, not a measurement: a cold start calibrates the host first."""


# Predictions --------------------------------------------------------------------------------------
def test_a_prediction_by_measured_times_needs_a_calibrated_host(
    live_redis: redis.Redis, alice: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "ask", computed_here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    refused = alice.post("/predict", request_body(compute_model="measured"))
    assert refused.status_code == 422 and "./loom calibrate" in refused.json()["detail"]

    profile = HostProfile(
        host=host_name(),
        products=(MeasuredRow(rows=1, s_per_flop=1e-9),),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-5,
        memory_byte_per_s=1e10,
    )
    calibration = Calibration(profile=profile, device=topologies.presets()[0])
    (tmp_path / "edgeloom").mkdir(exist_ok=True)
    (tmp_path / "edgeloom" / "calibration.json").write_text(calibration.to_json())
    answer = alice.post("/predict", request_body(compute_model="measured"))
    assert answer.json()["report"]["spec"]["profile"]["host"] == host_name()
    assert answer.json()["report"]["latency_s"] > 0


def computed_here(task: str, arguments: list[Any], person: int, large: bool = False) -> dict[str, Any]:
    """Every question to a planning worker; `tests/webapp/conftest.py` answers those of plans alone."""
    return answers.answer_of(json.loads(json.dumps(celery.tasks[task].answer(*arguments))))


def test_without_a_planning_worker_the_sentence_says_how_to_start_one(
    alice: Browser, live_redis: redis.Redis
) -> None:
    for key in live_redis.scan_iter(match="worker:*"):
        live_redis.delete(key)
    answer = alice.post("/predict", request_body())
    assert answer.status_code == 503
    assert "./loom worker --queue plan" in answer.json()["detail"]


# Emulation ----------------------------------------------------------------------------------------
def start(browser: Browser, **overrides: Any) -> int:
    """A run of a fixed dilation: the automatic one is the larger, the busier this machine has been."""
    response = browser.post("/runs", request_body(**{"dilation": 4.0} | overrides))
    assert response.status_code == 201, response.content
    return response.json()["id"]


def events_of(browser: Browser, run_id: int) -> list[dict[str, Any]]:
    return browser.get(f"/runs/{run_id}/events").json()["events"]


def over(browser: Browser, run_id: int) -> dict[str, Any]:
    """The run, once it is over and its events are archived."""
    wait_until(lambda: Run.objects.get(pk=run_id).archived, f"run {run_id} to end", EMULATION_S)
    run = browser.get(f"/runs/{run_id}").json()
    assert run["status"] in OVER
    return run


def until_running(run_id: int) -> None:
    def seen() -> bool:
        run = Run.objects.get(pk=run_id)
        assert run.status not in OVER, run.error
        return run.status == "running"

    wait_until(seen, "the run to run", EMULATION_S)


LONG = {"workload": {"prompt_tokens": 8, "new_tokens": 50, "requests": 20}, "dilation": 50.0}
"""A run that is still running when somebody presses a button."""


@pytest.mark.root
@pytest.mark.usefixtures("live_redis")
def test_an_emulated_run_goes_from_request_to_report(emulate_worker: Worker, alice: Browser) -> None:
    run_id = start(alice)
    run = over(alice, run_id)
    assert run["status"] == "finished", run["error"]
    assert run["correct"] is True
    assert run["report"]["world"] == "emulated"
    assert RunReport.parse(run["report"], "stored").correctness.token_identical
    assert run["figures"]["tokens_per_s"] > 0 and run["finished_at"] > run["started_at"]

    events = events_of(alice, run_id)
    states = [event["state"] for event in events if event["type"] == "state"]
    assert states[0] == "queued" and states[-1] == "finished" and "running" in states
    assert events[-1]["type"] == "report"
    assert {key: events[-1][key] for key in run["report"]} == run["report"]
    tokens = [e["facts"]["token"] for e in events if e["type"] == "mark" and e["name"] == "token_emitted"]
    assert tokens == run["report"]["output_tokens"]
    spans = sum(event["type"] == "span" for event in events)
    trace = alice.get(f"/runs/{run_id}/trace.json").json()["traceEvents"]
    assert sum(event["ph"] == "X" for event in trace) == spans > 0


@pytest.mark.root
@pytest.mark.usefixtures("live_redis")
def test_a_live_change_lands_in_the_scenario_and_stop_ends_the_run(
    emulate_worker: Worker, alice: Browser
) -> None:
    run_id = start(alice, **LONG)
    until_running(run_id)
    link = topologies.load("lab-3").links[0].name
    change = {"kind": "set_rate", "link": link, "bit_per_s": 2e7, "direction": "both"}
    assert alice.post(f"/runs/{run_id}/changes", {"command": change}).status_code == 202

    def changed() -> bool:
        marks = [event for event in events_of(alice, run_id) if event["type"] == "mark"]
        return any(mark["name"] == "link_changed" for mark in marks)

    wait_until(changed, "the link to change", EMULATION_S)
    assert alice.delete(f"/runs/{run_id}").status_code == 409
    assert alice.post(f"/runs/{run_id}/cancel").status_code == 202
    run = over(alice, run_id)
    assert (run["status"], run["outcome"]) == ("cancelled", "cancelled")
    (kept,) = run["report"]["scenario"]["changes"]
    assert (kept["kind"], kept["link"], kept["bit_per_s"]) == ("set_rate", link, 2e7)
    assert any(event.get("text", "").startswith("alice asks: set") for event in events_of(alice, run_id))


@pytest.mark.root
@pytest.mark.usefixtures("live_redis")
def test_a_persons_run_goes_before_the_rest_of_an_experiment(emulate_worker: Worker, alice: Browser) -> None:
    fixed = experiments.BASE | {
        "dilation": 4.0
    }  # where that is auto, points that are not valid here would be repeated
    about = experiments.fields(base=fixed, factors=[experiments.STRATEGIES])
    address = f"/experiments/{alice.post('/experiments', {'experiment': about}).json()['id']}"
    assert alice.post(f"{address}/predict").status_code == 202
    assert alice.post(f"{address}/emulate", {"choose": "all"}).status_code == 202
    first = wait_until(lambda: Run.objects.first(), "the first emulation")
    mine = start(alice, name="mine", workload=experiments.BASE["workload"])

    others = Run.objects.exclude(pk__in=(mine, first.pk))
    second = wait_until(others.first, "the second emulation", EMULATION_S)
    assert alice.post(f"{address}/cancel").status_code == 202
    assert Run.objects.get(pk=mine).started_at <= second.created_at
    assert first.tags == second.tags == ["two-by-two"]

    def emulated() -> dict[str, Any] | None:
        rows = [row for row in alice.get(f"{address}/rows").json()["rows"] if row["world"] == "emulated"]
        return next((row for row in rows if row["run_id"] == first.pk and row["state"] == "done"), None)

    assert wait_until(emulated, "the row of the first")["metrics"]["correct"] == 1.0
    wait_until(lambda: Run.objects.filter(archived=True).count() == 3, "three ends", EMULATION_S)


@pytest.mark.root
@pytest.mark.long("webapp/runs", "webapp/jobs", "emulator/session", "engine/runs")
@pytest.mark.usefixtures("live_redis")
def test_a_worker_that_was_killed_leaves_a_failed_run_and_its_successor_goes_on(
    emulate_worker: Worker, alice: Browser
) -> None:
    run_id = start(alice, **LONG)
    until_running(run_id)

    def has_spans() -> bool:
        return any(event["type"] == "span" for event in events_of(alice, run_id))

    wait_until(has_spans, "the run's first operations", EMULATION_S)
    waiting = start(alice)
    below = descendants(emulate_worker.process.pid)
    assert len(below) > 5  # unshare, the session, its namespaces and devices
    emulate_worker.stop(signal.SIGKILL)
    emulate_worker.start()
    run = over(alice, run_id)
    assert run["status"] == "failed"
    assert not any(is_alive(process) for process in below)
    assert "ended or was silent" in run["error"] and "in the middle of this run" in run["error"]
    kept = events_of(alice, run_id)
    assert any(event["type"] == "span" for event in kept)
    assert kept[-1] == {"type": "state", "state": "failed", "detail": run["error"]}
    assert over(alice, waiting)["status"] == "finished"
    records = Path(emulate_worker.environment["EDGELOOM_STATE_DIR"])
    wait_until(lambda: not list(records.glob("session-*")), "the records of all sessions to go")


@pytest.mark.root
def test_a_run_that_waits_for_its_turn_waits_for_the_next_worker_when_its_own_is_stopped(
    emulate_worker: Worker, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGELOOM_STATE_DIR", emulate_worker.environment["EDGELOOM_STATE_DIR"])
    with turn(queue_name(), lambda wait: None):
        run_id = start(alice)
        wait_until(lambda: "ahead" in Run.objects.get(pk=run_id).detail, "the run to wait")
        emulate_worker.stop()
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.error, run.started_at, run.archived) == ("queued", "", None, False)
    emulate_worker.start()
    assert over(alice, run_id)["status"] == "finished"
    states = [event["state"] for event in events_of(alice, run_id) if event["type"] == "state"]
    assert states[:3] == ["queued"] * 3 and "cancelled" not in states and states[-1] == "finished"


@pytest.mark.root
def test_a_run_that_is_only_compared_keeps_its_report_when_its_worker_is_stopped(
    emulate_worker: Worker, alice: Browser
) -> None:
    long = {"prompt_tokens": 8, "new_tokens": 50, "requests": 20}  # to compare it takes some seconds
    run_id = start(alice, workload=long, dilation="native")
    wait_until(
        lambda: Run.objects.get(pk=run_id).status in ("verifying", *OVER), "its comparison", EMULATION_S
    )
    assert emulate_worker.stop() == 0
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.correct, run.archived) == ("finished", True, True), run.error
    emulate_worker.start()


def descendants(pid: int) -> list[Process]:
    found = children(pid)
    return found + [below for child in found for below in descendants(child.pid)]


@pytest.mark.root
@pytest.mark.long("webapp/runs", "webapp/jobs", "engine/runs")
def test_a_run_survives_a_redis_that_restarts_empty_in_the_middle(
    own_redis: Any, transactional_db: None, tmp_path: Any, alice: Browser
) -> None:
    worker = Worker("emulate", tmp_path)
    with worker:
        run_id = start(alice, workload={"prompt_tokens": 8, "new_tokens": 50}, dilation=50.0)
        waiting = start(alice)
        until_running(run_id)
        own_redis.stop()
        link = topologies.load("lab-3").links[0].name
        change = {"command": {"kind": "link_up", "link": link}}
        assert alice.post(f"/runs/{run_id}/changes", change).status_code == 503
        own_redis.start()
        run = over(alice, run_id)
        assert run["status"] == "finished", run["error"]
        events = events_of(alice, run_id)
        tokens = [e["facts"]["token"] for e in events if e["type"] == "mark" and e["name"] == "token_emitted"]
        assert tokens == run["report"]["output_tokens"]
        assert over(alice, waiting)["status"] == "finished", "its message was lost with Redis"
