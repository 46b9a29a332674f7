"""A prediction that an HTTP request waits for: send it to a planning worker, wait for the answer in Redis."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from engine.domain.errors import EdgeLoomError, HostError, PlanError, SpecError
from engine.domain.spec import RunSpec
from webapp.celery import app as celery
from webapp.errors import Unavailable
from webapp.redis import pop, push, redis_needed
from webapp.runs import workers

ANSWER_TIMEOUT_S = 60
BLOCK_S = 5
ERRORS: dict[str, type[EdgeLoomError]] = {
    error.__name__: error for error in (SpecError, PlanError, HostError)
}


def request(spec: RunSpec) -> dict[str, Any]:
    """The simulated world's report as JSON. Raises the planner's errors, or `Unavailable`."""
    key = f"reply:{uuid.uuid4()}"
    with redis_needed():
        if not workers.alive("plan"):
            raise Unavailable(
                "No planning worker is running: start one with ./loom up, or ./loom worker --queue plan."
            )
        arguments = [spec.model_dump(mode="json"), key]
        celery.send_task("plan.predict", arguments, queue="plan", expires=ANSWER_TIMEOUT_S)
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < deadline:
            answer = pop(key, BLOCK_S)
            if answer is not None:
                return opened(json.loads(answer))
    raise Unavailable(
        f"No prediction within {ANSWER_TIMEOUT_S} s: the planning workers are busy, try again later."
    )


def reply(key: str, message: dict[str, Any]) -> None:
    push(key, json.dumps(message), ANSWER_TIMEOUT_S)


def sealed(error: EdgeLoomError) -> dict[str, Any]:
    """An error as a message; `opened` raises it again."""
    fields = error.fields if isinstance(error, SpecError) else []
    kind = next((name for name, kind in ERRORS.items() if isinstance(error, kind)), "HostError")
    return {"error": kind, "detail": str(error), "fields": fields}


def opened(message: dict[str, Any]) -> dict[str, Any]:
    if "error" not in message:
        report: dict[str, Any] = message["report"]
        return report
    if message["error"] == "SpecError":
        raise SpecError(message["detail"], [(path, text) for path, text in message["fields"]])
    raise ERRORS[message["error"]](message["detail"])
