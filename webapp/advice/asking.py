"""Advice that an HTTP request waits for: tasks for the planning workers, and their answers through Redis."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from engine.advice.changes import ranked, told_once
from engine.advice.questions import Asked
from engine.advice.replies import Reply
from engine.advice.values import Answer, Assessment, Change, Objective, Why
from engine.domain.spec import RunSpec
from engine.strategies.registry import STRATEGIES
from webapp.base import budgets
from webapp.base.errors import TooMany, Unavailable
from webapp.base.redis import client, count_up, redis_needed
from webapp.jobs import answers

PARTS = 2
"""Tasks that share the strategies: a planning worker has as many processes. Those of a large question come
one after the other.
"""
ANSWER_TIMEOUT_S = 30
TICKET_KEPT_S = 3600


def assessed(base: RunSpec, by: Objective, person: int) -> tuple[tuple[Assessment, ...], bool]:
    """Every strategy, the best first, and whether there was time for all of them. Raises `TooMany` if
    `person` has asked again meanwhile.
    """
    return _assessed(base, by, person, _ticket(person))


def _assessed(
    base: RunSpec, by: Objective, person: int, ticket: Ticket
) -> tuple[tuple[Assessment, ...], bool]:
    """Every strategy, the best first, and whether there was time for all of them."""
    names = [each.name for each in STRATEGIES]
    shares = [names[part::PARTS] for part in range(PARTS)]
    calls = [("plan.assess", [_document(base), share, *ticket]) for share in shares]
    parts = _answers(calls, base, person)
    found = [Assessment.parse(row, "assessment") for part in parts for row in part["rows"]]
    rows = told_once(ranked(sorted(found, key=lambda row: names.index(row.strategy)), by))
    return rows, all(part["finished"] for part in parts)


def answered(base: RunSpec, rows: tuple[Assessment, ...], by: Objective, person: int) -> Answer:
    """Whether several devices are better than one. Raises `TooMany` as `assessed` does."""
    given = [row.model_dump(mode="json") for row in rows]
    (found,) = _answers([("plan.answer", [_document(base), given, by, *_ticket(person)])], base, person)
    return Answer.parse(found["answer"], "answer")


def replied(base: RunSpec, asked: Asked, person: int) -> Reply:
    """The answer to one of the questions. Raises `SpecError`, `TooMany` if its turn does not come, and
    `Unavailable` if it takes longer than one may wait: what was predicted is kept, so asking again goes on.

    It has a ticket of its own, so that neither the advice on a page nor another question overtakes it.
    """
    with redis_needed(), _own_ticket(person) as ticket:
        rows: tuple[Assessment, ...] = ()
        finished = True
        if asked.is_about_strategies:
            rows, finished = _assessed(base, asked.by, person, ticket)
        if finished:
            given = [row.model_dump(mode="json") for row in rows]
            call = ("plan.ask", [_document(base), asked.model_dump(mode="json"), given, *ticket])
            (found,) = _answers([call], base, person)
            if found["reply"]:
                return Reply.parse(found["reply"], "reply")
    raise Unavailable("The planning workers are busy with this question and others.", retry_s=1)


def changes_tried(
    base: RunSpec, rows: tuple[Assessment, ...], by: Objective, person: int
) -> tuple[Change, ...]:
    """What single changes of the cluster do. Raises `TooMany` as `assessed` does, and `Unavailable` if it
    takes longer than one may wait: what was predicted is kept, so asking again goes on.
    """
    given = [row.model_dump(mode="json") for row in rows]
    calls = [("plan.try_changes", [_document(base), given, by, *_ticket(person)])]
    (answer,) = _answers(calls, base, person)
    if answer["changes"] is None:
        raise Unavailable("The planning workers are busy with these changes and others.", retry_s=1)
    return tuple(Change.parse(change, "change") for change in answer["changes"])


def explained(spec: RunSpec, person: int) -> Why:
    """What binds each device under the plan of `spec`. Raises `TooMany` as `assessed` does."""
    (answer,) = _answers([("plan.explain", [_document(spec), *_ticket(person, "why")])], spec, person)
    return Why.parse(answer["why"], "why")


def expected(showcase: str, person: int) -> str:
    """What to expect of a showcase, with predicted figures. Raises what its prediction raises."""
    return str(answers.ask("plan.expected", [showcase], person)["expected"])


class Ticket(NamedTuple):
    """The key of Redis under which requests are counted, and the number of one, which counts while it is the
    last.
    """

    place: str
    number: int


def _ticket(person: int, what: str = "advice") -> Ticket:
    place = f"ticket:{person}:{what}"
    with redis_needed():
        return Ticket(place, count_up(place, TICKET_KEPT_S))


@contextmanager
def _own_ticket(person: int) -> Iterator[Ticket]:
    """A ticket that nothing overtakes, and which counts for the block only."""
    ticket = _ticket(person, str(uuid.uuid4()))
    try:
        yield ticket
    finally:
        client().delete(ticket.place)


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
