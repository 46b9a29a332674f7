"""Parameters that name devices or give each its share, after devices have failed or joined: a new plan, or
one sentence.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.fuzz.params import shares_of
from engine.domain.errors import EdgeLoomError, PlanError
from engine.domain.scenario import DropDevice, JoinDevice, Scenario
from engine.domain.spec import RunSpec
from engine.domain.workload import Request, Workload
from engine.runs.predict import prepare, simulate
from engine.runs.replan import replan
from engine.strategies.registry import STRATEGIES, drafted
from engine.strategies.registry import strategy as named
from tests.support.small_cases import LLAMA, star

CLUSTER = star([3e9, 1e9, 2e9, 1e9])
WORKLOAD = Workload(prompt_tokens=6, new_tokens=3)
REQUESTS = (Request(index=0, tokens=(1, 2, 3), emitted=1),)


def texts_of(strategy):
    """The parameters that are a device's name or a list with a place for each, and a plan made by hand."""
    kinds = {name: field.annotation for name, field in strategy.Params.model_fields.items()}
    return [name for name, kind in kinds.items() if kind is str or name == "plan"]


CASES = [(strategy.name, name) for strategy in STRATEGIES for name in texts_of(strategy)]


def value_of(strategy, parameter, random):
    spec = RunSpec(
        cluster=CLUSTER, model=drafted(named(strategy), LLAMA), strategy=strategy, workload=WORKLOAD
    )
    if parameter == "plan":
        return named(strategy).by_hand(CLUSTER, LLAMA, prepare(spec).plan).to_json()
    return shares_of(random, CLUSTER) if parameter == "ratio" else random.choice(["d1", "d2", "d3"])


@pytest.mark.parametrize(("strategy", "parameter"), CASES)
@settings(max_examples=6)
@given(st.permutations([1, 2, 3]), st.integers(0, 99))
def test_a_list_or_a_name_survives_the_loss_of_one_device_after_the_other(strategy, parameter, order, seed):
    params = {parameter: value_of(strategy, parameter, Random(seed))}
    model = drafted(named(strategy), LLAMA)
    spec = RunSpec(cluster=CLUSTER, model=model, strategy=strategy, workload=WORKLOAD, params=params)
    plan = prepare(spec).plan
    for number in range(1, len(order) + 1):
        left = CLUSTER.without(order[:number])
        try:
            plan = replan(spec, plan, left, REQUESTS)
        except EdgeLoomError as refusal:
            sentence = str(refusal)
            assert sentence.endswith(".") and "\n" not in sentence
            assert parameter not in ("ratio", "plan"), "these hold for whoever is left"
            assert "has failed" in sentence
            return
        assert not {holding.device for holding in plan.holdings} & set(order[:number])


@pytest.mark.parametrize("strategy", ["tpi_llm", "tpi_llm_offload"])
def test_given_shares_stay_in_proportion_among_the_devices_that_are_left(strategy):
    """By hand: 0.4 : 0.2 : 0.2 of 32 columns are 16, 8 and 8; then 0.4 : 0.2 are 21.3 and 10.7, and what is
    left over goes to the last.
    """
    params = {"ratio": "0.4, 0.2, 0.2, 0.2"}
    spec = RunSpec(cluster=CLUSTER, model=LLAMA, strategy=strategy, workload=WORKLOAD, params=params)
    model = LLAMA.model_copy(update={"intermediate_size": 32})
    spec = spec.model_copy(update={"model": model})
    first = replan(spec, prepare(spec).plan, CLUSTER.without([1]), REQUESTS)
    assert (first.layout.group, first.layout.columns) == ((0, 2, 3), (0, 16, 24, 32))
    second = replan(spec, first, CLUSTER.without([1, 3]), REQUESTS)
    assert (second.layout.group, second.layout.columns) == ((0, 2), (0, 21, 32))
    again = replan(spec, second, CLUSTER.without([1]), REQUESTS)
    assert again.layout.columns == first.layout.columns, "a device that comes back has its share again"


def test_a_device_without_a_given_share_gets_none_when_it_joins():
    spec = RunSpec(
        cluster=CLUSTER, model=LLAMA, strategy="tpi_llm", workload=WORKLOAD, params={"ratio": "0.5, 0.3, 0.2"}
    )
    plan = named("tpi_llm").plan(
        CLUSTER.without([2]), LLAMA, WORKLOAD, named("tpi_llm").Params.parse(spec.params, "parameters")
    )
    joined = replan(spec, plan, CLUSTER, REQUESTS)
    assert (joined.layout.group, joined.layout.columns) == (plan.layout.group, plan.layout.columns)
    with pytest.raises(PlanError, match=r"no device is left that has a share in ratio '0.5, 0.3, 0.2'\.$"):
        replan(spec, plan, CLUSTER.without([0, 1, 3]), REQUESTS)


@pytest.mark.parametrize("strategy", ["tpi_llm", "tpi_llm_offload"])
def test_a_run_with_given_shares_goes_on_when_a_device_drops_and_comes_back(strategy):
    spec = RunSpec(
        cluster=CLUSTER,
        model=LLAMA,
        strategy=strategy,
        params={"ratio": "0.4, 0.3, 0.2, 0.1"},
        workload=Workload(prompt_tokens=6, new_tokens=8),
    )
    trace, _ = simulate(prepare(spec))
    end_s = trace[-1].time_s if hasattr(trace[-1], "time_s") else trace[-1].end_s
    changes = (DropDevice(at_s=end_s / 3, device="d2"), JoinDevice(at_s=end_s / 2, device="d2"))
    _, outcome = simulate(prepare(spec.model_copy(update={"scenario": Scenario(changes=changes)})))
    assert outcome.kind == "finished", outcome.sentence
