"""Expert parallelism: who has which experts, which rows travel, and that both worlds agree on it."""

import json
from collections import Counter
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.by_hand import DeviceShare, PlanByHand
from engine.domain.errors import PlanError, SpecError
from engine.domain.method_report import PlanAt
from engine.domain.model import ModelSpec
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from engine.ops.layout import tensor_parts
from engine.program.serve import serve
from engine.runs.predict import decisions_in, prepare, simulate
from engine.strategies.expert_parallel.choices import Choices, calls_of, drawn_choices
from engine.strategies.expert_parallel.plan import (
    ExpertsLayout,
    counts_by_load,
    longest_s,
    placement_of,
)
from engine.strategies.expert_parallel.report import ExpertsReport, expert_load, likely_experts
from engine.strategies.registry import strategy
from engine.worlds.calculated import CalculatedWorld
from engine.worlds.common.source import RealSource
from tests.support.memory_world import run_in_memory
from tests.support.one_device import relative_error
from tests.support.small_cases import star

CLUSTER = star((4e10, 1e10, 2.5e10, 6e9))


def spec_of(name="tiny-qwen3-moe", cluster=CLUSTER, new_tokens=4, requests=2, **params):
    return RunSpec(
        cluster=cluster,
        model=catalogue.resolve(name)[0],
        workload=Workload(prompt_tokens=9, new_tokens=new_tokens, requests=requests, pattern="bursty"),
        strategy="expert_parallel",
        params=params,
        seed=4,
    )


def by_hand(*experts):
    shares = [
        DeviceShare(device=one.name, experts=n) for one, n in zip(CLUSTER.devices, experts, strict=True)
    ]
    return PlanByHand(devices=tuple(shares)).to_json()


@pytest.mark.parametrize(
    ("name", "host", "by"),
    [
        ("tiny-mixtral", "d0", "even"),
        ("tiny-qwen3-moe", "d3", "flops"),
        ("tiny-qwen2-moe", "d3", "even"),
        ("tiny-qwen2-moe", "d0", "host"),
        ("tiny-qwen3-moe", "d1", "load"),
    ],
)
def test_all_placements_compute_what_transformers_does(name, host, by):
    spec = spec_of(name, host=host, by=by)
    if by == "load":
        model = spec.model.model_copy(update={"expert_load": (9, 1, 1, 1, 1, 1, 1, 9)})
        spec = spec.model_copy(update={"model": model})
    prepared = prepare(spec)
    source, _ = run_in_memory(spec, prepared.plan, requests_of(spec))
    expected = transformers_outputs.compute(spec)
    for index in range(2):
        assert relative_error(torch.stack(source.logits[index]), expected[f"logits.{index}"]) < 1e-4


def test_a_host_without_experts_asks_others_for_all_of_them():
    spec = spec_of(host="d1", plan=by_hand(3, 0, 0, 5))
    plan = prepare(spec).plan
    assert plan.layout == ExpertsLayout(host=1, group=(0, 1, 2, 3), experts=(0, 3, 3, 3, 8))
    source, _ = run_in_memory(spec, plan, requests_of(spec))
    expected = transformers_outputs.compute(spec)
    assert relative_error(torch.stack(source.logits[0]), expected["logits.0"]) < 1e-4


def test_rows_travel_only_to_devices_with_experts_that_they_choose():
    """Two rows, two experts each: 0 and 1 of the first device, 1 and 3."""
    model = catalogue.resolve("tiny-mixtral")[0]
    weights = torch.tensor([[0.6, 0.4, 0, 0], [0, 0.5, 0, 0.5]])
    routed = torch.cat((torch.zeros(2, model.hidden_size), weights), dim=1)[None]
    answer = json.loads(json.dumps(Choices(model, (0, 2, 3, 4), 0)(routed)))
    assert calls_of(answer) == [((0, 1), 3, 2), ((), 0, 0), ((1,), 1, 1)]


