"""Trials of the service under faults: two real ones, and a verdict that sees every kind of lie."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.trials.campaign import service_trials
from bench.trials.schedule import FAULTS, WORKERS, Schedule, Step, schedule
from bench.trials.session import LINES
from bench.trials.short_times import LEASE_S, shortened
from bench.trials.verdict import Evidence, leftovers, problems
from engine.domain.events import Event, Logged, ReportMade, StateChanged, to_json_text
from tests.support.web import recorded
from webapp.events.stream import Batch
from webapp.runs.models import Run


@pytest.mark.root
@pytest.mark.redis
@pytest.mark.long("webapp", "bench/trials")
def test_in_two_trials_every_run_ends_once_and_nothing_is_left(capfd: pytest.CaptureFixture[str]) -> None:
    """Together they have eight of the ten faults, and are among the shortest that do."""
    played = service_trials(seed=2051, first=0, trials=2, database="sqlite")
    assert played.problems == (), capfd.readouterr().out
    assert dict(played.rows)["trials"] == "2"


def test_what_a_trial_makes_faster_is_there_in_the_product() -> None:
    with ExitStack() as replaced:
        for one in shortened():
            replaced.enter_context(one)
        assert Run.LEASE_S == LEASE_S
    assert Run.LEASE_S > LEASE_S


# Schedules ----------------------------------------------------------------------------------------
def test_a_seed_and_a_number_give_the_same_schedule_again() -> None:
    assert schedule(3, 14) == schedule(3, 14)
    assert schedule(3, 14) != schedule(3, 15) != schedule(4, 15)


def test_a_hundred_schedules_have_every_fault_and_every_worker() -> None:
    steps = [step for number in range(100) for step in schedule(1, number).steps]
    assert {step.fault for step in steps} == set(FAULTS)
    assert {step.target for step in steps if step.fault == "kill"} == set(range(WORKERS))
    clocks = [step.lasts_s for step in steps if step.fault == "clock"]
    assert min(clocks) < -4 and max(clocks) > 4, "longer than a lease, both ways"


# The verdict --------------------------------------------------------------------------------------
def calm(*faults: str) -> Schedule:
    steps = tuple(Step(at_s=1.0, fault=fault) for fault in faults)
    return Schedule(seed=1, number=0, runs_s=(0.0,), run_s=1.0, steps=steps)


def events_of_a_good_run() -> list[Event]:
    lines = [Logged(level="info", text=f"line {number}") for number in range(LINES)]
    begun = [StateChanged(state="queued"), StateChanged(state="running")]
    return [*begun, *lines, StateChanged(state="finished"), ReportMade.of(recorded()[1])]


def good(**changes: Any) -> Evidence:
    """Of a run that finished; `changes` of the evidence, or of the row if it has such a column."""
    report = recorded()[1].model_dump(mode="json")
    row: dict[str, Any] = {
        "status": "finished",
        "archived": True,
        "finished_at": datetime(2026, 1, 1, tzinfo=UTC),
        "report": report,
        "spec": report["spec"],
    }
    row |= {key: changes.pop(key) for key in tuple(changes) if key in {*row, "error", "lease_until"}}
    events = changes.pop("events", events_of_a_good_run())
    batches = [Batch(number, to_json_text([event])) for number, event in enumerate(events, 1)]
    batches = changes.pop("batches", batches)
    evidence = Evidence(
        run=Run(pk=7, **row),
        batches=batches,
        watched=batches,
        ends={(row["status"], row.get("error", ""))},
        journal=["begun", "finished"],
        cancelled_before_start=False,
    )
    return evidence._replace(**changes)


def test_a_good_run_has_no_problem() -> None:
    assert list(problems(calm("redis"), good())) == []


def without_line(number: int) -> list[Event]:
    return [event for event in events_of_a_good_run() if getattr(event, "text", "") != f"line {number}"]


def with_twice(number: int) -> list[Event]:
    events = events_of_a_good_run()
    return [*events[: number + 1], *events[number:]]


LIES = {
    "running for ever": ({"status": "running", "finished_at": None}, "it has not ended"),
    "not archived": ({"archived": False}, "not archived"),
    "still held": ({"lease_until": datetime(2026, 1, 1, tzinfo=UTC)}, "still holds it"),
    "failed, then finished": ({"ends": {("failed", "gone"), ("finished", "")}}, "its end has changed"),
    "emulated twice": ({"journal": ["begun", "begun", "finished"]}, "emulated 2 times"),
    "finished by nobody": ({"journal": ["begun"]}, "did not finish"),
    "no report": ({"report": None}, "its report is missing"),
    "no reason": ({"status": "failed"}, "does not say why"),
    "an event lost": ({"events": without_line(5)}, "lines are not 0, 1, 2"),
    "the last events lost": ({"events": without_line(LINES - 1)}, f"{LINES - 1} of {LINES} lines"),
    "an event doubled": ({"events": with_twice(9)}, "lines are not 0, 1, 2"),
    "two ends": ({"events": [StateChanged(state="failed"), *events_of_a_good_run()]}, "another end"),
    "queued twice": ({"events": with_twice(0)}, "once, at the start"),
    "a gap": ({"batches": [Batch(1, "[]"), Batch(3, "[]")]}, "without a gap: 1 then 3"),
    "a viewer who missed one": ({"watched": []}, "missed 64 of 64"),
    "a viewer who saw what is gone": (
        {"watched": [Batch(number, "[]") for number in range(70)]},
        "70 batches that somebody saw are not kept",
    ),
    "an event after the report": (
        {"events": [*events_of_a_good_run(), Logged(level="info", text="more")]},
        "after its report",
    ),
    "started though cancelled": ({"cancelled_before_start": True}, "cancelled before it started"),
}


@pytest.mark.parametrize("lie", LIES)
def test_the_verdict_sees(lie: str) -> None:
    changes, sentence = LIES[lie]
    found = list(problems(calm("kill", "cancel"), good(**changes)))
    assert any(sentence in problem for problem in found), found


def test_a_run_may_say_that_it_waits_for_others_on_its_host() -> None:
    queued, *rest = events_of_a_good_run()
    waits = StateChanged(state="queued", detail="2 runs ahead on this machine", ahead=2)
    assert list(problems(calm(), good(events=[queued, waits, *rest]))) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_only_faults_of_its_worker_may_end_a_run(fault: str) -> None:
    events = [StateChanged(state="queued"), StateChanged(state="failed")]
    row = {"status": "failed", "error": "It was lost.", "report": None}
    found = list(problems(calm(fault), good(**row, events=events, journal=["begun"])))
    assert bool(found) == (fault not in ("kill", "stop", "rename", "pause")), found


def test_what_is_left_behind_is_named(tmp_path: Path) -> None:
    records = tmp_path / "worker1" / "emulator"
    (records / "turns").mkdir(parents=True)
    (records / "turns" / "seat-0-of-1").touch()
    keys = ["plan", "_kombu.binding_permanent.emulate"]
    assert list(leftovers(keys, [], tmp_path)) == []
    (records / "session-17.json").touch()
    keys += ["run:4", "_kombu.binding_permanent.emulate:emulate@host/home/1/2"]
    assert list(leftovers(keys, [(99, "python -m bench.trials.session 5")], tmp_path)) == [
        "Redis keeps the key run:4",
        "Redis keeps the key _kombu.binding_permanent.emulate:emulate@host/home/1/2",
        "the process 99 runs: python -m bench.trials.session 5",
        "there is the file worker1/emulator/session-17.json",
    ]
