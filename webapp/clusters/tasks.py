"""The Celery task of the queue `plan` that lets a strategy plan on a drawing."""

from __future__ import annotations

from typing import Any

from topologies.layout import CanvasLayout
from webapp.celery import app
from webapp.clusters.validation import validate
from webapp.jobs import answers

LIMIT_S = 20


@app.task(
    name="plan.validate",
    ignore_result=True,
    soft_time_limit=LIMIT_S,
    time_limit=LIMIT_S + answers.GRACE_S,
)
def validate_drawing(
    spec: dict[str, Any], layout: dict[str, Any], model: str, strategy: str, reply_to: str
) -> None:
    """Send the `Validation` to `reply_to`."""

    def answer() -> dict[str, Any]:
        checked = validate(spec, CanvasLayout.parse(layout, "layout"), model, strategy)
        return {"validation": checked.model_dump(mode="json")}

    answers.respond(reply_to, LIMIT_S, answer)
