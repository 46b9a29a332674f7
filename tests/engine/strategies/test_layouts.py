"""Layouts: a plan's JSON is read with the right type; stages that a pipeline cannot run are refused."""

import json
from typing import Literal

import pytest
from pydantic import ValidationError

from engine.domain.errors import PlanError, SpecError
from engine.domain.plan import Layout, Plan
from engine.strategies.registry import STRATEGIES, layout_types, plan_from_json
from engine.strategies.shared.pipeline import PipelineLayout, check_stages, ends_placement, stages_placement
from engine.strategies.shared.stages import Stage
from tests.support.small_cases import GPT2, plan_of, play, spec_of, star

EVERY = [chosen.name for chosen in STRATEGIES]


def stages(*rows):
    return tuple(Stage(device=device, start=start, stop=stop) for device, start, stop in rows)


@pytest.mark.parametrize("name", EVERY)
def test_a_plan_comes_back_from_json_with_the_layout_of_its_strategy(name):
    plan = plan_of(spec_of(name, GPT2, star([4e10, 1e10])))
    document = json.loads(plan.model_dump_json())
    again = plan_from_json(document)
    assert again == plan and type(again.layout) is type(plan.layout)
    assert document["layout"]["kind"] == plan.layout.kind and "extra" not in document


@pytest.mark.parametrize("name", EVERY)
def test_a_run_plays_the_same_from_a_plan_that_went_through_json(name):
    spec = spec_of(name, GPT2, star([4e10, 1e10]))
    plan = plan_of(spec)
    assert play(spec, plan_from_json(json.loads(plan.model_dump_json()))) == play(spec, plan)


def test_every_layout_has_a_kind_of_its_own():
    kinds = [layout.model_fields["kind"].default for layout in layout_types()]
    assert len(kinds) == len(set(kinds)) and all(kinds)


def test_a_layout_of_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(ValidationError, match=r"layout kind 'spiral' is unknown: known are .*pipeline.*tree"):
        Plan.model_validate({"strategy": "x", "holdings": [], "work": [], "layout": {"kind": "spiral"}})


def test_a_layout_of_another_strategy_is_refused():
    document = plan_of(spec_of("gpipe", GPT2, star([1e10]))).model_dump(mode="json")
    with pytest.raises(SpecError, match=r"megatron has a TensorParallelLayout, got a PipelineLayout"):
        plan_from_json(document | {"strategy": "megatron"})


def test_an_unknown_key_of_a_layout_is_refused():
    document = plan_of(spec_of("gpipe", GPT2, star([1e10]))).model_dump(mode="json")
    document["layout"]["colour"] = "red"
    with pytest.raises(SpecError, match=r"colour: unknown key"):
        plan_from_json(document)


def test_two_layouts_cannot_share_a_kind():
    with pytest.raises(
        TypeError, match=r"kind 'pipeline' belongs to PipelineLayout: rename that of Impostor"
    ):

        class Impostor(Layout):
            kind: Literal["pipeline"] = "pipeline"


@pytest.mark.parametrize("name", EVERY)
def test_strategies_keep_nothing_between_runs(name):
    """The registry has one instance of each, which runs of the same process share."""
    chosen = next(one for one in STRATEGIES if one.name == name)
    before = dict(vars(chosen))
    play(spec_of(name, GPT2, star([4e10, 1e10])))
    assert vars(chosen) == before == {"given": {}}


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([(0, 0, 1), (0, 1, 3)], r"device 0 has 2 stages, expected one"),
        ([(0, 0, 1), (1, 1, 2), (0, 2, 3)], r"device 0 has 2 stages, expected one"),
        ([(0, 0, 1), (1, 2, 3)], r"device 1 has layers 2:3, expected at least one layer from 1 on"),
        ([(0, 0, 2), (1, 1, 3)], r"device 1 has layers 1:3, expected at least one layer from 2 on"),
        ([(0, 0, 3), (1, 3, 3)], r"device 1 has layers 3:3, expected at least one layer from 3 on"),
        ([(0, 0, 2)], r"the stages end at layer 2, expected 3"),
        ([], r"the stages end at layer 0, expected 3"),
    ],
)
def test_stages_that_a_pipeline_cannot_run_are_refused(rows, complaint):
    """Two stages in a row on one device would embed the prompt a second time between them."""
    with pytest.raises(PlanError, match=complaint):
        check_stages("x", stages(*rows), 3)
    cluster = star([1e10] * 2)
    with pytest.raises(PlanError, match=complaint):
        stages_placement(ends_placement("x", cluster, GPT2), stages(*rows), GPT2.num_layers)


def test_stages_in_order_with_one_per_device_are_accepted():
    check_stages("x", stages((1, 0, 2), (0, 2, 3)), 3)
    assert PipelineLayout(stages=stages((1, 0, 2), (0, 2, 3))).stages[1].num_layers == 1
