"""A model given as a value has no weights of its own: they are random, or those of a folder that is named."""

from __future__ import annotations

import pytest

import edgeloom
from engine.domain.errors import SpecError
from engine.models import catalogue


def test_a_model_by_value_runs_with_the_weights_that_are_named() -> None:
    model, trained = catalogue.resolve("demo-lm")
    asked = edgeloom.spec("lab-3", model, "gpipe", weights=trained.directory, prompt_tokens=4)
    assert asked.weights == trained
    assert edgeloom.spec("lab-3", model, "gpipe", prompt_tokens=4).weights.kind == "random"
    other, _ = catalogue.resolve("tiny-gpt2", "random")
    with pytest.raises(SpecError, match="give weights of this model"):
        edgeloom.spec("lab-3", other, "gpipe", weights=trained.directory, prompt_tokens=4)
