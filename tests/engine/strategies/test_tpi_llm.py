"""TPI-LLM: shares by ratio, and the blocks of weights that stream through a window from when on."""

from collections import Counter, defaultdict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError, SpecError
from engine.domain.plan import Slice
from engine.ops.core import FeedForward
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import payload_bytes
from engine.strategies.registry import strategy
from engine.strategies.shared.all_reduce_time import all_reduce_s, cluster_all_reduce_s
from engine.strategies.shared.demand import SizedOp, attention_ops, demand_of
from engine.strategies.shared.shares import op_s
from engine.strategies.shared.tensor_parallel import shares_placement
from engine.strategies.tpi_llm.plan import (
    MemberShare,
    blocks_of,
    fullest_window,
    ratios_of,
    shares_in,
    split_from_last,
    streaming_at,
    streams_always,
    streams_as_needed,
)
from engine.strategies.tpi_llm.strategy import chosen_bounds
from tests.support.memory_world import MemoryDevice, alone, run_in_memory
from tests.support.small_cases import GPT2, MODELS, plan_of, play, prompts, sends, spec_of, star
from tests.support.token_time import BlockTime, steady_token_s, token_ends_s

ATTENTION, FFN, ALL_REDUCE_MS = BlockTime(11, 18), BlockTime(17, 30), 14
"""The paper's figures, ms."""


@pytest.mark.parametrize(("window", "token_ms"), [(1, 2432), (2, 1792), (4, 1792)])
def test_32_layers_take_what_the_event_loop_of_the_paper_says(window, token_ms):
    assert steady_token_s([[ATTENTION, FFN] * 32], ALL_REDUCE_MS, window) == token_ms


def test_loads_twice_as_slow_make_the_disk_the_bound():
    blocks = [BlockTime(11, 36), BlockTime(17, 60)] * 32
    assert steady_token_s([blocks], ALL_REDUCE_MS, 2) == 32 * (36 + 60) == 3072


def never_stalls(attention: BlockTime, ffn: BlockTime, all_reduce_s: float) -> bool:
    """Proposition 3's condition on a whole layer: its computing and all-reduces cover its loads."""
    busy_s = attention.compute_s + ffn.compute_s + 2 * all_reduce_s
    return busy_s >= (attention.load_s or 0.0) + (ffn.load_s or 0.0)


def never_stalls_tightly(attention: BlockTime, ffn: BlockTime, all_reduce_s: float) -> bool:
    """Proposition 4: each block's computing and all-reduce cover the load of the block after it."""
    return attention.compute_s + all_reduce_s >= (ffn.load_s or 0.0) and ffn.compute_s + all_reduce_s >= (
        attention.load_s or 0.0
    )


def test_the_papers_figures_hide_their_loads_in_a_whole_layer_but_not_block_by_block():
    assert never_stalls(ATTENTION, FFN, ALL_REDUCE_MS)
    assert not never_stalls_tightly(ATTENTION, FFN, ALL_REDUCE_MS)


times = st.integers(1, 60)
figures = st.tuples(times, times, times, times, times)


@given(figures, st.integers(1, 12), st.integers(1, 5))
def test_a_token_is_never_faster_than_its_work_or_its_loads(numbers, layers, window):
    compute_a, load_a, compute_f, load_f, reduce = numbers
    attention, ffn = BlockTime(compute_a, load_a), BlockTime(compute_f, load_f)
    ends = token_ends_s([[attention, ffn] * layers], reduce, window, tokens=8)
    token = ends[-1] - ends[-2]
    busy, loads = layers * (compute_a + compute_f + 2 * reduce), layers * (load_a + load_f)
    assert token >= busy
    assert ends[-1] >= 8 * loads
    if window >= 2 and never_stalls_tightly(attention, ffn, reduce):
        assert token == busy
    wider = token_ends_s([[attention, ffn] * layers], reduce, window + 1, tokens=8)
    assert wider[-1] <= ends[-1]


