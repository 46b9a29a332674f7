"""LIME's execution in the simulated world: as long as its event model says, within its memory."""

from itertools import groupby

import pytest

from engine.domain.plan import Slice
from engine.domain.trace import Mark, Span
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.ops.tensors import payload_bytes
from engine.runs.predict import predict
from engine.strategies.lime.cost import event_model
from engine.strategies.lime.ring import step_times
from engine.strategies.registry import strategy
from engine.strategies.shared.demand import demand_of
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, play, sends, spec_of, star

DEEP = {family.name: family.model_copy(update={"num_layers": 8}) for family in (GPT2, LLAMA, BERT)}
GPT = DEEP["small-gpt2"]


def layer_bytes(model):
    return sum(weight_bytes(model, Slice(layer=0, part=part)) for part in ("attention", "ffn"))


def tight(
    model, rates=(1e9, 2e9), layers=3.5, terminal=False, disk_byte_per_s=2e7, extra_bytes=3.5e4, **more
):
    """A star whose devices have memory for so many layers each."""
    return star(
        rates,
        terminal,
        memory_bytes=layers * layer_bytes(model) + extra_bytes,
        disk_byte_per_s=disk_byte_per_s,
        **more,
    )


def case(model=GPT, cluster=None, assumed_tokens=16, **more):
    """A twentieth of the memory stays free, so that some layers must be streamed."""
    params = {"assumed_tokens": assumed_tokens, "reserve_frac": 0.05, **more}
    return spec_of("lime", model, cluster or tight(model), **params)


def spans(trace, kind, device=None):
    return [
        item
        for item in trace
        if isinstance(item, Span) and item.kind == kind and device in (None, item.device)
    ]


def marks(trace, name):
    return [item for item in trace if isinstance(item, Mark) and item.name == name]


def events_of(spec, plan, num_micro_batches):
    """When each token is there, from the event model with what every step costs."""
    layout, model = plan.layout, spec.model
    demand = demand_of(model, spec.workload, False)
    rows = spec.workload.prompt_tokens
    steps = [step_times(spec.cluster, model, layout.ranks, demand, rows, 0)]
    for cached in range(rows, rows + max(0, spec.workload.new_tokens - 1)):
        steps.append(step_times(spec.cluster, model, layout.ranks, demand, 1, cached))
    blocks = [layout.streamed[rank] for rank in layout.ranks]
    loads_s = [
        sum(weight_bytes(model, Slice(layer=0, part=block.part)) for block in each)
        / spec.cluster.devices[rank].disk_byte_per_s
        for rank, each in zip(layout.ranks, blocks, strict=True)
    ]
    sizes = [[stop - start for _, start, stop in segment] for segment in layout.segments]
    return event_model(sizes, blocks, loads_s, steps, num_micro_batches)


def token_times(trace):
    """When the last of a burst's results of each token was computed."""
    ends = sorted((s.token, s.end_s) for s in spans(trace, "compute") if s.name in ("head", "final_hidden"))
    return [max(end for _, end in group) for _, group in groupby(ends, key=lambda one: one[0])]


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("disk_byte_per_s", [1e6, 2e7, 1e9])
@pytest.mark.parametrize("name", DEEP)
def test_one_request_takes_as_long_as_the_event_model_says(name, disk_byte_per_s, terminal):
    model = DEEP[name]
    cluster = tight(model, disk_byte_per_s=disk_byte_per_s, terminal=terminal, staging_byte_per_s=1e9)
    # without an online planner all is planned for the whole answer, as the event model has it
    fixed = {"kv_transfer": False, "online_planner": "off"}
    spec = case(model, cluster, new_tokens=6 if model.causal else 0, **fixed)
    plan = plan_of(spec)
    assert len(plan.layout.segments) > 1 and any(plan.layout.slots.values())
    # a step's estimate has two of the three streams of memory of a sum
    assert token_times(play(spec, plan)) == pytest.approx(events_of(spec, plan, 1), rel=1e-4)


@pytest.mark.parametrize("rates", [(1e9, 2e9), (1e9, 3e9, 2e9)])
@pytest.mark.parametrize("disk_byte_per_s", [1e6, 2e7])
def test_a_burst_takes_as_long_as_the_event_model_says(disk_byte_per_s, rates):
    layers = 4 if len(rates) == 2 else 3
    cluster = tight(GPT, rates, layers, disk_byte_per_s=disk_byte_per_s, compute_model="flops")
    spec = case(GPT, cluster, 20, new_tokens=8, requests=3, pattern="bursty", kv_transfer=False)
    plan = plan_of(spec)
    assert len(plan.layout.segments) > 1
    # a result is computed between two stages, which the event model counts as the first thing of a token
    assert token_times(play(spec, plan))[-1] == pytest.approx(events_of(spec, plan, 3)[-1], rel=1e-6)


@pytest.mark.parametrize("requests", [2, 3, 4])
def test_the_best_planner_reads_weights_once_for_a_burst_as_a_device_alone_does(requests):
    """A device that memory binds reads its weights once for all requests together, or for each again."""
    cluster = star((1e12,), memory_byte_per_s=1e8)
    burst = {"new_tokens": 6, "requests": requests, "pattern": "bursty"}
    paper, best = (spec_of("lime", GPT, cluster, planner=planner, **burst) for planner in ("paper", "best"))
    alone_s = predict(spec_of("single", GPT, cluster, **burst)).latency_s
    assert plan_of(best).layout.micro_batch == requests
    assert predict(best).latency_s <= 1.01 * alone_s
    assert predict(paper).latency_s > 1.3 * alone_s


