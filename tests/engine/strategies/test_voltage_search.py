"""Voltage's search for shares and devices: against even shares, one device and brute force, as simulated."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.trace import Span
from engine.models import catalogue
from engine.strategies.voltage.partition import best_bounds, shards_at
from tests.support.adaptlink_cases import with_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, play, spec_of, star

CAUSAL = {"causal_trim": True, "gather": "causal"}
EXACT = {"op_overhead_s": 0.0, "message_overhead_s": 0.0, "compute_model": "flops"}


def latency_s(spec, plan=None):
    return max(item.end_s for item in play(spec, plan) if isinstance(item, Span))


def at_rates(spec, *bit_per_s):
    """`spec` with these rates of its links, the last one for all further links."""
    links = [
        link.model_copy(update={"bit_per_s": bit_per_s[min(i, len(bit_per_s) - 1)]})
        for i, link in enumerate(spec.cluster.links)
    ]
    return spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"links": tuple(links)})})


def gpt2_case(devices, bit_per_s, **params):
    """GPT-2 over 200 words on equal machines of 171 GFLOP/s and a terminal, causal gathers."""
    model = catalogue.resolve("gpt2", "random")[0]
    cluster = star([171e9] * devices, terminal=True, memory_bytes=8e9, **EXACT)
    spec = spec_of("voltage", model, cluster, rows=200, new_tokens=1, **CAUSAL, **params)
    return at_rates(spec, bit_per_s)


def test_two_devices_with_a_causal_gather_at_300_mbit_per_s_are_not_given_up_for_one():
    """By the time of a direct gather they would be; with the causal one they take 0.17 s instead of 0.23."""
    plan = plan_of(gpt2_case(2, 3e8, fallback="single"))
    assert plan.layout.devices == (0, 1)
    alone_s, together_s = latency_s(gpt2_case(1, 3e8)), latency_s(gpt2_case(2, 3e8))
    assert together_s < 0.76 * alone_s
    direct = gpt2_case(2, 3e8, fallback="single")
    direct = direct.model_copy(update={"params": direct.params | {"gather": "direct"}})
    assert latency_s(direct) <= alone_s * 1.001


def test_a_search_for_six_devices_and_a_causal_gather_is_no_slower_than_even_shares():
    even_s, searched_s = latency_s(gpt2_case(6, 5e8)), latency_s(gpt2_case(6, 5e8, planner="best"))
    assert searched_s <= even_s


rates = st.lists(st.floats(8.5, 11.5), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([GPT2, LLAMA, BERT]),
    rates,
    st.lists(st.floats(6.5, 9.5), min_size=6, max_size=6),
    st.booleans(),
    st.sampled_from([4, 11, 40]),
    st.sampled_from(["direct", "ring", "causal"]),
    st.sampled_from(["all", "needed"]),
    st.sampled_from(["kv_single", "recompute"]),
)
def test_the_search_is_never_slower_than_even_shares_or_any_single_device(
    model, powers, links, terminal, rows, gather, last, decode
):
    if gather == "causal" and not model.causal:
        gather = "direct"
    params = {"gather": gather, "causal_trim": gather == "causal", "last_layer_rows": last, "decode": decode}
    cluster = star([10**power for power in powers], terminal=terminal)

    def spec_with(**more):
        spec = spec_of("voltage", model, cluster, rows=rows, **(params | more))
        return at_rates(spec, *(10**power for power in links))

    searched_s = latency_s(spec_with(planner="best"))
    even_s, fallback_s = latency_s(spec_with()), latency_s(spec_with(fallback="single"))
    ranks = set(range(len(powers)))
    alone_s = []
    for rank in ranks:
        spec = spec_with()
        one = spec.cluster.without(ranks - {rank})
        alone_s.append(latency_s(spec.model_copy(update={"cluster": one})))
    # few layers and tokens stand for all
    assert searched_s <= min(even_s, *alone_s) * 1.02
    assert fallback_s <= min(even_s, *alone_s) * 1.02


@pytest.mark.parametrize("rates", [(4e9, 1e9), (1e9, 3e9)])
@pytest.mark.parametrize("gather", ["direct", "causal"])
def test_of_two_devices_the_search_finds_the_bounds_of_brute_force(rates, gather):
    model = GPT2.model_copy(update={"num_layers": 6})
    params = {"gather": gather, "causal_trim": gather == "causal"}
    cluster = star(rates, terminal=True, **EXACT)
    spec = at_rates(spec_of("voltage", model, cluster, rows=24, new_tokens=1, **params), 1e9)
    plan = plan_of(spec)

    def simulated_s(stop):
        ends = (0, stop, 24)
        shards = shards_at(model, plan.layout, ends)
        ratios = tuple((b - a) / 24 for a, b in pairwise(ends))
        layout = plan.layout.model_copy(update={"shards": shards, "ratios": ratios})
        return latency_s(spec, plan.model_copy(update={"layout": layout}))

    searched = spec.model_copy(update={"params": params | {"planner": "best"}})
    assert latency_s(searched) <= min(simulated_s(stop) for stop in range(1, 24)) * 1.01


def test_the_search_leaves_out_a_device_without_memory_for_the_model():
    cluster = star([1e9] * 3, terminal=True, **EXACT)
    small = with_memory(cluster, d1=1e4)
    spec = at_rates(spec_of("voltage", BERT, small, rows=40, planner="best"), 1e10)
    plan = plan_of(spec)
    assert plan.layout.devices == (0, 2)
    assert not plan.held_by(1)
    with pytest.raises(PlanError, match="d1 needs"):
        plan_of(spec.model_copy(update={"params": {"ratio": "even"}}))


@pytest.mark.parametrize("trims", [False, True])
def test_only_with_trimmed_keys_the_owner_of_the_cache_keeps_the_last_row(trims):
    """The last device is by far the fastest, and gets rows unless they must end with the owner's."""
    devices = star([1e9, 1e9, 1e12], terminal=False, **EXACT).devices
    old, room = (0, 20, 40, 40), (1 << 40,) * 3
    new = best_bounds(GPT2, devices, 1, old, "reorder", trims, 1, room)
    assert (new[2] == 40) is trims and new[-1] == 40
