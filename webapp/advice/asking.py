"""Advice that an HTTP request waits for: tasks for the planning workers, and their answers through Redis."""

from __future__ import annotations

import time
from typing import Any

from engine.advice.changes import ranked, told_once
from engine.advice.questions import Asked
from engine.advice.replies import Reply
from engine.advice.values import Answer, Assessment, Change, Objective, Why
from engine.domain.spec import RunSpec
from engine.strategies.registry import STRATEGIES
from webapp.base import budgets
from webapp.base.errors import TooMany
from webapp.base.redis import count_up, redis_needed
from webapp.jobs import answers

PARTS = 2
"""Tasks that share the strategies: a planning worker has as many processes. Those of a large question come
one after the other.
"""
ANSWER_TIMEOUT_S = 30
TICKET_KEPT_S = 3600


def assessed(base: RunSpec, by: Objective, person: int, what: str = "advice") -> tuple[Assessment, ...]:
    """Every strategy, the best first. Raises `TooMany` if `person` has asked again meanwhile."""
    names = [each.name for each in STRATEGIES]
    shares = [names[part::PARTS] for part in range(PARTS)]
    place, number = _ticket(person, what)
    calls = [("plan.assess", [_document(base), share, place, number]) for share in shares]
    rows = [row for answer in _answers(calls, base, person) for row in answer["rows"]]
    found = [Assessment.parse(row, "assessment") for row in rows]
    return told_once(ranked(sorted(found, key=lambda row: names.index(row.strategy)), by))


def answered(base: RunSpec, rows: tuple[Assessment, ...], by: Objective, person: int) -> Answer:
    """Whether several devices are better than one. Raises `TooMany` as `assessed` does."""
    place, number = _ticket(person)
    given = [row.model_dump(mode="json") for row in rows]
    (found,) = _answers([("plan.answer", [_document(base), given, by, place, number])], base, person)
    return Answer.parse(found["answer"], "answer")


def replied(base: RunSpec, asked: Asked, person: int) -> Reply:
    """The answer to one of the questions. Raises `SpecError`, and `TooMany` as `assessed` does."""
    rows = assessed(base, asked.by, person, "question") if asked.is_about_strategies else ()
    place, number = _ticket(person, "question")
    given = [row.model_dump(mode="json") for row in rows]
    call = ("plan.ask", [_document(base), asked.model_dump(mode="json"), given, place, number])
    (found,) = _answers([call], base, person)
    return Reply.parse(found["reply"], "reply")


def changes_tried(
    base: RunSpec, rows: tuple[Assessment, ...], by: Objective, person: int
) -> tuple[Change, ...]:
    """What single changes of the cluster do. Raises `TooMany` as `assessed` does."""
    place, number = _ticket(person)
    given = [row.model_dump(mode="json") for row in rows]
    calls = [("plan.try_changes", [_document(base), given, by, place, number])]
    (answer,) = _answers(calls, base, person)
    return tuple(Change.parse(change, "change") for change in answer["changes"])


def explained(spec: RunSpec, person: int) -> Why:
    """What binds each device under the plan of `spec`. Raises `TooMany` as `assessed` does."""
    place, number = _ticket(person, "why")
    (answer,) = _answers([("plan.explain", [_document(spec), place, number])], spec, person)
    return Why.parse(answer["why"], "why")


def expected(showcase: str, person: int) -> str:
    """What to expect of a showcase, with predicted figures. Raises what its prediction raises."""
    return str(answers.ask("plan.expected", [showcase], person)["expected"])


def _ticket(person: int, what: str = "advice") -> tuple[str, int]:
    """The key under which a person's requests are counted, and the number of this one."""
    place = f"{what}:{person}"
    with redis_needed():
        return place, count_up(place, TICKET_KEPT_S)


def _document(base: RunSpec) -> dict[str, Any]:
    return base.model_dump(mode="json")


def _answers(calls: list[tuple[str, list[Any]]], about: RunSpec, person: int) -> list[dict[str, Any]]:
    """The answers of questions, given by name and arguments, once it is this person's turn."""
    large = budgets.is_large_advice(about)
    ends_s = time.monotonic() + (answers.ANSWER_TIMEOUT_S if large else ANSWER_TIMEOUT_S)
    with redis_needed():
        answers.require_workers()
        with answers.turn(person, ends_s, large):
            together = [[call] for call in calls] if large else [calls]
            found = [answer for some in together for answer in answers.answers(some, ends_s)]
    if any("superseded" in answer for answer in found):
        # another page of this person, or an earlier request that this one has overtaken
        sentence = "You have asked for other advice meanwhile, which is answered first: ask again."
        raise TooMany(sentence, retry_s=1)
    return found
