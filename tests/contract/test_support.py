"""Every strategy with every family on the ready clusters: it plans, or says in one sentence why it cannot."""

import re
from functools import cache

import pytest

from engine.domain.errors import PlanError
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.families.registry import FAMILIES
from engine.runs.predict import prepare
from engine.strategies.registry import STRATEGIES, drafted
from engine.strategies.registry import strategy as method_of
from topologies.files import load

CLUSTERS = ("lab-4", "voltage-6", "mcu-8")
MODELS = (
    *catalogue.smallest_models(),
    "gpt2",
    "opt-6.7b",
    "bert-large",
    "mcu-tinyllama",
    "llama-3.3-70b",
    "qwen3-32b",
    "vit-base",
    "llava-7b",
)
"""One of each family small enough for anything, and some as the papers have them."""

cluster_of = cache(load)


def is_one_sentence(text):
    return "\n" not in text and text.endswith(".") and not re.search(r"[.!?] +[A-Z]", text)


def spec_of(strategy, name, cluster):
    model, weights = catalogue.resolve(name, "random")
    workload = Workload(prompt_tokens=9 if model.reads_text else None, new_tokens=3 if model.causal else 0)
    return RunSpec(
        cluster=cluster_of(cluster),
        model=drafted(method_of(strategy), model),
        weights=weights,
        strategy=strategy,
        workload=workload,
    )


def test_every_family_has_a_model_that_is_small_enough_for_tests():
    """A new family needs a [[model]] of two layers in catalogue.toml: then all tests of families try it."""
    smallest = {row.name: row for row in catalogue.rows()}
    tried = [smallest[name] for name in catalogue.smallest_models()]
    assert [row.family for row in tried] == [row.name for row in FAMILIES]
    assert [row.name for row in tried if row.num_parameters > 100_000] == []


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda chosen: chosen.name)
def test_a_pair_of_strategy_and_family_plans_or_says_why_not(chosen, name):
    """On one of the clusters each, in turn."""
    cluster = CLUSTERS[(STRATEGIES.index(chosen) + MODELS.index(name)) % len(CLUSTERS)]
    spec = spec_of(chosen.name, name, cluster)
    reason = chosen.supports(spec.cluster, spec.model)
    assert reason is None or is_one_sentence(reason), reason
    try:
        prepare(spec)
    except PlanError as refusal:
        assert is_one_sentence(str(refusal)), refusal
        if reason is None:  # then memory binds: who, how much, and what to do
            assert re.search(r"needs? .* has .*B.*: ", str(refusal)), refusal


@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda chosen: chosen.name)
def test_some_family_runs_on_some_ready_cluster(chosen):
    """Even by its own defaults, and for text, an encoder and a picture alike, unless it drafts text."""
    for name in ("tiny-llama",) if chosen.drafts else ("tiny-llama", "tiny-bert", "tiny-vit"):
        spec = spec_of(chosen.name, name, "lab-4")
        assert chosen.supports(spec.cluster, spec.model) is None
        assert prepare(spec).plan.work