def test_a_block_that_stays_in_memory_is_never_waited_for():
    stays = [BlockTime(11), BlockTime(17)] * 32
    assert token_ends_s([stays], ALL_REDUCE_MS, 1) == (1792,)


def test_the_slowest_device_of_each_block_holds_up_the_others():
    quick, slow = [BlockTime(1), BlockTime(9)], [BlockTime(5), BlockTime(2)]
    assert token_ends_s([quick, slow], 3, 2, tokens=2) == (5 + 3 + 9 + 3, 40)


@pytest.mark.parametrize(
    ("size_bytes", "delay_s", "star_ms", "ring_ms"),
    [(3072, 2e-3, 5.5, 12.4), (3072, 0.1e-3, 1.67, 0.97), (393216, 2e-3, 193, 59)],
)
def test_a_star_wins_only_where_latency_dominates(size_bytes, delay_s, star_ms, ring_ms):
    star_s = all_reduce_s("star", 4, size_bytes, 100e6, delay_s)
    ring_s = all_reduce_s("ring", 4, size_bytes, 100e6, delay_s)
    assert star_s * 1e3 == pytest.approx(star_ms, rel=0.01)
    assert ring_s * 1e3 == pytest.approx(ring_ms, rel=0.01)


def test_eight_devices_behind_gateways_pay_8_hops_for_a_star_and_56_for_a_ring():
    hops = [all_reduce_s(how, 8, 0, 1e8, 4) for how in ("star", "ring", "tree", "direct")]
    assert hops == [8, 56, 24, 4]  # a binomial tree of 8 has three levels; the paper's 16 has two
    assert all_reduce_s("star", 1, 1e6, 1e6, 1) == 0


def test_what_ratios_leave_over_goes_to_the_last_members():
    assert split_from_last(8, [0.25] * 4) == (2, 2, 2, 2)
    assert split_from_last(10, [0.25] * 4) == (2, 2, 3, 3)
    assert split_from_last(8, [0.5, 0.3, 0.2]) == (4, 2, 2)
    assert split_from_last(100, [0.29, 0.71]) == (29, 71)
    assert split_from_last(2, [1, 1, 1]) == (0, 1, 1)


@given(st.integers(0, 500), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9))
def test_shares_by_ratio_give_everything_away(total, ratios):
    shares = split_from_last(total, ratios)
    assert sum(shares) == total
    quotas = [total * ratio / sum(ratios) for ratio in ratios]
    assert all(abs(size - quota) <= 1 + 1e-6 for size, quota in zip(shares, quotas, strict=True))


@pytest.mark.parametrize("text", ["0.5", "0.5, 0.6", "0.5, x", "1, 0", "0.5, -0.5, 1", "0.5, 0.5, nan"])
def test_ratios_that_are_none_are_refused_with_an_example(text):
    with pytest.raises(SpecError, match=r"2 positive numbers with sum 1.*write it like"):
        ratios_of(text, 2)
    assert ratios_of("0.75, 0.25", 2) == (0.75, 0.25)


def test_given_ratios_count_from_the_source_and_columns_may_be_equal():
    cluster = star([1e10] * 3, source=1)
    plan = plan_of(spec_of("tpi_llm", GPT2, cluster, ratio="0.5, 0.25, 0.25"))
    assert plan.layout.group == (1, 0, 2)
    assert (plan.layout.heads, plan.layout.columns) == ((0, 2, 3, 4), (0, 32, 48, 64))
    equal = plan_of(spec_of("tpi_llm", GPT2, cluster, ratio="0.5, 0.25, 0.25", ffn_split="equal"))
    assert equal.layout.columns == (0, 21, 42, 64)


# memory


@given(st.lists(st.integers(0, 90), min_size=1, max_size=9), st.integers(1, 10))
def test_the_fullest_window_is_the_most_that_any_neighbours_weigh(sizes, window):
    count, held = len(sizes), min(window, len(sizes))
    brute = max(sum(sizes[(start + i) % count] for i in range(held)) for start in range(count))
    assert fullest_window(sizes, window) == brute


