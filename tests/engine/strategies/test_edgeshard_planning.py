"""EdgeShard's planner against brute force and a worked example, and what is planned for a cluster."""

from dataclasses import replace
from itertools import combinations, pairwise, permutations
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.method_report import PlanAt
from engine.models import catalogue
from engine.strategies.edgeshard import plan as edgeshard
from engine.strategies.edgeshard.orders import lower_bound_s, searched_segments
from engine.strategies.edgeshard.segments import Profile, best_segments, cost_s
from engine.strategies.edgeshard.strategy import EdgeShard
from engine.strategies.shared.stages import Stage
from tests.support.small_cases import BERT, GPT2, plan_of, spec_of, star

OBJECTIVES = ("latency", "throughput")
A, B, C = range(3)
BETWEEN_MS = [[0, 2, 10], [2, 0, 10], [10, 10, 0]]
EXAMPLE = Profile(
    layer_s=[[10] * 6, [20] * 6, [5] * 6],
    hop_s=[BETWEEN_MS] * 7,
    enter_s=[0, inf, inf],
    return_s=[0, 2, 10],
    max_layers=[3, 3, 2],
)
"""6 layers of 100 MB; A (source) 300 MB, B 300 MB, C 200 MB; 0.1 MB at 50 MB/s (A-B) or 10 MB/s. In ms."""


def test_the_worked_example_has_82_ms_latency_and_a_bottleneck_of_30_ms():
    latency = best_segments(EXAMPLE, "latency")
    assert latency == (
        Stage(device=A, start=0, stop=3),
        Stage(device=C, start=3, stop=5),
        Stage(device=B, start=5, stop=6),
    )
    assert cost_s(EXAMPLE, latency, "latency") == 30 + 10 + 10 + 10 + 20 + 2 == 82
    assert cost_s(EXAMPLE, best_segments(EXAMPLE, "throughput"), "throughput") == 30


def brute_force(profile, objective):
    """(cost, stages) of every way to cut the layers and place the pieces; the formulas written out."""
    devices, layers = len(profile.layer_s), len(profile.layer_s[0])
    best = (inf, 0)
    for count in range(1, min(devices, layers) + 1):
        for cuts in combinations(range(1, layers), count - 1):
            bounds = (0, *cuts, layers)
            for order in permutations(range(devices), count):
                sizes = [b - a for a, b in pairwise(bounds)]
                if any(size > profile.max_layers[j] for size, j in zip(sizes, order, strict=True)):
                    continue
                parts = [profile.enter_s[order[0]]]
                for number, j in enumerate(order):
                    if number:
                        parts.append(profile.hop_s[bounds[number]][order[number - 1]][j])
                    parts.append(sum(profile.layer_s[j][bounds[number] : bounds[number + 1]]))
                parts.append(profile.return_s[order[-1]])
                cost = sum(parts) if objective == "latency" else max(parts)
                if cost < best[0] - 1e-9:
                    best = (cost, count)
    return best


@st.composite
def profiles(draw, max_devices=3, max_layers=6):
    devices, layers = draw(st.integers(1, max_devices)), draw(st.integers(1, max_layers))
    whole = st.integers(0, 20)  # small whole numbers make ties, and sums exact
    row = lambda size: st.lists(whole, min_size=size, max_size=size)  # noqa: E731
    hops = draw(
        st.lists(
            st.lists(row(devices), min_size=devices, max_size=devices),
            min_size=layers + 1,
            max_size=layers + 1,
        )
    )
    enter = [0.0, *[inf] * (devices - 1)] if draw(st.booleans()) else draw(row(devices))
    return Profile(
        layer_s=draw(st.lists(row(layers), min_size=devices, max_size=devices)),
        hop_s=hops,
        enter_s=enter,
        return_s=draw(row(devices)),
        max_layers=draw(st.lists(st.integers(0, layers), min_size=devices, max_size=devices)),
    )


