"""How a run ends in the database: once, with the first ending that it gets, and said in its events."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from engine.domain.events import EVENTS, StateChanged
from engine.domain.report import Outcome, OutcomeKind
from tests.support.web import recorded, request_body, run_spec
from webapp.base.errors import Conflict
from webapp.events import archive, stream
from webapp.events.event_log import EventLog
from webapp.jobs import workers
from webapp.jobs.lease import Lost, owner_of
from webapp.jobs.models import ACTIVE, OVER
from webapp.runs import closing, control, recording, services
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)
ME = workers.Identity("emulate@here", "elsewhere", 1, 1)
FAILED = Outcome(kind="failed", sentence="The worker died.")


def new_run(status: str) -> Run:
    spec = run_spec().model_dump(mode="json")
    return Run.objects.create(
        status=status,
        request=request_body(),
        spec=spec,
        cluster_name="lab-3",
        strategy="voltage",
        worker=str(ME),
    )


def kept(run: Run) -> dict[str, Any]:
    """What the database has of the run's end."""
    return (
        Run.objects.filter(pk=run.pk).values("status", "outcome", "error", "latency_s", "finished_at").get()
    )


@pytest.mark.parametrize("kind", get_args(OutcomeKind))
def test_a_run_is_finished_cancelled_or_else_failed(kind: OutcomeKind) -> None:
    run = new_run("running")
    closing.end(owner_of(run), Outcome(kind=kind, sentence="why"))
    assert kept(run)["status"] == {"finished": "finished", "cancelled": "cancelled"}.get(kind, "failed")
    why = "" if kind == "finished" else "why"
    assert (kept(run)["outcome"], kept(run)["error"]) == (kind, why)


@pytest.mark.parametrize("status", ["queued", *ACTIVE])
def test_a_run_that_is_not_over_is_closed(status: str) -> None:
    run = new_run(status)
    closing.end(owner_of(run), FAILED)
    assert kept(run)["status"] == "failed"


@pytest.mark.parametrize("status", OVER)
def test_a_run_that_is_over_is_not_closed_again(status: str) -> None:
    run = new_run(status)
    before = kept(run)
    with pytest.raises(Lost):
        closing.end(owner_of(run), FAILED)
    assert kept(run) == before


def test_a_finished_run_stays_finished_when_its_worker_is_found_dead(live_redis) -> None:
    run = new_run("running")
    _, report = recorded()
    assert closing.finish(owner_of(run), report) == "finished"
    before = kept(run)
    assert closing.settle(Run.objects.get(pk=run.pk))
    assert kept(run) == before
    ended, end_of_report = json.loads(archive.page_of_history(run.pk, 0)[-1].events)
    assert (ended["state"], end_of_report["type"]) == ("finished", "report")
    run.refresh_from_db()
    assert run.archived


def test_abandoned_runs_are_settled_and_named_unless_somebody_else_was_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settled, taken = new_run("running"), new_run("running")
    monkeypatch.setattr(closing.suspects, "abandoned", lambda home: [taken, settled])
    monkeypatch.setattr(closing, "settle", lambda run: run is settled)
    assert closing.settle_abandoned() == [f"run {settled.pk}"]


def test_a_finished_run_cannot_be_cancelled() -> None:
    run = new_run("finished")
    with pytest.raises(Conflict, match="finished already"):
        services.cancel(run, "alice")
    assert kept(run)["status"] == "finished"


def test_a_run_of_a_dead_worker_has_an_outcome_in_its_events_and_is_archived(live_redis) -> None:
    run = new_run("loading")
    closing.settle(run)
    begun, batch = archive.page_of_history(run.pk, 0)
    assert EVENTS.validate_json(begun.events) == [StateChanged(state="queued")]
    log, ended = json.loads(batch.events)
    assert log["level"] == "error"
    assert "emulate@here ended or was silent for more than 20 s" in log["text"]
    assert "in the middle of this run, which was loading" in log["text"]
    assert (ended["state"], ended["detail"]) == ("failed", log["text"])
    run.refresh_from_db()
    assert (run.status, run.archived, run.error) == ("failed", True, log["text"])


def test_a_run_that_failed_has_no_figures_though_its_report_is_kept() -> None:
    run = new_run("running")
    _, report = recorded()
    lost = Outcome(kind="peer_lost", sentence="b failed", device="b")
    assert closing.finish(owner_of(run), report.model_copy(update={"outcome": lost})) == "failed"
    assert kept(run)["latency_s"] is None
    assert kept(run)["error"] == "b failed"
    assert Run.objects.get(pk=run.pk).report["outcome"]["kind"] == "peer_lost"


def test_only_states_of_a_run_that_goes_on_become_its_status() -> None:
    run = new_run("planning")
    services.progress(owner_of(run), "loading", "two devices")
    assert Run.objects.values_list("status", "detail").get(pk=run.pk) == ("loading", "two devices")
    services.progress(owner_of(run), "queued", "1 run ahead on this machine")
    assert Run.objects.values_list("status", "detail").get(pk=run.pk) == (
        "loading",
        "1 run ahead on this machine",
    )
    closing.end(owner_of(run), FAILED)
    services.progress(owner_of(run), "running", "")
    assert kept(run)["status"] == "failed"


def test_the_ending_among_the_emulators_events_waits_until_the_database_has_it() -> None:
    events, _ = recorded()
    endings = [event for event in events if recording.is_ending(event)]
    assert [event.type for event in endings] == ["report"]
    for state in ("finished", "failed", "cancelled"):
        assert recording.is_ending(StateChanged(state=state))
    assert not recording.is_ending(StateChanged(state="verifying"))


def test_a_deleted_run_leaves_neither_events_nor_commands_in_redis(live_redis) -> None:
    run = new_run("running")
    log = EventLog(owner_of(run))
    log.add([StateChanged(state="running")])
    log.send()
    control.send(run.pk, {"kind": "stop"}, "ann")
    keys = (stream.stream_of(run.pk), control.list_of(run.pk))
    assert live_redis.exists(*keys) == 2
    services.delete(run)
    assert live_redis.exists(*keys) == 0
