"""Whether a soak went well: each run in one true state with its tokens right and its events whole, every
answer one of the API's, memory bounded, nothing left behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise, starmap
from typing import NamedTuple

from bench.chaos.verdict import is_clear
from bench.service.clients import Request
from bench.service.idle import Usage
from bench.trials.verdict import follows, of_the_ends
from engine.domain.events import EVENTS
from webapp.events.stream import Batch
from webapp.jobs.models import OVER
from webapp.runs.models import Run

AROUND = timedelta(seconds=15)
"""Seconds after the end of a process in which runs still end because of that."""

MOST_BYTES = 1_200_000_000
"""Most resident memory of one process of the service."""

DEFECT = 500


class Disturbance(NamedTuple):
    """A process of the service ended, and ran again."""

    name: str
    began: datetime
    ended: datetime


def problems(run: Run, batches: Sequence[Batch], disturbances: Iterable[Disturbance]) -> Iterator[str]:
    """What is wrong with one run that is over, in sentences."""
    during = {one.name for one in disturbances if _overlap(run, one)}
    for problem in (*_of_the_end(run, during), *_of_the_events(run, batches)):
        yield f"run {run.pk} ({run.status}, {run.strategy}): {problem}"


def _overlap(run: Run, one: Disturbance) -> bool:
    ended = run.finished_at or run.created_at
    return run.created_at <= one.ended + AROUND and one.began <= ended


def _of_the_end(run: Run, during: set[str]) -> Iterator[str]:
    if run.status not in OVER or run.finished_at is None or run.lease_until is not None:
        yield "it has not ended, or somebody still holds it"
    if run.status == "finished" and run.correct is not True:
        yield "its tokens are not those of one device"
    is_wanted = bool(run.cancel_by) or "before it started" in run.error
    if run.status == "cancelled" and not is_wanted and "worker-emulate" not in during:
        yield f"nobody cancelled it: {run.error}"
    if run.status == "failed" and not (during or is_clear(run.outcome, run.error)):
        yield f"nothing had happened, and it failed: {run.outcome}, {run.error}"
    if run.status != "finished" and not run.error:
        yield "it does not say why"


def _of_the_events(run: Run, batches: Sequence[Batch]) -> Iterator[str]:
    numbers = [batch.number for batch in batches]
    if not all(starmap(follows, pairwise([0, *numbers]))):
        yield f"its batches are not numbered without a gap: {numbers[:5]} … {numbers[-5:]}"
    yield from of_the_ends(run, [event for batch in batches for event in EVENTS.validate_json(batch.events)])


def defects(requests: Iterable[Request]) -> Iterator[str]:
    """Answers that only a defect gives."""
    for path, status in sorted({(one.path, one.status) for one in requests if one.status == DEFECT}):
        yield f"{path} was answered with {status}"


def too_large(usages: Iterable[Usage]) -> Iterator[str]:
    for one in usages:
        if one.resident_bytes > MOST_BYTES:
            yield f"{one.name} has {one.resident_bytes / 1e6:.0f} MB in memory"
