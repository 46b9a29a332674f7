"""Voltage's options: new partitions, causal gathers, only the needed rows, recomputed passes."""

from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bench.fuzz.check import check
from engine.domain.conditions import Conditions
from engine.domain.errors import PlanError, SpecError
from engine.domain.scenario import Scenario, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.inputs.prompts import requests_of
from engine.models.weights.store import WeightStore
from engine.program.serve import serve
from engine.reports.fold import fold
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import strategy
from tests.support.memory_world import MemoryWorld, run_in_memory, source_in
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, play, prompts, sends, spec_of, star

ELEMENT = 4
EVEN = [1e10] * 3


def answers_of(source):
    return source.states or {request: torch.stack(rows) for request, rows in source.logits.items()}


def assert_same_answers(source, other):
    ours, theirs = answers_of(source), answers_of(other)
    assert ours.keys() == theirs.keys()
    for request in ours:
        assert float((ours[request] - theirs[request]).abs().max()) < 1e-4
        assert ours[request].argmax(-1).tolist() == theirs[request].argmax(-1).tolist()


def alone(spec):
    one = spec.model_copy(update={"strategy": "single", "params": {}})
    return run_in_memory(one, plan_of(one), prompts(one))[0]


# causal gather


def test_a_causal_gather_sends_rows_to_later_devices_only_and_half_of_the_volume():
    def gathered(gather):
        spec = spec_of("voltage", GPT2, star(EVEN), rows=12, causal_trim=True, gather=gather, new_tokens=1)
        return [(s.device, s.peer, s.payload_bytes) for s in sends(play(spec)) if s.layer == 0]

    shard = 4 * GPT2.hidden_size * ELEMENT
    assert sorted(gathered("causal")) == [("d0", "d1", shard), ("d0", "d2", shard), ("d1", "d2", shard)]
    assert sum(size for *_, size in gathered("direct")) == 2 * sum(size for *_, size in gathered("causal"))


@pytest.mark.parametrize("rates", [EVEN, [3e10, 1e9, 1e10, 2e9], [1e10] * 13])
def test_a_causal_gather_changes_no_number(rates):
    spec = spec_of("voltage", LLAMA, star(rates), ratio="proportional", causal_trim=True, gather="causal")
    assert_same_answers(run_in_memory(spec, plan_of(spec), prompts(spec))[0], alone(spec))


def test_a_causal_gather_is_refused_where_earlier_rows_see_later_ones():
    for model, params in ((BERT, {"causal_trim": True}), (GPT2, {})):
        with pytest.raises(SpecError, match=r"gather: causal .* choose direct or ring"):
            plan_of(spec_of("voltage", model, star(EVEN), gather="causal", **params))


# rows of the last layer


def test_of_a_needed_last_layer_one_device_computes_and_sends_one_row():
    cluster = star(EVEN, terminal=True)
    spec = spec_of("voltage", GPT2, cluster, rows=12, new_tokens=1, last_layer_rows="needed")
    trace, last = play(spec), GPT2.num_layers - 1
    row = GPT2.hidden_size * ELEMENT
    assert [(s.device, s.payload_bytes) for s in sends(trace) if s.layer == last] == [("d2", row)]
    blocks = {
        item.device
        for item in trace
        if isinstance(item, Span) and item.name == "position_block" and item.layer == last and item.flops
    }
    owner = plan_of(spec).layout.owner  # fills its KV cache in any case
    assert blocks == {"d2", f"d{owner}"}


@pytest.mark.parametrize("family", ["tiny-vit", "tiny-bert", "tiny-gpt2", "tiny-llama"])
def test_the_needed_row_is_a_decoder_s_last_a_classifier_s_first_and_else_all(family):
    model, weights = catalogue.resolve(family, None)
    workload = Workload(prompt_tokens=7 if model.reads_text else None, new_tokens=3 if model.causal else 0)
    spec = RunSpec(
        cluster=star(EVEN),
        model=model,
        weights=weights,
        workload=workload,
        strategy="voltage",
        params={"last_layer_rows": "needed"},
    )
    prepared = prepare(spec)
    works = [
        (work.device, work.slice.axis)
        for work in prepared.plan.work
        if work.slice.layer == model.num_layers - 1 and work.phase == "prefill" and work.slice.part == "ffn"
    ]
    expected = {
        "tiny-vit": [(0, "all")],
        "tiny-bert": [(rank, "positions") for rank in range(3)],
        "tiny-gpt2": [(2, "all")],
        "tiny-llama": [(2, "all")],
    }
    assert works == expected[family]
    one = spec.model_copy(update={"strategy": "single", "params": {}})
    source, _ = run_in_memory(spec, prepared.plan, requests_of(spec))
    assert_same_answers(source, run_in_memory(one, prepare(one).plan, requests_of(one))[0])


