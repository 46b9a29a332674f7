"""The soak's verdict sees every kind of lie, and its people ask for what the service takes."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench.service.clients import Request
from bench.service.idle import Usage
from bench.soak.people import Person
from bench.soak.verdict import AROUND, MOST_BYTES, Disturbance, defects, problems, too_large
from engine.domain.events import Event, ReportMade, StateChanged, to_json_text
from tests.support.web import recorded
from webapp.events.stream import Batch
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest, spec_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def run(**row: Any) -> Run:
    """One that was asked for at noon and ended a minute later."""
    about = {"status": "finished", "correct": True, "created_at": NOON, "finished_at": NOON + MINUTE}
    return Run(pk=7, strategy="voltage", report={"there": "is one"}, **about | row)


def told(status: str = "finished", report: bool = True) -> list[Batch]:
    events: list[Event] = [StateChanged(state="queued"), StateChanged(state=status)]
    events += [ReportMade.of(recorded()[1])] if report else []
    return [Batch(number, to_json_text([event])) for number, event in enumerate(events, 1)]


def disturbed(name: str, began: datetime = NOON, ended: datetime = NOON + MINUTE) -> Disturbance:
    return Disturbance(name, began, ended)


def test_a_good_run_has_no_problem() -> None:
    assert list(problems(run(), told(), [])) == []


@pytest.mark.parametrize(
    ("row", "batches", "sentence"),
    [
        ({"status": "running", "finished_at": None}, told("running"), "it has not ended"),
        ({"lease_until": NOON}, told(), "somebody still holds it"),
        ({"correct": False}, told(), "not those of one device"),
        ({"correct": None}, told(), "not those of one device"),
        ({"status": "cancelled", "error": "Stopped."}, told("cancelled"), "nobody cancelled it: Stopped."),
        ({"status": "failed", "outcome": "deadlock", "error": "No."}, told("failed"), "nothing had happened"),
        ({"status": "failed", "outcome": "peer_lost", "error": ""}, told("failed"), "it does not say why"),
        ({}, told()[1:], "without a gap"),
        ({}, told(report=False), "have 0 reports"),
        ({}, told("failed"), "another end"),
    ],
)
def test_the_verdict_sees(row: dict[str, Any], batches: list[Batch], sentence: str) -> None:
    found = list(problems(run(**row), batches, []))
    assert any(sentence in problem for problem in found), found


@pytest.mark.parametrize(
    ("row", "disturbances", "good"),
    [
        ({"status": "failed", "outcome": "peer_lost", "error": "a has failed: it is the source."}, [], True),
        ({"status": "failed", "error": "Its worker ended."}, [disturbed("worker-emulate")], True),
        (
            {"status": "failed", "error": "Its worker ended."},
            [disturbed("redis", ended=NOON - 2 * AROUND)],
            False,
        ),
        ({"status": "failed", "error": "It broke."}, [disturbed("web", began=NOON + 2 * MINUTE)], False),
        ({"status": "cancelled", "error": "Stopped."}, [disturbed("worker-emulate")], True),
        ({"status": "cancelled", "error": "Stopped."}, [disturbed("web")], False),
        ({"status": "cancelled", "error": "Stopped.", "cancel_by": "ada"}, [], True),
        ({"status": "cancelled", "error": "Cancelled by ada before it started."}, [], True),
    ],
)
def test_a_run_may_end_early_for_a_reason(
    row: dict[str, Any], disturbances: list[Disturbance], good: bool
) -> None:
    found = list(problems(run(**row), told(str(row["status"])), disturbances))
    assert (found == []) == good, found


def test_an_answer_of_a_defect_and_a_process_that_grows_are_named() -> None:
    answers = [Request("GET /api/runs", status, 0.1) for status in (200, 404, 503, 500, 500)]
    assert list(defects(answers)) == ["GET /api/runs was answered with 500"]
    sizes = [Usage("web", 0, MOST_BYTES, 0.0), Usage("plan", 0, MOST_BYTES + 1, 0.0)]
    assert list(too_large(sizes)) == ["plan has 1200 MB in memory"]


class Service:
    """Takes everything, and keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.requests = [Request("POST", 202, 0.0)]

    def send(self, method: str, path: str, body: Any = None) -> Any:
        self.sent.append((method, path, body))
        if path.startswith("/api/runs?"):
            return [{"id": 1, "status": "running"}]
        if path == "/api/runs/1":
            return {"request": {"cluster": {"devices": [{"name": "d0"}]}}}
        return {"id": 1, "state": "finished"}


def test_everybody_does_the_same_for_the_same_seed(db: None) -> None:
    def asked(seed: int) -> list[tuple[str, str, Any]]:
        service = Service()
        person = Person(service, seed, 0, threading.Event())  # type: ignore[arg-type]
        assert person.start_run()
        person.mine.append(1)
        for act in (person.change, person.cancel, person.predict, person.look):
            assert act()
        return service.sent

    sent = asked(3)
    assert sent == asked(3) != asked(4)
    body = next(body for method, path, body in sent if (method, path) == ("POST", "/api/runs"))
    spec_of(RunRequest.parse(body, "request"))  # the service takes it