@pytest.mark.parametrize("likely", [0, 3])
def test_choices_that_are_drawn_are_all_of_every_row_s_experts(likely):
    model = catalogue.resolve("tiny-qwen3-moe")[0].model_copy(update={"likely_experts": likely})
    bounds = (0, 1, 5, 8)
    for rows in (1, 7, 200):
        routed = torch.zeros(1, rows, model.hidden_size + 8)
        calls = calls_of(Choices(model, bounds, 5).prior(routed))
        assert sum(call.pairs for call in calls) == 3 * rows
        assert sum(call.chosen for call in calls) <= (likely or 8)
        for call, (start, stop) in zip(calls, pairwise(bounds), strict=True):
            assert len(call.rows) <= call.pairs <= len(call.rows) * (stop - start)


def test_a_simulation_with_the_choices_of_a_run_does_and_sends_the_same():
    spec = spec_of(by="even")
    prepared = prepare(spec)
    trace = []
    world, chosen = CalculatedWorld(spec, prepared.plan, trace.append), strategy(spec.strategy)
    source = RealSource(world.devices[0])
    world.run(
        (rank, serve(one, chosen, prepared.plan, spec.workload, prepared.requests, None if rank else source))
        for rank, one in enumerate(world.devices)
    )
    decided = decisions_in(trace)
    again, outcome = simulate(prepared, decisions=decided)
    assert outcome.kind == "finished"

    def facts(items, kind):
        spans = [one for one in items if isinstance(one, Span) and one.kind == kind]
        return sorted((one.device, one.name, one.layer, one.bytes, one.flops) for one in spans)

    drawn, _ = simulate(prepared)
    report = ExpertsReport.of(CLUSTER, [PlanAt(0.0, prepared.plan)], trace)
    rows = 2 * (9 + 3)  # two requests, three of each one's four tokens fed back
    assert sum(one.pairs for one in report.devices) == 2 * 3 * rows  # layers, experts of a row
    assert [one.experts for one in report.devices] == [2, 2, 2, 2]
    assert 0 < report.likely_experts <= 8
    assert ExpertsReport.of(CLUSTER, [PlanAt(0.0, prepared.plan)], again) == report
    for kind in ("compute", "send"):
        assert facts(again, kind) == facts(trace, kind)
        assert facts(drawn, kind) != facts(trace, kind)


def test_a_report_says_how_often_rows_chose_each_expert():
    """Two rows, two experts each: 0 and 1 of the first device, 1 and 3; then once more."""
    model = catalogue.resolve("tiny-mixtral")[0]
    weights = torch.tensor([[0.6, 0.4, 0, 0], [0, 0.5, 0, 0.5]])
    routed = torch.cat((torch.zeros(2, model.hidden_size), weights), dim=1)[None]
    answer = json.loads(json.dumps(Choices(model, (0, 2, 3, 4), 0)(routed)))
    marks = [Mark(0.1, "decided", "d0", {"decision": "experts", "answer": answer})] * 2
    assert expert_load(marks, 4) == (2, 4, 0, 2)
    before = [each[:3] for each in answer]
    assert expert_load([Mark(0.1, "decided", "d0", {"decision": "experts", "answer": before})], 4) == ()


