"""What an experiment says that its seeds change: all that differs between repeats, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import topologies
from engine.domain.experiment import Experiment
from engine.domain.spec import WeightsRef
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.seeds import seed_changes
from engine.experiments.design.sources import Sources

SOURCES = Sources(cluster=topologies.load, preset=topologies.preset)
PROMPT = {"prompt": "Hello", "new_tokens": 1}
BASE = {"cluster": "lab-3", "model": "gpt2", "strategy": "single", "workload": PROMPT}


def points(path: str = "strategy", value: Any = "single") -> tuple[Point, ...]:
    factor = {"name": "x", "path": path, "values": [{"label": "it", "value": value}]}
    made: Experiment = Experiment.parse({"name": "test", "base": BASE, "factors": [factor]}, "test")
    return expand(made, SOURCES)


WEIGHTS = "the random weights"
"""What every point here draws, as its model has no trained weights."""


def trained(made: Iterable[Point]) -> list[Point]:
    """The same points with weights of a directory."""
    weights = WeightsRef(kind="directory", directory="/models/gpt2")
    return [
        point._replace(spec=point.spec and point.spec.model_copy(update={"weights": weights}))
        for point in made
    ]


def test_of_a_given_prompt_on_links_that_lose_nothing_the_seed_draws_the_weights() -> None:
    assert seed_changes(points()) == (WEIGHTS,)


def test_with_trained_weights_repeats_of_that_are_the_same_run() -> None:
    assert seed_changes(trained(points())) == ()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("cluster.links[*].loss_frac", 0.01, "which packets are lost"),
        ("cluster.links[*].reverse_loss_frac", 0.01, "which packets are lost"),
        ("cluster.links[*].jitter_s", 0.001, "the jitter of each packet"),
        ("workload", {"prompt_tokens": 8, "new_tokens": 1}, "the random prompt"),
        ("workload.temperature", 0.7, "the drawn tokens"),
    ],
)
def test_what_the_seed_draws_is_named_once(path: str, value: Any, words: str) -> None:
    drawn = trained(points(path, value))
    assert seed_changes([*trained(points()), *drawn, *drawn]) == (words,)
