"""Questions that only planning workers compute, and whose answers an HTTP request waits for.

A plan of a thousand devices takes a core for many seconds. In the web process that would keep everybody
waiting; here only the request that asked waits, in a thread of its own. Each person has a few questions under
way at once: the next ones wait for these, not the questions of others for them.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from celery import Task
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_process_init

from engine.domain.command_name import COMMAND
from engine.domain.errors import EdgeLoomError, HostError, PlanError, SpecError
from webapp.base import core_wait
from webapp.base.errors import TooMany, Unavailable
from webapp.base.redis import check_writable, client, pop, push, redis_needed
from webapp.celery import app
from webapp.jobs.announcement import announced

ANSWER_TIMEOUT_S = 60
"""A question is given up after so long, with the wait for its turn."""
BLOCK_S = 5
POLL_S = 0.05
AT_ONCE = 2
"""Questions of one person that workers may have at the same time."""
WORKER_STARTS_S = 10
"""A worker that was started with the server, or again after its end, announces itself within so long."""
RETRY_S = 2
"""Seconds after which one who was refused because there is no worker may ask again."""
PLACE_KEPT_S = 2 * ANSWER_TIMEOUT_S
GRACE_S = 5
"""Seconds from the sentence about a time limit to the end of a process that does not react to it."""
MEMORY_BYTES = 3 * 2**30
"""What a planning process may allocate."""
BUSY = "busy"
ERRORS: dict[str, type[EdgeLoomError]] = {
    error.__name__: error for error in (SpecError, PlanError, HostError)
}
logger = logging.getLogger(__name__)


# In the web process -------------------------------------------------------------------------------
def ask(task: str, arguments: Sequence[Any], person: int, large: bool = False) -> dict[str, Any]:
    """The answer of one `question`.

    All `large` questions together leave one planning process to the others.
    Raises what the task raised, `Unavailable` without an answer, `TooMany` if the turn does not come.
    """
    with redis_needed():
        require_workers()
        ends_s = time.monotonic() + ANSWER_TIMEOUT_S
        with turn(person, ends_s, large):
            return answers([(task, list(arguments))], ends_s)[0]


def require_workers() -> None:
    """Wait a while for a worker that plans. Raises `Unavailable` if none begins to, and Redis' errors."""
    ends_s = time.monotonic() + WORKER_STARTS_S
    while not (found := announced("plan")) and time.monotonic() < ends_s:
        time.sleep(POLL_S)
    if not found:
        check_writable()  # where Redis refuses writes, no worker can say that it is there
        raise Unavailable(
            f"No planning worker is running: start one with {COMMAND} up, or {COMMAND} worker --queue plan.",
            retry_s=RETRY_S,
        )
    if all(one.refused for one in found):
        why = "; ".join(f"{one.node}: {one.refused}" for one in found)
        raise Unavailable(f"No planning worker takes questions. {why}. The page Machines shows all workers.")


@contextmanager
def turn(person: int, ends_s: float, large: bool = False) -> Iterator[None]:
    """Let the block be one of the `AT_ONCE` questions of `person`, or their large one and one of everybody's
    large ones; a place that is not given back expires.

    Raises `TooMany` if no place is free until `ends_s`.
    """
    if not large:
        mine = [f"planning:{person}:{index}" for index in range(AT_ONCE)]
        with _place(mine, ends_s, f"{AT_ONCE} of your questions are being computed"):
            yield
        return
    slots = sum(one.slots for one in announced("plan") if not one.refused)
    everybody = [f"planning:large:{index}" for index in range(max(1, slots - 1))]
    with (
        _place([f"planning:{person}:large"], ends_s, "A large question of yours is being computed"),
        _place(everybody, ends_s, f"{len(everybody)} large questions are being computed"),
    ):
        yield


@contextmanager
def _place(places: Sequence[str], ends_s: float, taken_by: str) -> Iterator[None]:
    me = str(uuid.uuid4())
    taken = _take(places, me)
    while taken is None:
        if time.monotonic() > ends_s:
            sentence = f"{taken_by}, which is the limit, and this one waits for them: try again."
            raise TooMany(sentence, retry_s=BLOCK_S)
        time.sleep(POLL_S)
        taken = _take(places, me)
    try:
        yield
    finally:
        if client().get(taken) == me:  # not the place of somebody who came after it had expired
            client().delete(taken)