def test_recorded_choices_are_drawn_as_often_as_they_were_made():
    """One expert of each row: the shares are the load's. Two: no row has an expert twice or one without
    load."""
    load = (1, 0, 6, 3)
    counts = Counter(row[0] for row in drawn_choices(4, 4, 1, 20_000, 1, load))
    assert [counts[expert] / 20_000 for expert in range(4)] == pytest.approx([0.1, 0, 0.6, 0.3], abs=0.01)
    for row in drawn_choices(4, 4, 2, 50, 1, load):
        assert len(set(row)) == 2 and 1 not in row


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_experts_by_load_have_the_shortest_longest_time_of_all_ways_to_divide_them(data):
    devices, experts = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 8))
    load = data.draw(st.lists(st.integers(0, 20), min_size=experts, max_size=experts).filter(any))
    speed = data.draw(st.lists(st.floats(0.1, 10), min_size=devices, max_size=devices))
    room = data.draw(
        st.lists(st.integers(0, experts), min_size=devices, max_size=devices).filter(
            lambda room: sum(room) >= experts
        )
    )
    ways = [counts for counts in product(*(range(most + 1) for most in room)) if sum(counts) == experts]
    by_speed = data.draw(st.sampled_from(ways))
    found = counts_by_load(load, speed, room, by_speed)
    assert found in ways
    least_s = min(longest_s(load, speed, counts) for counts in ways)
    assert longest_s(load, speed, found) == pytest.approx(least_s, rel=1e-9)


def test_an_even_load_is_placed_as_by_speed_where_that_divides_it_and_rows_travel_for_nothing():
    model = catalogue.resolve("tiny-qwen3-moe")[0].model_copy(update={"expert_load": (5,) * 8})
    near = CLUSTER.model_copy(
        update={
            "devices": tuple(
                one.model_copy(update={"message_overhead_s": 0.0}) for one in star((1e10,) * 4).devices
            ),
            "links": tuple(
                one.model_copy(update={"bit_per_s": 1e18, "delay_s": 0.0}) for one in CLUSTER.links
            ),
        }
    )
    spec = spec_of(cluster=near).model_copy(update={"model": model})
    by_load = spec.model_copy(update={"params": {"by": "load"}})
    assert prepare(by_load).plan.layout == prepare(spec).plan.layout
    far = by_load.model_copy(update={"cluster": star((1e10,) * 4)})
    counts = [stop - start for start, stop in pairwise(prepare(far).plan.layout.experts)]
    assert counts[0] > max(counts[1:])  # the host's rows do not travel


def test_a_load_on_few_experts_gives_the_device_with_them_fewer_and_is_faster():
    load = (40, 40, 1, 1, 1, 1, 1, 1)
    model = catalogue.resolve("tiny-qwen3-moe")[0].model_copy(update={"expert_load": load})
    slow = star((1e7,) * 4)
    spec = spec_of(cluster=slow, host="d0").model_copy(update={"model": model})
    found = {
        by: prepare(spec.model_copy(update={"params": {"host": "d0", "by": by}})) for by in ("flops", "load")
    }
    assert found["flops"].plan.layout.experts == (0, 2, 4, 6, 8)
    assert found["load"].plan.layout.experts[:2] == (0, 1)
    ends = {
        by: max(one.end_s for one in simulate(one)[0] if isinstance(one, Span)) for by, one in found.items()
    }
    assert ends["load"] < ends["flops"]


def test_placing_by_load_asks_for_a_record_and_the_record_for_the_model():
    with pytest.raises(PlanError, match="give --likely-experts REPORT"):
        prepare(spec_of(by="load"))
    fields = catalogue.resolve("tiny-qwen3-moe")[0].model_dump(mode="json")
    with pytest.raises(SpecError, match="expert_load is of 4 experts, and there are 8"):
        ModelSpec.parse(fields | {"expert_load": [1] * 4}, "model")


def test_a_report_says_among_how_many_experts_rows_chose():
    def decided(*calls):
        return Mark(0.1, "decided", "d0", {"decision": "experts", "answer": [list(call) for call in calls]})

    # Four rows with two of eight each: even choices among M have M·(1 − (1 − 2/M)⁴) different ones, which is
    # 3.75 for M = 4 and 4.35 for M = 5.
    alone = decided(("1", 1, 1), ("1", 1, 1))
    assert likely_experts([alone], 8) == 0
    assert likely_experts([alone, decided(("f", 4, 1), ("f", 4, 3))], 8) == 4
    assert likely_experts([decided(("f", 4, 1), ("f", 4, 1))], 8) == 2
    assert likely_experts([decided(("f", 4, 4), ("f", 4, 4))], 8) == 8


