"""Tensor parallelism of microcontrollers (Bochem et al., DATE 2025): tree, slices, messages, regimes."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.plan import Slice
from engine.domain.trace import Span
from engine.ops import core as ops
from engine.ops.cost import op_time_s
from engine.ops.kernels import product
from engine.ops.layout import tensor_parts
from engine.program.strategy import Step
from engine.strategies.mcu.estimate import BlockEstimate, _tree_s
from engine.strategies.mcu.plan import shares_of
from engine.strategies.mcu.strategy import Chip
from engine.strategies.mcu.tree import serial_hops, split, tree_levels
from tests.support.memory_world import MemoryWorld, run_in_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, plan_of, play, prompts, sends, spec_of, star

WIDE = GPT2.model_copy(update={"num_heads": 8, "num_kv_heads": 8, "head_dim": 4})
STEPS = 4


def chips(number, on_chip_bytes=None, **more):
    return star([1e9] * number, on_chip_weight_bytes=on_chip_bytes, **more)


@pytest.mark.parametrize(
    ("number", "levels", "edges", "hops"),
    [
        (1, 0, 0, 0),
        (2, 1, 1, 1),
        (4, 1, 3, 3),
        (5, 2, 4, 4),
        (8, 2, 7, 4),
        (16, 2, 15, 6),
        (32, 3, 31, 7),
        (64, 3, 63, 9),
    ],
)
def test_the_tree_has_the_published_levels_messages_and_serial_hops(number, levels, edges, hops):
    tree = tree_levels(range(number), 4)
    assert (len(tree), sum(map(len, tree)), serial_hops(tree)) == (levels, edges, hops)


def test_trees_of_five_and_eight_chips():
    assert tree_levels(range(5), 4) == (((1, 0), (2, 0), (3, 0)), ((4, 0),))
    assert tree_levels(range(8), 4) == (((1, 0), (2, 0), (3, 0), (5, 4), (6, 4), (7, 4)), ((4, 0),))


@given(st.integers(1, 200), st.integers(2, 8))
def test_every_chip_but_the_root_sends_once_to_a_leader_of_few(number, group_size):
    levels = tree_levels(range(number), group_size)
    assert sorted(member for level in levels for member, _ in level) == list(range(1, number))
    for level in levels:
        assert max(Counter(leader for _, leader in level).values()) <= group_size - 1
    assert all(member > leader for level in levels for member, leader in level)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_four_to_the_m_chips_need_three_m_hops_where_all_to_one_needs_n_minus_one(power):
    assert serial_hops(tree_levels(range(4**power), 4)) == 3 * power


def test_splits_differ_by_one_and_may_be_empty():
    assert split(8, 3) == (3, 3, 2)
    assert split(4, 8) == (1, 1, 1, 1, 0, 0, 0, 0)


def elements(model, slices):
    """(tensor, index along its cut dimension) → how often it is stored."""
    return Counter(
        (part.name, part.dim, index)
        for piece in slices
        for part in tensor_parts(model, piece)
        for index in range(part.start, part.stop)
    )


@pytest.mark.parametrize("model", [*MODELS, WIDE], ids=lambda model: f"{model.family}-{model.num_heads}")
@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 9])
def test_no_weight_of_a_block_exists_twice_and_none_is_missing(model, number):
    plan = plan_of(spec_of("mcu", model, chips(number)))
    stored = elements(model, [h.slice for h in plan.holdings if h.slice.layer == 1])
    whole = elements(model, [Slice(layer=1, part="attention"), Slice(layer=1, part="ffn")])
    assert stored == whole and set(stored.values()) == {1}
    others = [h.slice for h in plan.holdings if h.slice.layer == 1 and h.device != plan.layout.group[0]]
    assert not [
        part.key
        for s in others
        for part in tensor_parts(model, s)
        if part.key in ("norm.weight", "norm.bias", "o.bias", "down.bias")
    ]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_block_has_two_synchronisations_and_four_times_n_minus_one_messages(model, number):
    if model is LLAMA and number > model.num_kv_heads:
        pytest.skip("chips without heads send less")
    rows, steps = 11, STEPS if model.causal else 1
    trace = play(spec_of("mcu", model, chips(number), rows=rows))
    for token in range(steps):
        mine = [span for span in sends(trace) if span.token == token]
        size = (rows if token == 0 else 1) * model.hidden_size * model.element_bytes
        assert {span.payload_bytes for span in mine} == {size}
        per_layer = Counter(span.layer for span in mine)
        assert per_layer == {layer: 4 * (number - 1) for layer in range(model.num_layers)}
    reductions = {span.name for span in sends(trace) if span.token == 0 and "-in" not in span.name}
    assert len(reductions) == 2 * model.num_layers


def test_one_chip_sends_nothing():
    assert sends(play(spec_of("mcu", GPT2, chips(1)))) == []


def test_chips_without_heads_get_every_input_and_send_no_partial_sum_of_attention():
    number = 6
    trace = play(spec_of("mcu", GPT2, chips(number)))
    first = [span for span in sends(trace) if span.token == 0 and span.layer == 0]
    kinds = Counter(span.name.split(".")[1] for span in first)
    assert kinds == {"attention-in": 5, "attention": GPT2.num_heads - 1, "ffn-in": 5, "ffn": 5}


def test_chips_with_neither_heads_nor_columns_take_no_part():
    model = GPT2.model_copy(update={"intermediate_size": 5})
    spec = spec_of("mcu", model, chips(7))
    assert plan_of(spec).layout.group == (0, 1, 2, 3, 4)
    assert plan_of(spec).layout.excluded == (5, 6)
    assert {span.device for span in sends(play(spec))} == {"d0", "d1", "d2", "d3", "d4"}


def test_kv_heads_stay_whole_or_are_copied_on_demand():
    cluster = chips(4)
    assert [s.heads for s in shares_of(cluster, LLAMA, False)] == [(0, 2), (2, 4), (4, 4), (4, 4)]
    assert [s.heads for s in shares_of(cluster, LLAMA, True)] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_the_source_is_the_root_whatever_its_rank():
    plan = plan_of(spec_of("mcu", GPT2, star([1e9] * 5, source=3)))
    assert plan.layout.group == (3, 0, 1, 2, 4)
    assert plan.layout.tree == (((0, 3), (1, 3), (2, 3)), ((4, 3),))


def test_a_leader_sends_to_one_member_after_the_other():
    trace = play(spec_of("mcu", GPT2, chips(4)))
    down = [s for s in sends(trace) if s.token == 0 and s.name.startswith("L1.ffn-in")]
    assert [s.peer for s in down] == ["d1", "d2", "d3"]
    assert all(a.end_s <= b.start_s for a, b in pairwise(down))


def regime_cluster(regime, model, number):
    """Chips whose memory for weights makes it this regime."""
    largest = max(plan_of(spec_of("mcu", model, chips(number))).layout.slice_bytes)
    on_chip = {"resident": 3 * largest, "double-buffered": 2 * largest, "streamed": 2 * largest - 1}[regime]
    return chips(number, on_chip)


REGIMES = ["resident", "double-buffered", "streamed"]


def loads(trace):
    return [item for item in trace if isinstance(item, Span) and item.kind == "load"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("number", [1, 3])
def test_every_regime_gives_the_numbers_of_one_device(model, regime, number):
    def outputs(name, cluster):
        spec = spec_of(name, model, cluster)
        source, _ = run_in_memory(spec, plan_of(spec), prompts(spec))
        return torch.stack(source.logits[0]) if model.causal else source.states[0]

    cluster = regime_cluster(regime, model, number)
    assert plan_of(spec_of("mcu", model, cluster)).layout.regime == regime
    torch.testing.assert_close(outputs("mcu", cluster), outputs("single", star([1e9])), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("regime", REGIMES)
def test_a_forward_pass_fetches_every_weight_of_its_blocks_once_or_none(number, regime):
    spec = spec_of("mcu", GPT2, regime_cluster(regime, GPT2, number))
    fetched = defaultdict(int)
    for span in loads(play(spec)):
        fetched[span.token, span.layer] += span.bytes
    block = sum(plan_of(spec).layout.slice_bytes)
    wanted = {(token, layer): block for token in range(STEPS) for layer in range(GPT2.num_layers)}
    assert fetched == ({} if regime == "resident" else wanted)


def test_weights_are_fetched_while_the_block_before_runs_or_when_their_part_needs_them():
    for regime in ("double-buffered", "streamed"):
        trace = play(spec_of("mcu", GPT2, regime_cluster(regime, GPT2, 2)))
        mine = [s for s in trace if isinstance(s, Span) and (s.device, s.token) == ("d1", 1)]
        done = {(s.kind, s.layer, s.name): s for s in mine if s.kind in ("compute", "load")}
        fetch, before = done["load", 2, "attention"], done["compute", 1, "attention"]
        if regime == "double-buffered":
            assert done["compute", 0, "ffn"].end_s <= fetch.start_s <= before.start_s
        else:
            assert done["compute", 1, "ffn"].end_s <= fetch.start_s
            assert fetch.end_s == done["compute", 2, "attention"].start_s


def test_a_token_is_out_before_the_first_block_is_back():
    cluster = regime_cluster("double-buffered", GPT2, 1)
    slow = [device.model_copy(update={"disk_byte_per_s": 1e5}) for device in cluster.devices]
    trace = play(spec_of("mcu", GPT2, cluster.model_copy(update={"devices": tuple(slow)})))
    emitted = {m.facts["index"]: m.time_s for m in trace if getattr(m, "name", "") == "token_emitted"}
    back = {s.token: s.end_s for s in loads(trace) if s.layer == 0}
    assert all(emitted[token] < back[token] for token in range(STEPS))


@pytest.mark.parametrize("regime", ["double-buffered", "streamed"])
def test_no_more_weights_are_on_the_chip_than_the_regime_says(regime):
    model, number = GPT2, 2
    cluster = regime_cluster(regime, model, number)
    spec = spec_of("mcu", model, cluster)
    trace, plan = play(spec), plan_of(spec)
    here = Counter()
    most = Counter()
    sizes = {(s.device, s.layer, s.name): s.bytes for s in loads(trace)}
    events = sorted(
        [(s.start_s, 1, s) for s in loads(trace)]
        + [(s.start_s, 0, s) for s in trace if isinstance(s, Span) and s.kind == "evict"],
        key=lambda e: e[:2],
    )
    if regime == "double-buffered":
        here.update({d: sum(sizes[d, 0, part] for part in ("attention", "ffn")) for d in ("d0", "d1")})
    for _, is_load, span in events:
        size = sizes[span.device, span.layer, span.name]
        here[span.device] += size if is_load else -size
        most[span.device] = max(most[span.device], here[span.device])
    limit = cluster.devices[0].on_chip_weight_bytes
    assert all(size <= limit for size in most.values())
    assert most["d0"] == (
        2 * plan.layout.slice_bytes[0]
        if regime == "double-buffered"
        else max(sizes["d0", 1, "attention"], sizes["d0", 1, "ffn"])
    )


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.integers(1, 6),
    st.floats(2e3, 6e4),
    st.floats(2e4, 2e5),
    st.sampled_from(["sporadic", "bursty"]),
)
def test_a_plan_of_any_regime_runs_within_the_memory_it_was_checked_against(
    model, number, on_chip_bytes, memory_bytes, pattern
):
    cluster = chips(number, on_chip_bytes, memory_bytes=memory_bytes)
    spec = spec_of("mcu", model, cluster, requests=2, pattern=pattern)
    try:
        plan = plan_of(spec)
    except PlanError:
        return
    plan.validate_cover(model, 11, generates=model.causal)
    play(spec, plan)


def test_parts_larger_than_the_chip_are_computed_in_tiles_of_heads_and_of_columns():
    cluster = chips(2, 5000)
    spec = spec_of("mcu", GPT2, cluster)
    plan = plan_of(spec)
    assert plan.layout.tiles == ((0, 16, 32), (32, 48, 64))
    assert plan.layout.head_tiles == ((0, 1, 2), (2, 3, 4))
    trace = play(spec)
    block = [
        s.name
        for s in trace
        if isinstance(s, Span) and s.kind == "compute" and s.device == "d1" and s.token == 0 and s.layer == 1
    ]
    assert block == ["attention", "attention", "ffn", "ffn"]
    source, _ = run_in_memory(spec, plan, prompts(spec))
    alone = spec_of("single", GPT2, star([1e9]))
    expected, _ = run_in_memory(alone, plan_of(alone), prompts(alone))
    torch.testing.assert_close(torch.stack(source.logits[0]), torch.stack(expected.logits[0]))


def test_a_device_without_an_on_chip_level_keeps_all_its_weights():
    cluster = chips(3, 5000)
    devices = list(cluster.devices)
    devices[1] = devices[1].model_copy(update={"on_chip_weight_bytes": None})
    plan = plan_of(spec_of("mcu", GPT2, cluster.model_copy(update={"devices": tuple(devices)})))
    assert plan.layout.regimes == ("streamed", "resident", "streamed")


def test_a_chip_too_small_for_two_slices_is_named_with_need_and_have():
    cluster = regime_cluster("double-buffered", GPT2, 2)
    small = [device.model_copy(update={"memory_bytes": 2e4}) for device in cluster.devices]
    with pytest.raises(PlanError, match=r"mcu: d0 needs [\d.]+ kB and has [\d.]+ k?B, d1 needs"):
        plan_of(spec_of("mcu", GPT2, cluster.model_copy(update={"devices": tuple(small)})))


def test_a_leader_without_what_a_member_has_is_named_as_the_one_that_needs_some():
    """d0 leads d1 in the tree and adds up its sums."""
    for unit, shares in (("heads", ((0, 32), (4, 32))), ("columns", ((2, 0), (2, 64)))):
        devices = [
            {"device": f"d{rank}", "heads": heads, "columns": columns}
            for rank, (heads, columns) in enumerate(shares)
        ]
        with pytest.raises(PlanError, match=rf"d0 leads d1 .* has no {unit}, which d1 has: give d0 some"):
            plan_of(spec_of("mcu", GPT2, chips(2), plan={"devices": devices}))


def test_an_estimate_that_was_stored_before_it_had_rows_says_of_none():
    plan = plan_of(spec_of("mcu", GPT2, chips(2)))
    kept = plan.layout.block["prefill"]
    assert (kept.rows, kept.seen) == (11, 11)
    older = BlockEstimate.parse(kept.model_dump(exclude={"rows", "seen"}), "a stored plan")
    assert (older.rows, older.seen) == (0, 0)


def test_a_chip_smaller_than_one_head_is_refused_and_one_of_its_size_is_not():
    """A head has 3·(32·8 + 8) numbers for queries, keys and values and 32·8 for the output: 4,192 B."""
    assert plan_of(spec_of("mcu", GPT2, chips(2, 4192))).layout.head_tiles == ((0, 1, 2), (2, 3, 4))
    with pytest.raises(PlanError, match=r"d0 needs 4\.192 kB on chip .* has 4\.191 kB: give it more"):
        plan_of(spec_of("mcu", GPT2, chips(2, 4191)))


class Zeros:
    """Weights that are all zero, norms that change nothing but the scale."""

    def __init__(self, model):
        self.model = model
        self.found = {}

    def get(self, piece):
        return {
            part.key: (torch.ones if part.key == "norm.weight" else torch.zeros)(part.shape)
            for part in tensor_parts(self.model, piece)
        }


@pytest.mark.parametrize("model", [GPT2, BERT], ids=lambda model: model.family)
def test_the_skip_connection_is_added_once(model):
    """With zero weights a block passes on its input (post-norm: an input of mean 0 and variance 1)."""
    cluster, spec = chips(3), spec_of("mcu", model, chips(3))
    world, plan = MemoryWorld(cluster, model), plan_of(spec)
    x = torch.nn.functional.layer_norm(torch.randn(1, 5, model.hidden_size), (model.hidden_size,))
    step = Step(phase="prefill", cache="", batch=1, start=0, rows=5, index=0, requests=(0,))
    programs = []
    for rank, device in enumerate(world.devices):
        device.weights = Zeros(model)
        for piece in plan.held_by(rank):
            device.ledger.load(piece)
        chip = Chip(device, plan.layout)
        programs.append((rank, chip.block(0, chip.share, step, x if rank == 0 else None)))
    out, *others = world.run(programs)
    torch.testing.assert_close(out, x, atol=1e-4, rtol=1e-4)
    assert others == [None, None]


def test_where_fetching_and_computing_take_turns_their_times_add_up():
    device = star([1e9], memory_byte_per_s=1e6, half_rows=1.0, op_overhead_s=0.5).devices[0]
    kernel = product(1, 1000, 500, 4)
    compute_s, memory_s = 2 * 500_000 / 0.5e9, kernel.bytes / 1e6
    assert op_time_s(device, [kernel], override="serial") == compute_s + memory_s + 0.5
    assert op_time_s(device, [kernel], override="roofline") == max(compute_s, memory_s) + 0.5


def test_bare_operations_are_all_that_chips_other_than_the_root_need():
    assert ops.Attention(0, 1, 2, False, None, True).slices(GPT2)[0].bare
    assert not ops.Attention(0, 1, 2, True, None, True).slices(GPT2)[0].bare
    assert not ops.Attention(0, 1, 2, False).slices(GPT2)[0].bare


def test_groups_of_a_level_send_at_the_same_time_and_members_of_a_group_in_turn():
    # 1.25 MB take 0.1 s over 100 Mbit/s, and a short delay; (0, 1) and (2, 3) are groups
    levels = [[(1, 0), (3, 2)], [(2, 0)]]
    assert _tree_s(star((1e9,) * 4), levels, 1_250_000) == pytest.approx(0.4, abs=1e-3)
    assert _tree_s(star((1e9,) * 4), [[(1, 0), (2, 0), (3, 0)]], 1_250_000) == pytest.approx(0.6, abs=1e-3)