def _take(places: Sequence[str], me: str) -> str | None:
    return next((place for place in places if client().set(place, me, nx=True, ex=PLACE_KEPT_S)), None)


def answers(calls: Sequence[tuple[str, list[Any]]], ends_s: float) -> list[dict[str, Any]]:
    """Put questions, and wait for all answers. Raises what one raised, `Unavailable`, Redis' errors."""
    key = f"reply:{uuid.uuid4()}"
    for name, arguments in calls:
        expires_s = max(1.0, ends_s - time.monotonic())
        app.send_task(name, arguments, queue="plan", expires=expires_s, reply_to=key)
    found: list[dict[str, Any]] = []
    while len(found) < len(calls) and time.monotonic() < ends_s:
        text = pop(key, BLOCK_S)
        if text is not None:
            found.append(answer_of(json.loads(text)))
    if len(found) < len(calls):
        raise Unavailable("No answer in time: the planning workers are busy.", retry_s=RETRY_S)
    return found


def answer_of(message: dict[str, Any]) -> dict[str, Any]:
    """The answer, or what the task raised."""
    if "error" not in message:
        return message
    if message["error"] == BUSY:
        raise Unavailable(message["detail"], retry_s=RETRY_S)
    if message["error"] == "SpecError":
        raise SpecError(message["detail"], [(path, text) for path, text in message["fields"]])
    raise ERRORS[message["error"]](message["detail"])


# In a worker --------------------------------------------------------------------------------------
class Question(Task):  # type: ignore[misc]
    """A task whose function returns the answer, which goes to where the message says (`reply_to`)."""

    def __call__(self, *arguments: Any) -> None:
        """Answer the question, also with an error that the asker can handle; any other is raised again."""
        key = self.request.reply_to
        try:
            reply(key, self.answer(*arguments))
        except Exception as error:
            reply(key, error_message(HostError(f"The planning worker broke: {error!r}. Its log says more.")))
            raise

    def answer(self, *arguments: Any) -> dict[str, Any]:
        """What the function returns, or why it returns nothing: an error as a message."""
        remedy = "ask for fewer requests, tokens or devices."
        waited_s = core_wait.waited_s(os.getpid())
        try:
            answer: dict[str, Any] = self.run(*arguments)
        except EdgeLoomError as error:
            return error_message(error)
        except SoftTimeLimitExceeded:
            waited_s = core_wait.waited_s(os.getpid()) - waited_s
            if core_wait.is_starved(waited_s, self.soft_time_limit):  # one asks again
                limit = f"{self.soft_time_limit} s"
                busy = f"The machine is busy: this waited {waited_s:.1f} of {limit} for a core."
                return {"error": BUSY, "detail": busy}
            return error_message(HostError(f"This takes more than {self.soft_time_limit} s: {remedy}"))
        except MemoryError:
            return error_message(HostError(f"This needs more than {MEMORY_BYTES >> 30} GiB: {remedy}"))
        return answer


def question(name: str, limit_s: int) -> Callable[[Callable[..., dict[str, Any]]], Any]:
    """Makes a function a task of the queue `plan` that people may `ask`, for at most `limit_s`."""
    limits = {"soft_time_limit": limit_s, "time_limit": limit_s + GRACE_S}
    found: Callable[[Callable[..., dict[str, Any]]], Any]
    found = app.task(name=name, base=Question, ignore_result=True, **limits)
    return found


def reply(key: str, message: dict[str, Any]) -> None:
    push(key, json.dumps(message), ANSWER_TIMEOUT_S)


def error_message(error: EdgeLoomError) -> dict[str, Any]:
    """An error as a message; `answer_of` raises it again."""
    fields = error.fields if isinstance(error, SpecError) else []
    kind = next((name for name, kind in ERRORS.items() if isinstance(error, kind)), "HostError")
    return {"error": kind, "detail": str(error), "fields": fields}


def limit_memory(**kwargs: Any) -> None:
    """Limit the memory of a planning process: it gets `MemoryError` instead of the machine's memory."""
    if "plan" in app.amqp.queues.consume_from:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))


worker_process_init.connect(limit_memory)