def share(memory_bytes, sizes=(3, 8) * 4, kv_row_bytes=2, fixed_bytes=5):
    blocks = tuple(Slice(layer=b // 2, part=("attention", "ffn")[b % 2]) for b in range(len(sizes)))
    return MemberShare(0, blocks, tuple(sizes), fixed_bytes, kv_row_bytes, memory_bytes)


def test_with_enough_memory_nothing_streams():
    assert streams_as_needed(share(5 + 44 + 20), 2, 10) == ()
    assert streams_always(share(0), 8, 0) == ()


def test_a_retained_part_never_streams():
    blocks = [block for block, _ in streams_always(share(0), 2, 2)]
    assert blocks == [0, 2, 3, 4, 6, 7]


def test_the_largest_blocks_begin_to_stream_first_from_the_last_layer_back():
    # 44 bytes of weights; with the last three feed-forward parts in a window of two there are 36
    streams = streams_as_needed(share(5 + 44 + 20), 2, 14)
    assert streams == ((7, 11), (5, 11), (3, 11))
    further = streams_as_needed(share(5 + 44 + 20), 2, 18)
    assert further == ((7, 11), (5, 11), (3, 11), (1, 15))
    assert streaming_at(further, 10) == frozenset()
    assert streaming_at(further, 11) == {7, 5, 3}
    assert streaming_at(further, 15) == {7, 5, 3, 1}


@settings(max_examples=200)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=10),
    st.integers(1, 3),
    st.integers(10, 80),
    st.integers(0, 20),
    st.integers(1, 3),
)
def test_no_fewer_blocks_than_needed_stream_at_any_length(sizes, window, memory, rows, kv_row_bytes):
    """Against brute force over how many blocks stream, in the same order."""
    one = share(memory, [9 if b % 2 else size for b, size in enumerate(sizes)], kv_row_bytes)
    streams = streams_as_needed(one, window, rows)
    order = sorted(range(len(sizes)), key=lambda block: (block % 2 == 0, -block))
    levels = [0, *range(window + 1, len(order) + 1)]
    fits = [one.need_bytes(order[:level], window, rows) <= memory for level in levels]
    needed = next((level for level, fit in zip(levels, fits, strict=True) if fit), levels[-1])
    assert len(streams) == needed
    for at in range(rows + 1):
        streaming = streaming_at(streams, at)
        assert streaming == set(order[: len(streaming)]) and len(streaming) in levels
        if any(fits):
            assert one.need_bytes(sorted(streaming), window, at) <= memory
        fewer = [level for level in levels if level < len(streaming)]
        if fewer:
            assert one.need_bytes(order[: fewer[-1]], window, at) > memory


def memories_of(spec, rows=-1):
    """The least memory for a plan; with `rows`, enough to stream nothing until the cache has more rows."""
    params = strategy(spec.strategy).Params.parse(spec.params, "parameters")
    demand = demand_of(spec.model, spec.workload, True)
    bounds = chosen_bounds("tpi_llm", spec.cluster, spec.model, demand, params, {})
    placement = shares_placement("x", spec.cluster, spec.model, bounds)
    shares = shares_in(spec.cluster, spec.model, demand, placement, bounds)
    shares = sorted(shares, key=lambda one: one.rank)
    least = [one.need_bytes(one.streamable, params.window, demand.cached_rows) for one in shares]
    if rows < 0:
        return least
    return [
        max(need, one.need_bytes((), params.window, rows)) for need, one in zip(least, shares, strict=True)
    ]


def sized(spec, memories):
    devices = [
        d.model_copy(update={"memory_bytes": m}) for d, m in zip(spec.cluster.devices, memories, strict=True)
    ]
    cluster = spec.cluster.model_copy(update={"devices": tuple(devices)})
    return spec.model_copy(update={"cluster": cluster})


def tight(name, model, whole_until=-1, **more):
    spec = spec_of(name, model, star([1e10] * 3), **more)
    return sized(spec, memories_of(spec, whole_until))


