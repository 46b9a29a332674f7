"""Celery tasks of the queue `plan`: a strategy plans on a drawing, and the tokens of prompts of a file."""

from __future__ import annotations

from typing import Any

from engine.domain.model import ModelSpec, QuantisedBits
from engine.domain.spec import WeightsRef
from engine.recorded.prompts import listed_prompts, traced
from topologies.layout import CanvasLayout
from webapp.clusters.model_library import local
from webapp.clusters.validation import validate
from webapp.jobs import answers

LIMIT_S = 20


@answers.question("plan.validate", LIMIT_S)
def validate_drawing(
    spec: dict[str, Any],
    layout: dict[str, Any],
    model: str,
    strategy: str,
    weight_bits: QuantisedBits | None = None,
) -> dict[str, Any]:
    """The `Validation` of a drawing."""
    checked = validate(spec, CanvasLayout.parse(layout, "layout"), model, strategy, weight_bits)
    return {"validation": checked.model_dump(mode="json")}


@answers.question("plan.prompts", LIMIT_S)
def tokenise_prompts(
    prompts: list[dict[str, Any]],
    model: dict[str, Any],
    weights: dict[str, Any],
    new_tokens: int,
    rate_per_s: float | None,
    seed: int,
) -> dict[str, Any]:
    """The prompts as `requests` of a trace, with the ids that the model's tokenizer gives."""
    spec: ModelSpec = ModelSpec.parse(model, "model")
    reference: WeightsRef = WeightsRef.parse(weights, "weights")
    found = traced(listed_prompts(prompts), spec, local(reference), new_tokens, rate_per_s, seed)
    return {"requests": [row.model_dump(mode="json") for row in found]}
