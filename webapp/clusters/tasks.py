"""The Celery task of the queue `plan` that lets a strategy plan on a drawing."""

from __future__ import annotations

from typing import Any

from topologies.layout import CanvasLayout
from webapp.clusters.validation import validate
from webapp.jobs import answers

LIMIT_S = 20


@answers.question("plan.validate", LIMIT_S)
def validate_drawing(
    spec: dict[str, Any], layout: dict[str, Any], model: str, strategy: str
) -> dict[str, Any]:
    """The `Validation` of a drawing."""
    checked = validate(spec, CanvasLayout.parse(layout, "layout"), model, strategy)
    return {"validation": checked.model_dump(mode="json")}
