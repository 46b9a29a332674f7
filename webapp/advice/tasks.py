"""Celery tasks of the queue `plan`: assess strategies, try changes of a cluster, predict showcases.

A task stops as soon as its person has asked again: of several requests the latest counts. Assessments stay
in Redis for a day, by the digest of their run, and what showcases come to likewise.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

import topologies
from engine.advice.answer import answer as answered
from engine.advice.assess import assess, assess_with_interval
from engine.advice.changes import tried
from engine.advice.questions import Asked, Supply, reply_to
from engine.advice.replies import Asker, AssessAll
from engine.advice.values import Assessment, Objective
from engine.advice.why import explain
from engine.domain.spec import RunSpec, spec_digest
from engine.experiments.execution.version import ENGINE, code_version, version_of
from engine.models import catalogue
from engine.runs.showcase import predicted, told
from engine.strategies.registry import strategy, with_strategy
from topologies.showcases import showcase
from webapp.base.redis import client
from webapp.jobs import answers
from webapp.runs.tasks import with_profile

LIMIT_S = 10
"""A task's time. Strategies that are not assessed within it are returned with that as their reason."""
TASK_LIMIT_S = 30
"""What a busy machine may take for the assessment that was begun last."""
NO_TIME = f"Not predicted: the methods before it took the {LIMIT_S} s that all have."
ASSESSMENT_KEPT_S = 24 * 3600
SUPPLY = Supply(topologies.presets, lambda: {name: catalogue.resolve(name) for name in catalogue.names()})
"""The presets of boards, and the catalogue's models."""


class OutOfTime(Exception):
    """What is to be predicted besides would take too long."""


class Superseded(Exception):
    """The person has asked for something else meanwhile."""


