"""The own plan of every strategy that takes plans made by hand, given back as one, is the same run."""

import json
from itertools import islice

import pytest

from bench.fuzz.check import outputs_of
from bench.fuzz.draw import draw_spec
from engine.domain.by_hand import PlanByHand
from engine.domain.errors import EdgeLoomError
from engine.program.strategy import DivisibleParams
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import STRATEGIES, strategy
from tests.support.parameter_cases import CRAFTED, with_params
from tests.support.small_cases import GPT2, LLAMA, spec_of, star

BY_HAND = [chosen for chosen in STRATEGIES if issubclass(chosen.Params, DivisibleParams)]
DRAWN, SEED = 4, 31
SHORT_OF_MEMORY = ("adaptlink", "edgeformer", "lime", "tpi_llm_offload")
"""Strategies whose plans have more to them where memory is short."""


def plain(name):
    """Unlike devices, with several heads, columns and layers for each."""
    return [
        spec_of(name, model, star([3e9, 1e9, 2e9][:devices])) for model, devices in ((GPT2, 2), (LLAMA, 2))
    ]


def cases_of(name):
    """Runs of `name` that have a plan, memory for which is short in some."""
    crafted = list(islice(CRAFTED[name](), 4)) if name in SHORT_OF_MEMORY else []
    for spec in (*plain(name), *crafted, *(draw_spec(SEED, i, (strategy(name),)) for i in range(DRAWN))):
        try:
            yield spec, prepare(spec)
        except EdgeLoomError:
            continue


def given_back(spec, plan):
    hand = strategy(spec.strategy).by_hand(spec.cluster, spec.model, plan)
    return with_params(spec, plan=json.loads(json.dumps(hand.to_json())))


@pytest.mark.parametrize("chosen", BY_HAND, ids=lambda chosen: chosen.name)
def test_a_plan_given_back_is_the_same_run_with_the_same_numbers(chosen):
    cases = list(cases_of(chosen.name))
    assert len(cases) >= 2
    for number, (spec, prepared) in enumerate(cases):
        again = prepare(given_back(spec, prepared.plan))
        assert (again.plan.holdings, again.plan.work) == (prepared.plan.holdings, prepared.plan.work)
        assert repr(simulate(again)) == repr(simulate(prepared))
        if not number:
            own, other = outputs_of(prepared), outputs_of(again)
            assert own.keys() == other.keys()
            assert all(own[name].equal(other[name]) for name in own)


@pytest.mark.parametrize("chosen", BY_HAND, ids=lambda chosen: chosen.name)
def test_a_plan_made_by_hand_must_name_only_what_the_strategy_divides(chosen):
    """One sentence names the unit, and one the total."""
    spec = plain(chosen.name)[0]
    params = chosen.Params
    foreign = {"layers", "heads", "columns", "rows", "lent_heads"} - set(params.units)
    for unit in foreign:
        wrong = {"devices": [{"device": "d0", unit: 1}]}
        with pytest.raises(EdgeLoomError, match=f"plan: has {unit}, and a plan made by hand"):
            prepare(with_params(spec, plan=wrong))
    for unit in set(params.units) - {"rows", "lent_heads"}:
        with pytest.raises(EdgeLoomError, match=r"divides [01] .*, and small-gpt2 has"):
            prepare(with_params(spec, plan={"devices": [{"device": "d0", unit: 1}]}))


def test_a_plan_of_the_earlier_form_is_read():
    earlier = {"kind": "stages", "stages": [{"device": "a", "layers": 4}, {"device": "b", "layers": 2}]}
    now = {"devices": [{"device": "a", "layers": 4}, {"device": "b", "layers": 2}]}
    assert PlanByHand.parse(earlier, "plan") == PlanByHand.parse(now, "plan")
    assert PlanByHand.parse(now, "plan").to_json() == now