# every token a pass over all rows


def test_recomputing_gives_the_tokens_of_a_kv_cache_and_keeps_none():
    spec = spec_of("voltage", LLAMA, star(EVEN), rows=5, new_tokens=6, decode="recompute")
    source, world = run_in_memory(spec, plan_of(spec), prompts(spec))
    assert_same_answers(source, alone(spec))
    assert not any(device.caches for device in world.devices)


def test_recomputing_sends_all_rows_so_far_for_every_token():
    spec = spec_of("voltage", GPT2, star(EVEN, terminal=True), rows=9, new_tokens=3, decode="recompute")
    trace, row = play(spec), GPT2.hidden_size * ELEMENT
    for token, rows in ((0, 9), (1, 10), (2, 11)):
        fed = [s.payload_bytes // row for s in sends(trace) if s.device == "term" and s.token == token]
        assert fed == [rows] * 3
        gathered = sum(s.payload_bytes // row for s in sends(trace) if s.token == token and s.layer == 0)
        assert gathered == 2 * rows  # (K-1)·N over all devices


def test_recomputing_has_no_decode_owner_to_name():
    with pytest.raises(SpecError, match=r"decode_owner is d1.*leave it empty"):
        plan_of(spec_of("voltage", GPT2, star(EVEN), decode="recompute", decode_owner="d1"))


# new bounds on the way


def slowed(spec, at_s, device="d1", factor=10.0):
    change = SlowDevice(at_s=at_s, device=device, factor=factor)
    return spec.model_copy(update={"scenario": Scenario(changes=(change,))})


def marks(trace, name):
    return [item for item in trace if isinstance(item, Mark) and item.name == name]


def long_bert(**params):
    model = BERT.model_copy(update={"num_layers": 12})
    return spec_of("voltage", model, star([1e8] * 3, terminal=True, op_overhead_s=0.0), rows=48, **params)


def latency_s(spec):
    prepared = prepare(spec)
    trace, outcome = simulate(prepared)
    assert outcome.kind == "finished", outcome.sentence
    return fold(spec, prepared.plan, trace, world="predicted", outcome=outcome).latency_s, trace


def test_after_a_slow_down_the_next_layers_are_divided_anew_and_the_pass_is_faster():
    whole_s, _ = latency_s(long_bert())
    stays_s, calm = latency_s(slowed(long_bert(), whole_s / 4))
    moves_s, trace = latency_s(slowed(long_bert(repartition=True), whole_s / 4))
    assert not marks(calm, "repartitioned")
    (mark,) = marks(trace, "repartitioned")
    sizes = [b - a for a, b in pairwise(mark.facts["bounds"])]
    assert sizes[1] < 5 and sum(sizes) == 48 and abs(sizes[0] - sizes[2]) <= 1
    assert mark.facts["reason"] == "d1 computes 0.1 times as fast"
    assert 0 < mark.facts["layer"] < 12
    assert moves_s < 0.6 * stays_s


def test_new_bounds_cost_eight_bytes_per_number_and_nothing_without_a_change():
    spec = long_bert(repartition=True)
    whole_s, calm = latency_s(spec)
    _, plain = latency_s(long_bert())
    assert sorted(map(facts_of, sends(calm))) == sorted(map(facts_of, sends(plain)))
    _, trace = latency_s(slowed(spec, whole_s / 4))
    header = sends(calm)[0].bytes - sends(calm)[0].payload_bytes
    noted = [s for s in sends(trace) if s.bytes - s.payload_bytes > header]
    assert {s.bytes - s.payload_bytes - header for s in noted} == {4 * 8}
    # the leader to two peers once, and at the end to the terminal
    assert [(s.device, s.peer) for s in noted] == [("d0", "d1"), ("d0", "d2"), ("d0", "term")]


def facts_of(span):
    return span.device, span.peer, span.name, span.bytes


def test_a_device_that_recovers_gets_its_positions_back():
    spec = long_bert(repartition=True)
    whole_s, _ = latency_s(spec)
    changes = [
        SlowDevice(at_s=whole_s / 4, device="d1", factor=10.0),
        SlowDevice(at_s=whole_s / 2, device="d1", factor=1.0),
    ]
    _, trace = latency_s(spec.model_copy(update={"scenario": Scenario(changes=tuple(changes))}))
    _, again = marks(trace, "repartitioned")
    assert again.facts["bounds"] == [0, 16, 32, 48]


def test_a_leader_that_lost_all_its_rows_still_tells_the_others_of_new_bounds():
    spec = long_bert(repartition=True)
    whole_s, _ = latency_s(spec)
    changes = (
        SlowDevice(at_s=whole_s / 4, device="d0", factor=1000.0),
        SlowDevice(at_s=whole_s / 2, device="d1", factor=3.0),
    )
    _, trace = latency_s(spec.model_copy(update={"scenario": Scenario(changes=changes)}))
    first, second = marks(trace, "repartitioned")
    assert (first.device, first.facts["bounds"]) == ("d0", [0, 0, 24, 48])
    assert (second.device, second.facts["bounds"][:2]) == ("d0", [0, 0])
    assert 0 < second.facts["bounds"][2] < 24, "d1 is the slower one now"
    sent = {(s.device, s.peer): s.payload_bytes for s in sends(trace) if s.layer == 10}
    row_bytes, ours = BERT.hidden_size * ELEMENT, second.facts["bounds"][2]
    assert sent["d0", "d1"] == sent["d0", "d2"] == 0
    assert (sent["d1", "d2"], sent["d2", "d1"]) == (ours * row_bytes, (48 - ours) * row_bytes)


def test_a_pass_that_begins_after_the_change_has_new_bounds_from_the_input_on():
    _, trace = latency_s(slowed(long_bert(repartition=True), 0.0))
    (mark,) = marks(trace, "repartitioned")
    assert (mark.device, mark.facts["layer"]) == ("term", 0)


def test_new_bounds_need_a_direct_gather():
    with pytest.raises(SpecError, match=r"repartition: .* gather is ring: choose direct"):
        plan_of(spec_of("voltage", BERT, star(EVEN), repartition=True, gather="ring"))


class Changing(MemoryWorld):
    """Devices' speeds change at any moment, and devices learn of it at moments of their own."""

    def disturb(self):
        device = self.random.choice(self.devices)
        if self.random.random() < 0.3:
            conditions = Conditions(self.cluster)
            rank = self.random.choice(self.cluster.workers)
            name, factor = self.cluster.devices[rank].name, self.random.choice((1.0, 3.0, 40.0))
            conditions.apply(SlowDevice(at_s=0.0, device=name, factor=factor))
            device.cluster_now = conditions.cluster


def test_whatever_the_bounds_become_the_answer_stays():
    changed = []

    @settings(
        max_examples=10,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        st.sampled_from([GPT2, LLAMA, BERT]),
        st.integers(1, 5),
        st.booleans(),
        st.integers(2, 20),
        st.fixed_dictionaries(
            {
                "causal_trim": st.booleans(),
                "last_layer_rows": st.sampled_from(["all", "needed"]),
                "decode": st.sampled_from(["kv_single", "recompute"]),
                "order": st.sampled_from(["auto", "reorder"]),
            }
        ),
        st.integers(0, 1000),
    )
    def every(model, devices, terminal, rows, params, seed):
        cluster = star([1e9] * devices, terminal=terminal, op_overhead_s=0.0)
        spec = spec_of(
            "voltage",
            model,
            cluster,
            rows=rows,
            new_tokens=2 if model.causal else 0,
            repartition=True,
            **params,
        )
        plan = plan_of(spec)
        world = Changing(cluster, model, seed)
        source, programs = source_in(world, spec), []
        for rank, device in enumerate(world.devices):
            device.weights = WeightStore(model, spec.weights, spec.seed)
            for piece in plan.held_by(rank):
                device.load(piece)
            io = source if device is source.device else None
            run = serve(device, strategy("voltage"), plan, spec.workload, prompts(spec), io)
            programs.append((rank, run))
        world.run(programs)
        told = [
            facts["bounds"]
            for device in world.devices
            for name, facts in device.marks
            if name == "repartitioned"
        ]
        for bounds in told:
            assert bounds == sorted(bounds) and bounds[0] == 0 and len(bounds) == devices + 1
        changed.append(bool(told))
        assert_same_answers(source, alone(spec))

    every()
    assert sum(changed) >= 3


def test_new_bounds_never_take_more_memory_than_there_is():
    """d1 slows down, but d0 and d2 have no room for its rows."""
    model = BERT.model_copy(update={"num_layers": 4})
    cluster = star([1e8] * 3, terminal=True, op_overhead_s=0.0)
    roomy = spec_of("voltage", model, cluster, rows=48, repartition=True)
    trace, _ = simulate(prepare(roomy))
    peaks = {mark.device: mark.facts["peak_bytes"] for mark in marks(trace, "memory")}
    tight = tuple(
        device.model_copy(update={"memory_bytes": peaks[device.name] + 2000}) for device in cluster.devices
    )
    spec = roomy.model_copy(update={"cluster": cluster.model_copy(update={"devices": tight})})
    trace, outcome = simulate(prepare(slowed(spec, 0.0)))
    assert outcome.kind == "finished", outcome.sentence
    trace, outcome = simulate(prepare(slowed(roomy, 0.0)))
    assert marks(trace, "repartitioned")


def test_shares_of_other_row_counts_keep_the_plan_s_ratios():
    plan = plan_of(spec_of("voltage", GPT2, star([4e10, 1e10, 1e10]), rows=12, ratio="proportional"))
    ratios = plan.layout.ratios
    assert sum(ratios) == pytest.approx(1)
    assert list(accumulate(shard.size for shard in plan.layout.shards))[-1] == 12


@pytest.mark.parametrize(("fallback", "used"), [("none", [0, 1]), ("single", [0])])
def test_of_two_devices_of_which_one_computes_next_to_nothing_the_fallback_is_the_other(fallback, used):
    cluster = star([1e12, 1e3], compute_model="flops")
    plan = plan_of(spec_of("voltage", BERT, cluster, ratio="even", fallback=fallback))
    assert [shard.device for shard in plan.layout.shards] == used


# who generates, and its memory


def test_the_device_that_a_plan_by_hand_names_generates_and_no_other():
    rows = [{"device": name, "rows": 4} for name in ("d0", "d1", "d2")]
    for decoder, rank in (("d0", 0), ("d2", 2)):
        plan = plan_of(spec_of("voltage", GPT2, star(EVEN), plan={"devices": rows, "decoder": decoder}))
        assert {work.device for work in plan.work if work.phase == "decode"} == {rank}
    unnamed = plan_of(spec_of("voltage", GPT2, star([1e10, 3e10, 1e10]), plan={"devices": rows}))
    assert unnamed.layout.owner == 1, "nobody is named: the fastest"


def test_only_the_device_that_generates_needs_memory_for_the_kv_cache():
    """Keys and values of 63 rows in 3 layers, 32 numbers of 4 bytes each: 48,384 bytes."""
    kv_bytes = 2 * 63 * 3 * 32 * 4
    sizes = {"rows": 4, "new_tokens": 60, "decode_owner": "d1"}
    roomy = spec_of("voltage", GPT2, star(EVEN), **sizes)
    trace, _ = simulate(prepare(roomy))
    peaks = {mark.device: mark.facts["peak_bytes"] for mark in marks(trace, "memory")}
    assert peaks["d1"] > peaks["d2"] + kv_bytes * 0.9

    def with_memory(**memory_bytes):
        devices = [
            device.model_copy(update={"memory_bytes": float(memory_bytes.get(device.name, 4e8))})
            for device in roomy.cluster.devices
        ]
        return roomy.model_copy(
            update={"cluster": roomy.cluster.model_copy(update={"devices": tuple(devices)})}
        )

    assert simulate(prepare(with_memory(d1=peaks["d1"] + 4000, d2=peaks["d2"])))[1].kind == "finished"
    with pytest.raises(PlanError, match=r"^voltage: d1 needs [\d.]+ kB and has [\d.]+ k?B: voltage keeps"):
        plan_of(with_memory(d1=peaks["d1"] - kv_bytes // 2, d2=peaks["d2"]))


@pytest.mark.parametrize("params", [{"planner": "best"}, {"last_layer_rows": "needed"}])
def test_a_text_that_is_not_continued_gets_all_of_its_hidden_states(params):
    cluster = star((1e9, 2e9))
    spec = spec_of("voltage", GPT2, cluster, rows=12, new_tokens=0, **params)
    assert check(spec).end == "equal"
