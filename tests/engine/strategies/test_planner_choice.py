"""The parameter `planner` beside those that only the paper's rule reads."""

import pytest

import topologies
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.planner.choice import PlannedParams
from engine.strategies.registry import STRATEGIES, strategy

PLANNED = [chosen for chosen in STRATEGIES if issubclass(chosen.Params, PlannedParams)]
RULES = [(chosen.name, name) for chosen in PLANNED for name in chosen.Params.rule]


def params_of(name, **params):
    return strategy(name).Params.parse(params, "parameters")


def another(name, rule):
    field = strategy(name).Params.model_fields[rule]
    return next(value for value in field.annotation.__args__ if value != field.default)


def test_methods_without_a_published_rule_for_unequal_devices_or_bursts_look_for_the_best_plan():
    assert {one.name: one.Params().planner for one in PLANNED} == {
        "gpipe": "best",
        "megatron": "best",
        "edgeshard": "paper",
        "deepspeed": "paper",
        "galaxy": "paper",
        "voltage": "paper",
        "lime": "best",
    }


def test_a_burst_of_which_one_board_holds_the_model_is_no_slower_with_lime_than_on_that_board():
    burst = Workload(prompt_tokens=32, new_tokens=16, requests=4, pattern="bursty")
    cluster, (model, _) = topologies.load("lab-4"), catalogue.resolve("demo-lm", "random")
    alone, ring = (
        predict(RunSpec(cluster=cluster, model=model, workload=burst, strategy=name))
        for name in ("single", "lime")
    )
    assert ring.latency_s <= 1.005 * alone.latency_s


@pytest.mark.parametrize(("name", "rule"), RULES)
def test_a_rule_alone_means_the_papers_planner(name, rule):
    assert params_of(name, **{rule: another(name, rule)}).planner == "paper"
    assert params_of(name, **{rule: strategy(name).Params.model_fields[rule].default}).planner == "paper"


@pytest.mark.parametrize(("name", "rule"), RULES)
def test_the_best_planner_refuses_a_rule_that_it_would_not_read(name, rule):
    with pytest.raises(
        SpecError, match=f"{rule}=.* with planner=best.*set planner=paper, or leave {rule} out"
    ):
        params_of(name, planner="best", **{rule: another(name, rule)})


@pytest.mark.parametrize("chosen", PLANNED)
def test_all_parameters_written_out_mean_the_same(chosen):
    for given in ({}, {"planner": "best"}, {"planner": "paper"}):
        params = chosen.Params.model_validate(given)
        assert chosen.Params.model_validate(params.model_dump()) == params


@pytest.mark.parametrize(("name", "rule"), RULES)
def test_the_best_in_place_of_a_rule_leaves_the_rule_out(name, rule):
    kind = strategy(name).Params
    assert kind.with_best({rule: another(name, rule)}) == {"planner": "best"}
    assert kind.with_best({"planner": "best"}) is None


@pytest.mark.parametrize("chosen", PLANNED)
def test_a_plan_made_by_hand_has_no_best_in_its_place(chosen):
    plan = {"devices": [{"device": "a"}]}
    assert chosen.Params.with_best({"planner": "paper", "plan": plan}) is None
    assert chosen.Params.with_best({"planner": "paper"}) == {"planner": "best"}
