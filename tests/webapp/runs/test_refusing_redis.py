"""A Redis that is there and says no: people get sentences, and what goes on goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from engine.domain.events import EVENTS
from tests.support.refusing_redis import REFUSALS, full, replica
from tests.support.web import Browser, RedisServer, Worker, person, recorded, request_body, wait_until
from webapp.base.errors import Unavailable
from webapp.base.redis import push, redis_needed
from webapp.events.archive import history
from webapp.jobs import answers, lease, workers
from webapp.jobs.models import OVER
from webapp.runs import recording, services, waiting
from webapp.runs.control import CommandFeed
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
ME = workers.this_worker("emulate@here")


@pytest.fixture(params=REFUSALS, ids=[how.__name__ for how in REFUSALS.values()])
def refusal(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(alice: Browser, own_redis: RedisServer) -> Iterator[Run]:
    """A run that a worker has taken."""
    run_id = alice.post("/runs", request_body()).json()["id"]
    claimed = waiting.claim(run_id, ME)
    assert claimed is not None
    services.progress(lease.owner_of(claimed), "running", "")
    yield claimed


def test_people_log_in_and_cancel_and_what_cannot_be_done_is_a_sentence(
    refusal: str, run: Run, alice: Browser, own_redis: RedisServer
) -> None:
    person("eve", "operator")
    with REFUSALS[refusal](own_redis):
        eve = Browser()
        assert eve.log_in("eve").status_code == 200
        started = eve.post("/runs", request_body())
        assert started.status_code == 503 and f"refuses: {refusal}" in started.json()["detail"]
        assert Run.objects.get() == run, "who is refused has no run"
        change = {"command": {"kind": "drop_device", "device": run.spec["cluster"]["devices"][1]["name"]}}
        assert alice.post(f"/runs/{run.pk}/changes", change).status_code == 503
        assert alice.post(f"/runs/{run.pk}/cancel").status_code == 202
        assert Run.objects.get(pk=run.pk).cancel_by == "alice"
        assert alice.get("/health").json()["redis"].startswith(f"refuses: {refusal}")
        probe = Client().get("/healthz")
        assert probe.status_code == 503 and probe.json()["redis"].startswith(f"refuses: {refusal}")
    assert Client().get("/healthz").status_code == 200
    assert eve.post("/runs", request_body()).status_code == 201


def test_nobody_is_told_to_start_a_worker_that_redis_does_not_let_speak(
    refusal: str, planning_as_it_is: None, own_redis: RedisServer
) -> None:
    with REFUSALS[refusal](own_redis), pytest.raises(Unavailable, match=f"refuses: {refusal}"):
        answers.ask("plan.test", [], 1)


def test_a_refusal_says_why_and_not_what_was_to_be_written(refusal: str, own_redis: RedisServer) -> None:
    with REFUSALS[refusal](own_redis), pytest.raises(Unavailable) as caught, redis_needed():
        push("ctl:1", "a prompt of somebody. " * 20, keep_s=1)
    assert f"refuses: {refusal}" in str(caught.value) and "prompt" not in str(caught.value)


def test_a_run_goes_on_and_keeps_its_events_and_its_report(
    refusal: str, run: Run, own_redis: RedisServer
) -> None:
    events, report = recorded()
    owner = lease.owner_of(run)
    publisher = recording.publisher_of(owner)
    watch = recording.Watch(owner, publisher)
    with publisher, CommandFeed(run.pk, publisher) as commands:
        watch(events[:20])
        with REFUSALS[refusal](own_redis):
            watch(events[20:])
            wait_until(lambda: publisher.log.redis_was_gone or publisher.failure, "the refusal")
            recording.keep(owner, publisher, report)
            assert commands.thread.is_alive()
    run.refresh_from_db()
    assert (run.status, run.archived) == ("finished", True) and run.report is not None
    kept = [event for batch in history(run.pk, 0) for event in EVENTS.validate_json(batch.events)]
    passed = [event for event in events if not recording.is_ending(event)]
    assert [event for event in kept if event in passed] == passed


def test_a_worker_waits_for_a_redis_that_has_become_a_replica(
    own_redis: RedisServer, planning_as_it_is: None, alice: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Worker("plan", tmp_path_factory.mktemp("plan")) as worker:
        process = worker.process
        assert process is not None
        with replica(own_redis):
            wait_until(
                lambda: process.poll() is not None or "Trying to reconnect" in worker.log.read_text(), "it"
            )
        assert process.poll() is None, "it waits"
        assert alice.post("/predict", request_body()).status_code == 200


@pytest.mark.root
def test_an_emulation_outlives_a_redis_that_is_full(
    own_redis: RedisServer, alice: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Worker("emulate", tmp_path_factory.mktemp("emulate")):
        run_id = alice.post("/runs", request_body(dilation=4.0)).json()["id"]

        def begun() -> bool:
            return Run.objects.get(pk=run_id).status not in ("queued", "planning")

        wait_until(begun, "the run to begin")
        with full(own_redis):
            wait_until(lambda: Run.objects.get(pk=run_id).status in OVER, "its end")
            assert Client().get("/healthz").status_code == 503
        wait_until(lambda: Run.objects.get(pk=run_id).archived, "its events")
    run = alice.get(f"/runs/{run_id}").json()
    assert run["status"] == "finished", run["error"]
    assert run["correct"] is True