DEEP = {model.family: model.model_copy(update={"num_layers": 4}) for model in MODELS}


@pytest.mark.parametrize(("family", "whole_until"), [("gpt2", -1), ("gpt2", 12), ("llama", 12), ("bert", 0)])
def test_blocks_that_make_room_for_the_cache_change_no_number(family, whole_until):
    model = DEEP[family]
    new_tokens = 12 if model.causal else 0
    more = {"rows": 7, "new_tokens": new_tokens, "requests": 2}
    spec = tight("tpi_llm_offload", model, whole_until, **more)
    plan = plan_of(spec)
    trace = play(spec, plan)  # raises OutOfMemory if the planner was wrong by a byte
    marks = [item for item in trace if getattr(item, "name", "") == "unpinned"]
    if model.causal and whole_until > 0:
        assert marks and next(m.facts["pinned"] for m in marks if m.device == "d1") < 8
    source, _ = run_in_memory(spec, plan, prompts(spec))
    expected = alone(model, **more)
    for request in range(2):
        if not model.causal:
            torch.testing.assert_close(source.states[request], expected.states[request], rtol=1e-4, atol=1e-4)
            continue
        logits, wanted = torch.stack(source.logits[request]), torch.stack(expected.logits[request])
        torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-4)
        assert torch.equal(logits.argmax(-1), wanted.argmax(-1))


def test_fewer_blocks_stay_the_longer_the_cache_gets():
    spec = tight("tpi_llm_offload", DEEP["gpt2"], 10, rows=7, new_tokens=40)
    marks = [m for m in play(spec) if getattr(m, "name", "") == "unpinned" and m.device == "d0"]
    pinned = [mark.facts["pinned"] for mark in marks]
    assert len(pinned) > 1 and pinned == sorted(pinned, reverse=True)
    assert [mark.facts["rows"] for mark in marks] == sorted(mark.facts["rows"] for mark in marks)


@pytest.mark.parametrize(("window", "retain_every"), [(1, 0), (2, 0), (3, 2)])
def test_never_more_blocks_than_the_window_are_in_memory(window, retain_every, monkeypatch):
    most = defaultdict(int)
    load = MemoryDevice.load

    def counted(device, piece):
        handle = load(device, piece)
        blocks = [s for s in device.weights.held if s.layer >= 0]
        retained = [s for s in blocks if retain_every and s.part == "ffn" and s.layer % retain_every == 0]
        most[device.rank] = max(most[device.rank], len(blocks) - len(retained))
        return handle

    monkeypatch.setattr(MemoryDevice, "load", counted)
    spec = spec_of(
        "tpi_llm", GPT2, star([1e10] * 3), new_tokens=3, requests=2, window=window, retain_every=retain_every
    )
    run_in_memory(spec, plan_of(spec), prompts(spec))
    assert most == dict.fromkeys(range(3), window)