def test_experts_are_shared_by_speed_within_the_memory_of_each_device():
    model = catalogue.resolve("tiny-qwen3-moe")[0].model_copy(update={"num_experts": 64})
    small = CLUSTER.devices[0].model_copy(update={"memory_bytes": 300_000})
    cluster = CLUSTER.model_copy(update={"devices": (small, *CLUSTER.devices[1:])})
    spec = spec_of(cluster=cluster, host="d2").model_copy(update={"model": model})
    plan = prepare(spec).plan
    counts = [stop - start for start, stop in pairwise(plan.layout.experts)]
    assert sum(counts) == 64
    assert 0 < counts[0] < min(counts[1:])
    counts = [counts[0] + 1, counts[1] - 1, *counts[2:]]
    with pytest.raises(PlanError, match="d0 needs"):  # the fastest had no room for one more
        prepare(spec.model_copy(update={"params": {"host": "d2", "plan": by_hand(*counts)}}))


def test_too_little_memory_is_refused_with_who_lacks_it():
    poor = tuple(one.model_copy(update={"memory_bytes": 60_000}) for one in CLUSTER.devices)
    with pytest.raises(
        PlanError, match=r"needs .* has .*give it more memory, or add devices that take experts"
    ):
        prepare(spec_of(cluster=CLUSTER.model_copy(update={"devices": poor})))


def test_a_plan_by_hand_must_place_every_expert_once():
    with pytest.raises(PlanError, match="divides 7 experts, and tiny-qwen3-moe has 8"):
        prepare(spec_of(plan=by_hand(3, 0, 0, 4)))


def test_devices_with_experts_alone_hold_no_router_and_no_attention():
    model = catalogue.resolve("tiny-qwen2-moe")[0]
    placement = placement_of("expert_parallel", CLUSTER, model, 1, (0, 1, 2, 3), (0, 2, 3, 4, 5))
    assert all(piece.bare and piece.part == "ffn" for piece in placement.held_by(3))
    keys = {part.key for piece in placement.held_by(3) for part in tensor_parts(model, piece)}
    assert keys == {"experts.4.up.weight", "experts.4.gate.weight", "experts.4.down.weight"}


def test_a_dense_model_is_on_its_host_alone():
    plan = strategy("expert_parallel").plan(
        CLUSTER,
        catalogue.resolve("tiny-llama")[0],
        Workload(prompt_tokens=9, new_tokens=2),
        strategy("expert_parallel").Params(host="d2"),
    )
    assert (plan.layout.host, plan.layout.asked) == (2, ())


def test_a_mark_of_the_plan_before_that_comes_late_is_not_taken_for_the_new_one():
    plans = [PlanAt(0.0, prepare(spec_of()).plan)]
    late = Mark(0.5, "experts_used", "device-1", {"group": [1], "pairs": [3]})
    assert plans[0].plan.layout.group != (1,)
    assert ExpertsReport.of(CLUSTER, plans, [late]) is None


def test_a_run_that_lost_a_device_is_played_again_with_the_choices_of_each_group():
    calm, _ = simulate(prepare(spec_of()))
    half_s = max(one.end_s for one in calm if isinstance(one, Span)) / 2
    lost = Scenario(changes=(DropDevice(at_s=half_s, device=CLUSTER.devices[-1].name),))
    prepared = prepare(spec_of().model_copy(update={"scenario": lost}))
    trace, outcome = simulate(prepared)
    assert outcome.kind == "finished" and any(one.name == "replanned" for one in trace)
    again, outcome = simulate(prepared, decisions=decisions_in(trace))
    assert outcome.kind == "finished"
    assert max(one.end_s for one in again if isinstance(one, Span)) == max(
        one.end_s for one in trace if isinstance(one, Span)
    )
