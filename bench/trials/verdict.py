"""Judges whether a trial ended well: each run in one true state, its events whole and once, nothing left
behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, starmap
from pathlib import Path
from typing import NamedTuple

from bench.trials.schedule import Schedule
from bench.trials.session import LINES
from engine.domain.events import EVENTS, Event, Logged, ReportMade, StateChanged
from webapp.events.event_log import STEP
from webapp.events.stream import Batch
from webapp.jobs.models import OVER
from webapp.runs.models import Run

ENDS_RUNS = ("kill", "stop", "rename", "pause")
"""The faults that may end a run: those of its own worker."""


QUEUES = ("emulate", "plan", "points", "celery.pidbox", "reply.celery.pidbox")
BROKER_KEYS = (
    "plan",  # nobody plans in a trial: the messages to planning workers stay
    "unacked",
    "_kombu.binding_deadlines",
    "_kombu.binding.",  # those of workers' own queues expire by these deadlines
    *(f"_kombu.binding_permanent.{queue}" for queue in QUEUES),
)


class Evidence(NamedTuple):
    """What is known of one run: its row, its events for good, what somebody saw who watched, and every
    (status, error) that its row had once it was over. `journal` has the lines of its emulations: begun, then
    finished or stopped.
    """

    run: Run
    batches: list[Batch]
    watched: list[Batch]
    ends: set[tuple[str, str]]
    journal: list[str]
    cancelled_before_start: bool


def problems(schedule: Schedule, evidence: Evidence) -> Iterator[str]:
    """What is wrong with one run, in sentences; nothing if all is well."""
    run = evidence.run
    for problem in (*_of_the_row(schedule, evidence), *_of_the_events(schedule, evidence)):
        yield f"run {run.pk} ({run.status}): {problem}"


def _of_the_row(schedule: Schedule, evidence: Evidence) -> Iterator[str]:
    run, journal = evidence.run, evidence.journal
    if run.status not in OVER or run.finished_at is None:
        yield "it has not ended"
    if not run.archived or run.lease_until is not None:
        yield "its events are not archived, or somebody still holds it"
    if len(evidence.ends | {(run.status, run.error)}) > 1:
        yield f"its end has changed: {sorted(evidence.ends)}, then {run.status}, {run.error!r}"
    if journal.count("begun") > 1:
        yield f"it was emulated {journal.count('begun')} times"
    if evidence.cancelled_before_start and (run.status != "cancelled" or journal):
        yield "it was cancelled before it started, and started"
    if run.status == "finished" and journal != ["begun", "finished"]:
        yield f"its emulation did not finish: {journal}"
    if run.status == "finished" and (run.report or {}).get("spec", {}).get("seed") != run.spec["seed"]:
        yield "its report is missing, or of another run"
    if run.status != "finished" and not run.error:
        yield "it does not say why"
    faults = {step.fault for step in schedule.steps}
    if run.status == "failed" and journal and not faults & set(ENDS_RUNS):
        yield f"none of {sorted(faults)} may end a run, and it failed: {run.error}"
    if run.status == "cancelled" and not faults & {"cancel", "stop", "rename"}:
        yield f"nobody cancelled it: {run.error}"


def _of_the_events(schedule: Schedule, evidence: Evidence) -> Iterator[str]:
    numbers = [batch.number for batch in evidence.batches]
    if not all(starmap(follows, pairwise([0, *numbers]))):
        yield f"its batches are not numbered from 1 on without a gap: {_breaks(numbers)}"
    missed = [batch.number for batch in evidence.batches if batch not in evidence.watched]
    if missed:
        yield f"who watched it missed {len(missed)} of {len(numbers)} batches: {_breaks(missed)}"
    gone = [batch.number for batch in evidence.watched if batch not in evidence.batches]
    if gone and not may_forget(schedule):
        yield f"{len(gone)} batches that somebody saw are not kept: {_breaks(gone)}"
    events = [event for batch in evidence.batches for event in EVENTS.validate_json(batch.events)]
    lines = [event.text for event in events if isinstance(event, Logged) and event.text.startswith("line ")]
    if lines != [f"line {number}" for number in range(len(lines))]:
        yield f"its lines are not 0, 1, 2, …: {lines}"
    if evidence.run.status == "finished" and len(lines) != LINES:
        yield f"it has {len(lines)} of {LINES} lines"
    yield from of_the_ends(evidence.run, events)


def follows(before: int, after: int) -> bool:
    """Whether batch `after` may come after `before`: another owner goes on at a higher number."""
    return after == before + 1 or (after > before and after % STEP == 1)


def may_forget(schedule: Schedule) -> bool:
    """Whether a worker and Redis may have died together: what neither had stored is lost then."""
    faults = {step.fault for step in schedule.steps}
    return "redis" in faults and bool(faults & set(ENDS_RUNS))


def of_the_ends(run: Run, events: list[Event]) -> Iterator[str]:
    """Problems of a run that is over, whose events must tell its start and its end once. In between it may
    have waited for other runs on its host, which it says with their number.
    """
    states = [event.state for event in events if isinstance(event, StateChanged) and not event.ahead]
    if states[:1] != ["queued"] or "queued" in states[1:]:
        yield f"its events do not say once, at the start, that it was queued: {states}"
    if [state for state in states if state in OVER] != [run.status] or states[-1] != run.status:
        yield f"its events say another end than its row: {states}"
    reports = sum(isinstance(event, ReportMade) for event in events)
    if reports != (1 if run.report else 0):
        yield f"its events have {reports} reports"
    if reports and not isinstance(events[-1], ReportMade):
        yield "something comes after its report"


def _breaks(numbers: list[int]) -> str:
    found = [f"{before} then {after}" for before, after in pairwise(numbers) if after != before + 1]
    return ", ".join(found[:3]) or f"{len(numbers)} in order"


# What is left behind --------------------------------------------------------------------------------
def leftovers(keys: Iterable[str], pids: Iterable[tuple[int, str]], directory: Path) -> Iterator[str]:
    """What a trial has left after its runs were deleted. `keys` are those of Redis that never expire, `pids`
    those processes that are none of the service's.
    """
    for key in keys:
        if not key.startswith(BROKER_KEYS) or key.startswith("_kombu.binding_permanent.emulate:"):
            yield f"Redis keeps the key {key}"
    for pid, words in pids:
        yield f"the process {pid} runs: {words}"
    for pattern in ("session-*.json", "turns/ticket-*"):
        for path in directory.glob(f"worker*/emulator/{pattern}"):
            yield f"there is the file {path.relative_to(directory)}"