def test_every_token_loads_every_streaming_block_once_by_rule():
    spec = spec_of("tpi_llm", DEEP["llama"], star([1e10] * 2), new_tokens=5, requests=2)
    plan = plan_of(spec)
    loads = Counter((s.device, s.name, s.layer) for s in play(spec, plan) if getattr(s, "kind", "") == "load")
    ops = 2 * 5
    for rank in (0, 1):
        for block, _ in plan.layout.streams[rank]:
            assert loads[f"d{rank}", ("attention", "ffn")[block % 2], block // 2] == ops


def even_cluster(disk_byte_per_s):
    """No fixed costs, links that take no time but their delay."""
    cluster = star([1e9] * 3, compute_model="flops", message_overhead_s=0.0, disk_byte_per_s=disk_byte_per_s)
    links = [link.model_copy(update={"bit_per_s": 1e14, "delay_s": 2e-5}) for link in cluster.links]
    return cluster.model_copy(update={"links": tuple(links)})


def event_loop_s(spec, plan):
    """Seconds of a token at the end of the run, by the paper's event loop."""
    cluster, model, layout = spec.cluster, spec.model, plan.layout
    demand, devices = demand_of(model, spec.workload, True), []
    for rank in layout.group:
        *_, attention = attention_ops(model, demand, *layout.heads_of(rank))
        ffn = SizedOp(FeedForward(0, *layout.columns_of(rank), True), attention.inputs)
        computes_s = [op_s(cluster.devices[rank], model, one) for one in (attention, ffn)]
        streaming = streaming_at(layout.streams[rank], demand.cached_rows)
        loads_s = [
            weight_bytes(model, piece) / cluster.devices[rank].disk_byte_per_s if block in streaming else None
            for block, piece in enumerate(blocks_of(layout, rank, model.num_layers))
        ]
        devices.append([BlockTime(computes_s[block % 2], load_s) for block, load_s in enumerate(loads_s)])
    (x,) = attention.inputs
    sum_s = cluster_all_reduce_s(cluster, layout.group, payload_bytes(x), layout.all_reduce)
    return steady_token_s(devices, sum_s, layout.window)


@pytest.mark.parametrize("disk_byte_per_s", [1e6, 1e8, 1e12])
@pytest.mark.parametrize("window", [1, 2, 4])
def test_the_simulated_world_takes_what_the_event_loop_says(window, disk_byte_per_s):
    model = GPT2.model_copy(update={"num_layers": 8})
    spec = spec_of("tpi_llm", model, even_cluster(disk_byte_per_s), new_tokens=8, window=window)
    plan = plan_of(spec)
    ends = sorted(
        s.end_s for s in play(spec, plan) if getattr(s, "kind", "") == "compute" and s.name == "head"
    )
    token_s = ends[-1] - ends[-2]
    assert token_s == pytest.approx(event_loop_s(spec, plan), rel=0.03)


def test_loads_go_on_during_all_reduces():
    spec = spec_of("tpi_llm", GPT2, star([1e10] * 3, disk_byte_per_s=1e7))
    trace = play(spec)
    loads = [s for s in trace if getattr(s, "kind", "") == "load" and s.device == "d1"]
    waits = [s for s in trace if getattr(s, "kind", "") == "wait" and s.device == "d1"]
    assert any(a.start_s < b.end_s and b.start_s < a.end_s for a in loads for b in waits)


def test_a_star_all_reduce_carries_4_l_k_minus_1_hidden_states_through_the_master():
    devices, row = 4, GPT2.hidden_size * 4
    trace = play(spec_of("tpi_llm", GPT2, star([1e10] * devices), rows=9))
    counted = defaultdict(int)
    for span in sends(trace):
        if span.layer >= 0:
            assert "d0" in (span.device, span.peer)
            counted[span.token] += span.payload_bytes
    per_row = 4 * GPT2.num_layers * (devices - 1) * row
    assert counted == {0: 9 * per_row, 1: per_row, 2: per_row, 3: per_row}


@pytest.mark.parametrize("name", ["tpi_llm", "tpi_llm_offload"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
def test_the_planner_computes_the_least_memory_to_the_byte(name, model):
    spec = tight(name, model)
    play(spec)
    least = memories_of(spec)
    with pytest.raises(PlanError, match=r"^tpi_llm\w*: d1 needs [\d.]+ kB and has [\d.]+ kB: give it more"):
        plan_of(sized(spec, [least[0], least[1] - 1, least[2]]))


@pytest.mark.parametrize("name", ["tpi_llm", "tpi_llm_offload"])
def test_a_terminal_too_small_for_the_head_is_named(name):
    cluster = star([1e10, 1e10], terminal=True)
    devices = (*cluster.devices[:-1], cluster.devices[-1].model_copy(update={"memory_bytes": 15_000.0}))
    spec = spec_of(name, GPT2, cluster.model_copy(update={"devices": devices}))
    with pytest.raises(PlanError, match=r"term needs .* has 15 kB.*embedding and head"):
        plan_of(spec)