def unless_superseded(compute: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Lets a question whose person has asked again be answered with just that."""

    @wraps(compute)
    def computed(*arguments: Any) -> dict[str, Any]:
        try:
            return compute(*arguments)
        except Superseded:
            return {"superseded": True}

    return computed


@answers.question("plan.assess", TASK_LIMIT_S)
@unless_superseded
def assess_some(base: dict[str, Any], names: list[str], place: str, number: int) -> dict[str, Any]:
    """Assess the strategies `names`, and say whether there was time for all of them."""
    spec = with_profile(RunSpec.parse(base, "run"))
    specs = [with_strategy(spec, name) for name in names]
    rows = assess_until(specs, place, number, assess_with_interval)
    finished = all(row.reason != NO_TIME for row in rows)
    return {"rows": [row.model_dump(mode="json") for row in rows], "finished": finished}


@answers.question("plan.answer", TASK_LIMIT_S)
@unless_superseded
def answer_first(
    base: dict[str, Any], rows: list[dict[str, Any]], by: Objective, place: str, number: int
) -> dict[str, Any]:
    """Say whether several devices are better than one, given the assessments `rows`."""
    spec = with_profile(RunSpec.parse(base, "run"))
    known = [Assessment.parse(row, "assessment") for row in rows]
    try:
        found = answered(spec, known, by, all_in_time(place, number, time.monotonic() + LIMIT_S))
    except OutOfTime:
        found = answered(spec, known, by, None)
    return {"answer": found.model_dump(mode="json")}


@answers.question("plan.ask", TASK_LIMIT_S)
@unless_superseded
def ask_question(
    base: dict[str, Any], question: dict[str, Any], rows: list[dict[str, Any]], place: str, number: int
) -> dict[str, Any]:
    """Answer a question of somebody who builds a cluster; `rows` are the strategies' assessments. Without an
    answer there was too little time.
    """
    spec = with_profile(RunSpec.parse(base, "run"))
    known = [Assessment.parse(row, "assessment") for row in rows]
    asked = Asked.parse(question, "question")
    ends_s = time.monotonic() + LIMIT_S
    asker = Asker(
        all_in_time(place, number, ends_s), all_in_time(place, number, ends_s, assess_with_interval)
    )
    try:
        reply = reply_to(asked, spec, known, SUPPLY, asker)
    except OutOfTime:
        return {"reply": None}
    return {"reply": reply.model_dump(mode="json")}


@answers.question("plan.try_changes", TASK_LIMIT_S)
@unless_superseded
def try_changes(
    base: dict[str, Any], rows: list[dict[str, Any]], by: Objective, place: str, number: int
) -> dict[str, Any]:
    """Try single changes of the cluster on which `rows` were assessed. Without any there was too little time:
    of some alone nobody could say which helps most.
    """
    spec = with_profile(RunSpec.parse(base, "run"))
    known = [Assessment.parse(row, "assessment") for row in rows]
    try:
        found = tried(spec, known, by, all_in_time(place, number, time.monotonic() + LIMIT_S))
    except OutOfTime:
        return {"changes": None}
    return {"changes": [change.model_dump(mode="json") for change in found]}


@answers.question("plan.explain", TASK_LIMIT_S)
@unless_superseded
def explain_plan(document: dict[str, Any], place: str, number: int) -> dict[str, Any]:
    """Find what binds each device under the plan of a run."""
    spec = with_profile(RunSpec.parse(document, "run"))

    def assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
        """Assess all runs, without a limit per run: half of an explanation would be a wrong one."""
        return assess_until(specs, place, number, ends_s=math.inf)

    return {"why": explain(spec, assess_all).model_dump(mode="json")}


@answers.question("plan.expected", TASK_LIMIT_S)
def expect_of_showcase(name: str) -> dict[str, Any]:
    """Predict the runs of a showcase, and tell what to expect of it."""
    found = showcase(name)
    digest = hashlib.sha256(found.model_dump_json().encode()).hexdigest()
    key = f"expected:{_version()}:{digest}"
    kept = client().get(key)
    text = kept if isinstance(kept, str) else told(found, predicted(found))
    client().set(key, text, ex=ASSESSMENT_KEPT_S)
    return {"expected": text}


def all_in_time(
    place: str, number: int, ends_s: float, assess_one: Callable[[RunSpec], Assessment] = assess
) -> AssessAll:
    """Assesses all runs that it gets until `ends_s`. Raises `OutOfTime` where there is no time for all."""

    def assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
        rows = assess_until(specs, place, number, assess_one, ends_s)
        if time.monotonic() > ends_s:  # some rows may only say so
            raise OutOfTime
        return rows

    return assess_all


def assess_until(
    specs: Sequence[RunSpec],
    place: str,
    number: int,
    assess_one: Callable[[RunSpec], Assessment] = assess,
    ends_s: float | None = None,
) -> list[Assessment]:
    """All of `specs` that there is time for until `ends_s`. Raises `Superseded`."""
    ends_s = time.monotonic() + LIMIT_S if ends_s is None else ends_s
    found = []
    for spec in specs:
        if client().get(place) != str(number):
            raise Superseded
        late = time.monotonic() > ends_s
        found.append(_no_time(spec) if late else _remembered(spec, assess_one))
    return found


def _no_time(spec: RunSpec) -> Assessment:
    return Assessment(strategy=spec.strategy, lossless=strategy(spec.strategy).lossless, reason=NO_TIME)


@cache
def _version() -> str:
    """The version of the code that assessments depend on, in this process, so it is computed once."""
    return f"{code_version()}-{version_of([ENGINE / 'advice'])}"


def _remembered(spec: RunSpec, assess_one: Callable[[RunSpec], Assessment] = assess) -> Assessment:
    """The assessment of `spec`, from Redis if this version of EdgeLoom has made one."""
    key = f"{assess_one.__name__}:{_version()}:{spec_digest(spec)}"
    kept = client().get(key)
    if isinstance(kept, str):
        known: Assessment = Assessment.parse(json.loads(kept), "assessment")
        return known
    found = assess_one(spec)
    client().set(key, found.model_dump_json(), ex=ASSESSMENT_KEPT_S)
    return found