def covers(profile, stages):
    assert (stages[0].start, stages[-1].stop) == (0, len(profile.layer_s[0]))
    assert all(a.stop == b.start for a, b in pairwise(stages))
    assert len({stage.device for stage in stages}) == len(stages)
    assert all(0 < s.stop - s.start <= profile.max_layers[s.device] for s in stages)
    return True


@settings(max_examples=100, deadline=None)
@given(profiles(), st.sampled_from(OBJECTIVES))
def test_the_exact_plan_is_as_good_as_brute_force_and_has_as_few_stages(profile, objective):
    cost, count = brute_force(profile, objective)
    stages = best_segments(profile, objective)
    if cost == inf:
        assert stages is None
    else:
        assert covers(profile, stages)
        assert (cost_s(profile, stages, objective), len(stages)) == (cost, count)


@settings(max_examples=50, deadline=None)
@given(profiles(max_devices=5))
def test_each_objective_is_best_at_its_own(profile):
    plans = {objective: best_segments(profile, objective) for objective in OBJECTIVES}
    for mine, other in (OBJECTIVES, OBJECTIVES[::-1]):
        if plans[mine] is not None:
            assert cost_s(profile, plans[mine], mine) <= cost_s(profile, plans[other], mine)


@settings(max_examples=60, deadline=None)
@given(profiles(max_devices=5), st.sampled_from(OBJECTIVES))
def test_a_search_finds_valid_stages_wherever_there_are_any(profile, objective):
    stages, exact = searched_segments(profile, objective), best_segments(profile, objective)
    if stages is not None:
        assert covers(profile, stages)
        assert cost_s(profile, exact, objective) <= cost_s(profile, stages, objective) + 1e-9


@settings(max_examples=80, deadline=None)
@given(profiles(max_devices=5), st.sampled_from(OBJECTIVES))
def test_no_stages_beat_the_bound(profile, objective):
    exact = best_segments(profile, objective)
    bound_s = lower_bound_s(profile, objective)
    if exact is not None:
        assert bound_s <= cost_s(profile, exact, objective) + 1e-9


def test_the_bounds_of_the_worked_example():
    # by memory alone, which is more than the 10 + 10 + 5 · 5 + 10 of a path that may return to C
    assert lower_bound_s(EXAMPLE, "latency") == 3 * 10 + 2 * 5 + 20
    roomy = replace(EXAMPLE, max_layers=[6, 6, 6])
    assert lower_bound_s(roomy, "latency") == 10 + 10 + 5 * 5 + 10
    # by memory alone A has three layers, C two, and B the last
    assert lower_bound_s(EXAMPLE, "throughput") == 30