def test_a_token_in_steady_state_takes_the_planned_step():
    spec = case(cluster=tight(GPT, compute_model="flops"), new_tokens=12, assumed_tokens=24)
    plan = plan_of(spec)
    times = token_times(play(spec, plan))
    middle = times[len(times) // 2] - times[len(times) // 2 - 1]
    assert middle == pytest.approx(plan.layout.planned_step_s, rel=0.02)


def test_everybody_sends_one_hidden_state_per_segment_and_micro_batch():
    spec = case(new_tokens=5, requests=3, pattern="bursty", kv_transfer=False)
    plan = plan_of(spec)
    hidden_bytes = GPT.hidden_size * 4
    decoding = [span for span in sends(play(spec, plan)) if span.token > 0]
    for device in ("d0", "d1"):
        sent = sum(span.payload_bytes for span in decoding if span.device == device)
        assert sent == 4 * 3 * len(plan.layout.segments) * hidden_bytes


@pytest.mark.parametrize("requests", [1, 3])
def test_every_step_loads_every_streamed_block_once_however_many_micro_batches(requests):
    spec = case(new_tokens=5, requests=requests, pattern="bursty", kv_transfer=False)
    plan = plan_of(spec)
    layout, trace = plan.layout, play(spec, plan)
    for rank in layout.ranks:
        expected = sorted(
            (bounds[0] + block.position, block.part)
            for bounds in layout.stages_of(rank)
            for block in layout.streamed[rank]
            for _ in range(5)
        )
        loads = spans(trace, "load", f"d{rank}")
        assert sorted((span.layer, span.name) for span in loads) == expected
        assert sum(span.bytes for span in loads) == sum(
            weight_bytes(GPT, Slice(layer=layer, part=part)) for layer, part in expected
        )


@pytest.mark.parametrize("name", DEEP)
def test_each_layer_of_each_token_is_computed_once_and_in_order(name):
    model = DEEP[name]
    spec = case(model, requests=3, pattern="bursty")
    computed = [
        (span.request, span.token, span.layer)
        for span in sorted(spans(play(spec), "compute"), key=lambda span: span.start_s)
        if span.name in ("block", "attention")
    ]
    assert len(set(computed)) == len(computed) == 3 * max(1, spec.workload.new_tokens) * 8
    for request in range(3):
        mine = [one[1:] for one in computed if one[0] == request]
        assert mine == sorted(mine)


def test_a_device_never_has_more_than_its_memory():
    # the ledger would end the run; this is what it has seen
    spec = case(new_tokens=6)
    for mark in marks(play(spec), "memory"):
        assert mark.facts["peak_bytes"] <= spec.cluster.devices[0].memory_bytes


def test_requests_after_each_other_find_the_slots_as_the_first_one_did():
    one, two = (case(new_tokens=5, requests=num, kv_transfer=False) for num in (1, 2))
    loads = [len(spans(play(spec), "load")) for spec in (one, two)]
    assert loads[1] == 2 * loads[0]


def test_blocks_that_stay_are_not_loaded():
    for fine_grained, parts in ((False, {"attention", "ffn"}), (True, {"attention"})):
        bert = DEEP["small-bert"]
        cluster = tight(bert, (2e9, 1e9), layers=3.35, disk_byte_per_s=1e6)
        spec = case(bert, cluster, fine_grained=fine_grained, num_segments=2)
        assert {span.name for span in spans(play(spec), "load", "d1")} == parts


def test_a_device_too_small_for_a_layer_is_left_out_and_a_source_so_small_still_feeds():
    cluster = tight(GPT, (1e9, 1e9, 2e9), 3.5)
    small = [
        device.model_copy(update={"memory_bytes": 0.9 * layer_bytes(GPT)}) if rank == 0 else device
        for rank, device in enumerate(cluster.devices)
    ]
    spec = case(cluster=cluster.model_copy(update={"devices": tuple(small)}), new_tokens=3)
    plan = plan_of(spec)
    assert plan.layout.left_out == ("d0",)
    trace = play(spec, plan)
    assert {span.name for span in spans(trace, "compute", "d0")} == {"embed", "head"}
    assert len(spans(trace, "load")) > 0


def test_a_ring_of_one_device_streams_alone():
    spec = case(cluster=tight(GPT, (1e9,), 5.5), new_tokens=4)
    plan, trace = plan_of(spec), play(spec)
    assert len(plan.layout.segments) > 1 and not sends(trace) and spans(trace, "load")
    assert token_times(trace) == pytest.approx(events_of(spec, plan, 1))


def test_one_segment_sends_what_a_plain_pipeline_sends():
    spec = case(cluster=star((1e9, 2e9)), new_tokens=4, assumed_tokens=0)
    pipeline = spec_of("gpipe", GPT, spec.cluster, by="flops")
    plan = plan_of(spec)
    assert len(plan.layout.segments) == 1 and not spans(play(spec, plan), "load")
    sent = [
        sorted((span.device, span.token, span.payload_bytes) for span in sends(play(one)))
        for one in (spec, pipeline)
    ]
    assert sent[0] == sent[1]


def test_parameters_are_the_papers_ablations():
    params = strategy("lime").Params
    assert params.parse({"online_planner": "layers", "kv_transfer": False}, "here").kv_transfer is False
    plan = plan_of(case(online_planner="layers"))
    assert all(one[1] == one[2] for plans in plan.layout.online.values() for one in plans)
    assert not plan_of(case(kv_transfer=False)).layout.transfers
    assert kv_bytes_per_row(GPT, 4) == payload_bytes_of_row()


def payload_bytes_of_row():
    from engine.ops.tensors import Meta

    return payload_bytes(Meta((2, 1, 4, 1, GPT.head_dim)))
