"""LIME on the testbeds of its paper (arXiv 2512.21835, table IV, section V-C), 128 tokens in and 1,024 out:
a plan wherever a pipeline has one, as fast as EdgeShard, faster than a pipeline whose stages stream for
themselves.
"""

from __future__ import annotations

from functools import cache

import pytest

import topologies
from engine.domain.errors import PlanError
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import by_rule

MODELS = {"lime-e1": "llama-2-13b", "lime-e2": "qwen3-32b"}
SETTINGS = ("lime-setting-1", "lime-setting-2", "lime-setting-3")
CASES = [(name, False) for name in ("lime-e1", "lime-e2", "lime-e3", *SETTINGS)] + [("lime-e3", True)]
PLAYED_TOKENS = 6
"""Tokens that are simulated of those that are planned for: their time hardly changes."""


@cache
def token_s(testbed: str, bursty: bool, strategy: str) -> float | None:
    """Predicted seconds per later token; None if there is no plan."""
    cluster = topologies.load(f"papers/{testbed}")
    requests = len(cluster.devices) if bursty else 1
    workload = Workload(
        prompt_tokens=128, new_tokens=1024, requests=requests, pattern="bursty" if bursty else "sporadic"
    )
    model = catalogue.resolve(MODELS.get(testbed, "llama-3.3-70b"), "random")[0]
    spec = RunSpec(
        cluster=cluster, model=model, strategy=strategy, params=by_rule(strategy), workload=workload
    )
    try:
        prepared = prepare(spec)
    except PlanError:
        return None
    played = workload.model_copy(update={"new_tokens": PLAYED_TOKENS})
    trace, outcome = simulate(prepared._replace(spec=spec.model_copy(update={"workload": played})))
    assert outcome.kind == "finished"
    marks = [item for item in trace if isinstance(item, Mark) and item.name == "token_emitted"]
    times = [[mark.time_s for mark in marks if mark.facts["request"] == index] for index in range(requests)]
    return max((own[-1] - own[1]) / (len(own) - 2) for own in times)


@pytest.mark.parametrize(("testbed", "bursty"), CASES)
def test_it_finishes_and_is_no_slower_than_a_pipeline(testbed: str, bursty: bool) -> None:
    ours_s = token_s(testbed, bursty, "lime")
    assert ours_s is not None
    for rival in ("gpipe", "edgeshard"):
        theirs_s = token_s(testbed, bursty, rival)
        assert theirs_s is None or ours_s <= 1.01 * theirs_s


@pytest.mark.parametrize("testbed", SETTINGS)
def test_in_every_setting_it_beats_the_pipeline_whose_stages_stream_for_themselves(testbed: str) -> None:
    ours_s, theirs_s = token_s(testbed, False, "lime"), token_s(testbed, False, "pipeline_offload")
    assert ours_s is not None and theirs_s is not None and 1.1 * ours_s < theirs_s


@pytest.mark.parametrize("testbed", SETTINGS)
def test_who_does_not_offload_has_too_little_memory_in_every_setting(testbed: str) -> None:
    assert [token_s(testbed, False, rival) for rival in ("galaxy", "gpipe", "edgeshard")] == [None] * 3