def alike_layers(seed, devices, layers):
    """A cluster as they are: equal layers, devices that differ by 30 times, links through one switch."""
    draw = Random(seed)
    speeds, ports = ([10 ** draw.uniform(0, 1.5) for _ in range(devices)] for _ in range(2))
    between = [[0.0 if i == j else max(ports[i], ports[j]) for j in range(devices)] for i in range(devices)]
    rooms = [draw.randint(1, max(2, 2 * layers // devices)) for _ in range(devices)]
    return Profile(
        layer_s=[[speed] * layers for speed in speeds],
        hop_s=[between] * (layers + 1),
        enter_s=[0.0, *[inf] * (devices - 1)],
        return_s=between[0],
        max_layers=rooms,
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_search_on_random_clusters_is_within_five_percent_of_the_optimum(objective):
    worse = []
    for seed in range(20):
        profile = alike_layers(seed, devices=6 + seed % 3, layers=18)
        exact = best_segments(profile, objective)
        if exact is not None:
            least_s = cost_s(profile, exact, objective)
            worse.append(cost_s(profile, searched_segments(profile, objective), objective) / least_s)
    assert len(worse) >= 10 and max(worse) < 1.05
    assert sum(ratio < 1 + 1e-9 for ratio in worse) >= 0.9 * len(worse)


def plan_and_stages(*args, **more):
    plan = plan_of(spec_of("edgeshard", *args, **more))
    return plan, list(plan.layout.stages)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_first_layer_stays_on_the_source_and_useless_devices_stay_unused(objective):
    cluster = star([1e9, 1e12, 1e4], compute_model="flops")
    deep = GPT2.model_copy(update={"num_layers": 12, "hidden_size": 256, "intermediate_size": 2048})
    _, stages = plan_and_stages(deep, cluster, objective=objective, first_layer="source")
    assert [stage.device for stage in stages] == [0, 1]
    assert stages[0].stop == 1


def test_a_terminal_hands_everything_to_the_best_worker():
    _, stages = plan_and_stages(BERT, star([1e9, 4e12, 1e9], terminal=True, compute_model="flops"))
    assert stages == [Stage(device=1, start=0, stop=3)]


def test_more_than_twelve_devices_are_planned_by_search_and_the_plan_has_a_bound():
    model = catalogue.resolve("gpt2", "random")[0]
    cluster = star([1e9 * (1 + n % 5) for n in range(16)], memory_bytes=2e9)
    for objective in OBJECTIVES:
        plan, stages = plan_and_stages(model, cluster, objective=objective, first_layer="source")
        assert plan.layout.planner == "search"
        assert (stages[0].device, stages[0].start, stages[-1].stop) == (0, 0, 12)
        assert 0 < plan.layout.bound_s <= plan.layout.planned_s


@pytest.mark.parametrize(("workers", "planner"), [(3, "exact"), (4, "search")])
def test_as_many_devices_as_the_limit_are_still_planned_exactly(workers, planner, monkeypatch):
    monkeypatch.setattr(edgeshard, "EXACT_DEVICES", 3)
    plan, _ = plan_and_stages(GPT2, star([1e9] * workers), first_layer="source")
    assert plan.layout.planner == planner


def test_a_slow_source_computes_no_layer_unless_it_must():
    cluster = star([1e7, 1e12], compute_model="flops")
    anywhere, stages = plan_and_stages(GPT2, cluster)
    assert stages == [Stage(device=1, start=0, stop=3)]
    paper, stages = plan_and_stages(GPT2, cluster, first_layer="source")
    assert stages[0] == Stage(device=0, start=0, stop=1)
    assert anywhere.layout.planned_s < paper.layout.planned_s


def test_a_source_with_layers_has_the_first_of_them():
    for rates in ([1e9, 3e9, 1e9], [3e9, 1e9, 2e9], [1e8, 1e9, 1e9]):
        for objective in OBJECTIVES:
            _, stages = plan_and_stages(GPT2, star(rates), objective=objective)
            assert 0 not in [stage.device for stage in stages[1:]]


def test_the_report_says_what_was_planned_and_how_good_it_is():
    cluster = star([1e9] * 2)
    plan, stages = plan_and_stages(GPT2, cluster)
    report = EdgeShard().summarise(cluster, GPT2, [PlanAt(0.0, plan)], [])
    (told,) = report.plans
    assert (told.is_optimal, told.planner, told.objective) == (True, "exact", "latency")
    assert told.stages == tuple((f"d{s.device}", s.start, s.stop) for s in stages)
    assert "no other stages have less" in report.lines()[1]
    looser = plan.model_copy(update={"layout": plan.layout.model_copy(update={"bound_s": 1e-6})})
    said = EdgeShard().summarise(cluster, GPT2, [PlanAt(0.0, looser)], [])
    assert not said.plans[0].is_optimal and "no stages have less than 1 µs" in said.lines()[1]


def test_a_source_without_room_for_the_first_layer_is_named():
    cluster = star([1e10] * 2)
    small = cluster.devices[0].model_copy(update={"memory_bytes": 4.2e4})
    cluster = cluster.model_copy(update={"devices": (small, cluster.devices[1])})
    with pytest.raises(PlanError, match=r"first layer stays on the source, but d0 needs [\d.]+ kB .* has "):
        plan_and_stages(GPT2, cluster, first_layer="source")
