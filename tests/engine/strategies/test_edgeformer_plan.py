"""EdgeFormer's blocks, costs, deadlines and rooms for heads; published claims, confirmed and refuted."""

import itertools
import math
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.models import catalogue
from engine.program.frames import framed_bytes
from engine.strategies.edgeformer.allocation import Site, allocate, even_split
from engine.strategies.edgeformer.costs import AttentionRows, deadline_s, link_s, local_s, sites_of
from engine.strategies.edgeformer.optimal_blocks import Capacity, Moves, blocks_s
from engine.strategies.edgeformer.plan import allocate_blocks, moves_of
from engine.strategies.shared.demand import demand_of
from tests.support.small_cases import GPT2, LLAMA, plan_of, spec_of, star

EIGHT_HEADS = GPT2.model_copy(update={"num_heads": 8, "num_kv_heads": 8, "head_dim": 16, "hidden_size": 128})
ROWS = AttentionRows(1, 32, 32)


NO_MOVES = Moves(0, lambda src, dst: 0.0, lambda src: 0.0)


def hops(source, hop_s, result_s):
    """Every move takes `hop_s`, the last one to the source `result_s`."""
    return Moves(source, lambda src, dst: hop_s * (src != dst), lambda src: result_s * (src != source))


def capacities(*rows):
    return [Capacity(rank, blocks, flops, 1 / flops) for rank, (flops, blocks) in enumerate(rows)]


def ranges(devices, num_layers, order, moves=NO_MOVES):
    """(device, start, stop) of every stage."""
    stages = allocate_blocks(devices, num_layers, order, moves)
    return tuple((stage.device, stage.start, stage.stop) for stage in stages)


def cost(stages, devices):
    return sum((stage.stop - stage.start) / devices[stage.device].flop_per_s for stage in stages)


def test_greedy_by_flops_per_capacity_is_not_optimal_and_fastest_first_is():
    devices = capacities((10, 10), (8, 1))
    assert ranges(devices, 10, "eta") == ((1, 0, 1), (0, 1, 10))
    assert cost(allocate_blocks(devices, 10, "eta", NO_MOVES), devices) == pytest.approx(1.025)
    assert ranges(devices, 10, "fastest") == ((0, 0, 10),)
    assert cost(allocate_blocks(devices, 10, "fastest", NO_MOVES), devices) == pytest.approx(1.0)


def test_equal_devices_with_much_memory_put_everything_on_the_first_unless_split_evenly():
    devices = capacities(*[(13e12, 40)] * 3)
    assert ranges(devices, 24, "eta") == ((0, 0, 24),)
    assert ranges(devices, 24, "even") == ((0, 0, 8), (1, 8, 16), (2, 16, 24))
    assert ranges(devices, 25, "even")[-1] == (2, 16, 25)


def test_blocks_beyond_a_capacity_go_to_the_next_device_and_around():
    assert ranges(capacities((1, 2), (1, 9), (1, 1)), 9, "even") == ((0, 0, 2), (1, 2, 8), (2, 8, 9))
    assert ranges(capacities((1, 9), (1, 0), (1, 1)), 4, "even") == ((0, 0, 3), (2, 3, 4))


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 6)), min_size=1, max_size=6),
    order=st.sampled_from(["balanced", "proportional", "eta", "fastest", "even"]),
    data=st.data(),
)
def test_intervals_are_disjoint_ordered_within_capacity_and_cover_all_blocks(rows, order, data):
    total = sum(blocks for _, blocks in rows)
    if not total:
        return
    num_layers = data.draw(st.integers(1, total))
    devices = capacities(*rows)
    stages = allocate_blocks(devices, num_layers, order, NO_MOVES)
    assert [stage.start for stage in stages] == [0, *(stage.stop for stage in stages[:-1])]
    assert stages[-1].stop == num_layers
    assert len({stage.device for stage in stages}) == len(stages)
    assert all(stage.stop - stage.start <= devices[stage.device].blocks for stage in stages)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=4), data=st.data())
def test_fastest_first_is_optimal_by_brute_force(rows, data):
    num_layers = data.draw(st.integers(1, sum(blocks for _, blocks in rows)))
    devices = capacities(*rows)
    best = min(
        sum(n / device.flop_per_s for n, device in zip(sizes, devices, strict=True))
        for sizes in itertools.product(*[range(device.blocks + 1) for device in devices])
        if sum(sizes) == num_layers
    )
    assert cost(allocate_blocks(devices, num_layers, "fastest", NO_MOVES), devices) == pytest.approx(best)


def test_proportional_shares_follow_flops_and_balanced_ones_leave_slow_devices_out():
    devices = capacities((1, 9), (2, 9), (4, 9))
    assert ranges(devices, 7, "proportional") == ((0, 0, 1), (1, 1, 3), (2, 3, 7))
    assert ranges(devices, 9, "balanced") == ((2, 0, 9),)
    assert ranges(devices, 10, "balanced") == ((1, 0, 1), (2, 1, 10))
    equal = capacities(*[(1, 9)] * 8)
    assert [stop - start for _, start, stop in ranges(equal, 6, "balanced")] == [1] * 6
    assert ranges(equal, 6, "even") == ((7, 0, 6),), "the remainder goes to the last"


def test_a_move_takes_the_way_of_every_message_and_the_bytes_of_all_rows():
    """A prompt of 11 rows and 3 tokens after it: four messages of 14 rows; of the result 4 rows return."""
    cluster = star([1e9, 1e9], message_overhead_s=2e-3)
    links = tuple(link.model_copy(update={"delay_s": 5e-3}) for link in cluster.links)
    cluster = cluster.model_copy(update={"links": links})
    moves = moves_of(cluster, GPT2, demand_of(GPT2, spec_of("edgeformer", GPT2, cluster).workload, True))
    ways_s, row_bytes, frames_bytes = 4 * (2 * 5e-3 + 2e-3), 32 * 4, 4 * framed_bytes(0)
    assert moves.move_s(0, 1) == pytest.approx(ways_s + 8 * (14 * row_bytes + frames_bytes) / 1e8)
    assert moves.result_s(1) == pytest.approx(ways_s + 8 * (4 * row_bytes + frames_bytes) / 1e8)
    assert moves.move_s(1, 1) == moves.result_s(0) == 0.0


def test_balanced_shares_stay_with_one_device_where_a_move_takes_longer_than_it_saves():
    devices = capacities((1, 9), (1.2, 9))
    for hop_s, owner in ((0.1, 1), (0.6, 0)):
        moves = hops(0, hop_s, hop_s)
        assert ranges(devices, 6, "balanced", moves) == ((owner, 0, 6),)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=3),
    source=st.integers(0, 4),
    hop_ms=st.sampled_from([0, 1, 50, 400]),
    result_ms=st.sampled_from([0, 20, 300]),
    data=st.data(),
)
def test_balanced_shares_are_as_fast_as_any_by_brute_force(rows, source, hop_ms, result_ms, data):
    if not sum(blocks for _, blocks in rows):
        return
    num_layers = data.draw(st.integers(1, sum(blocks for _, blocks in rows)))
    devices, moves = capacities(*rows), hops(source, 1e-3 * hop_ms, 1e-3 * result_ms)
    block_s = [device.block_s for device in devices]
    best = math.inf
    for order in itertools.permutations(range(len(devices))):
        for sizes in itertools.product(*[range(devices[rank].blocks + 1) for rank in order]):
            path = [source, *(rank for rank, n in zip(order, sizes, strict=True) if n)]
            if sum(sizes) == num_layers:
                moved_s = 1e-3 * hop_ms * sum(a != b for a, b in itertools.pairwise(path))
                moved_s += 1e-3 * result_ms * (path[-1] != source)
                best = min(best, moved_s + sum(n * block_s[r] for r, n in zip(order, sizes, strict=True)))
    found = allocate_blocks(devices, num_layers, "balanced", moves)
    assert blocks_s(found, devices, moves) == pytest.approx(best)


def test_too_little_memory_for_all_blocks_is_refused():
    spec = spec_of("edgeformer", GPT2, star([1e10] * 2, memory_bytes=60_000))
    with pytest.raises(PlanError, match=r"edgeformer: .* needs .* has"):
        plan_of(spec)


def test_costs_of_a_head_are_those_of_the_worked_example():
    cluster = star([1e8, 2e8, 4e8], message_overhead_s=0)
    found = sites_of(cluster, EIGHT_HEADS, 0, [1, 2], 8, [8, 8, 8], ROWS, "corrected")
    assert [site.head_s * 1e3 for site in found] == pytest.approx([0.65536, 0.98304, 0.81920])
    assert [site.fixed_s for site in found] == [0, 0, 0]


def test_the_printed_formulas_count_multiply_adds_and_elements():
    cluster = star([1e8, 2e8])
    assert local_s(cluster, EIGHT_HEADS, 0, ROWS, "paper") == (0, 32 * 32 * 16 / 1e8)
    assert link_s(cluster, EIGHT_HEADS, 0, 1, ROWS, "paper") == (0, pytest.approx(4 * 32 * 16 / 1e8))


def test_devices_price_a_head_as_their_compute_model_does():
    flops = star([1e8], compute_model="flops")
    fixed_s, head_s = local_s(flops, EIGHT_HEADS, 0, ROWS, "device")
    assert head_s == pytest.approx((4 * 16 + 1) * 32 * 32 / 1e8)
    assert fixed_s == pytest.approx(0, abs=1e-12)
    slow = star([1e8], op_overhead_s=1e-3)
    assert local_s(slow, EIGHT_HEADS, 0, ROWS, "device")[0] == pytest.approx(3e-3)


def test_a_round_trip_costs_both_delays_and_both_overheads():
    cluster = star([1e8, 1e8], message_overhead_s=2e-3)
    links = tuple(link.model_copy(update={"delay_s": 5e-3}) for link in cluster.links)
    cluster = cluster.model_copy(update={"links": links})
    assert link_s(cluster, EIGHT_HEADS, 0, 1, ROWS, "corrected")[0] == pytest.approx(0.024)


def test_at_thirteen_teraflops_lending_heads_never_pays():
    """OPT-1.3B, 256 tokens, 16 bits, 600 Mbit/s; all heads but one would have to outweigh the transfer."""
    opt = GPT2.model_copy(update={"num_heads": 32, "num_kv_heads": 32, "head_dim": 64, "dtype": "bfloat16"})
    rows = AttentionRows(1, 256, 256)
    fast = star([13e12, 13e12])
    links = tuple(link.model_copy(update={"bit_per_s": 600e6}) for link in fast.links)
    fast = fast.model_copy(update={"links": links})
    local = local_s(fast, opt, 0, rows, "corrected")[1]
    moved = link_s(fast, opt, 0, 1, rows, "corrected")[1]
    assert local == pytest.approx(1.29e-6, rel=1e-2)
    assert moved == pytest.approx(1748e-6, rel=1e-3)
    for flops, break_even in ((13e12, 26.2e9), (10e9, 20.2e6)):
        rate = moved * 600e6 / (31 * 4 * 256**2 * 64 / flops)
        assert rate == pytest.approx(break_even, rel=2e-3)


def test_deadlines_are_a_ratio_of_all_heads_or_seconds_per_pass_or_block_or_none():
    nominal = [Site(0, 8, 0, 1.0), Site(1, 8, 0, 1.0)]
    assert deadline_s("ratio", 0.88, 24, nominal, 8) == 4, "the seventh of 1, 1, 2, 2, 3, 3, 4, 4"
    assert deadline_s("ratio", 0.81, 24, nominal, 8) == 3, "the sixth"
    assert deadline_s("ratio", 0.82, 24, nominal, 8) == 4, "the seventh"
    alone = [Site(0, 8, 0, 1.0)]
    assert [deadline_s("ratio", n / 8, 24, alone, 8) for n in range(1, 9)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert deadline_s("ratio", 0.88, 24, alone, 8) == 7, "one of eight heads can go"
    assert deadline_s("ratio", 0.01, 24, nominal, 8) == 1
    assert deadline_s("ratio", 1.5, 24, nominal, 8) == 6
    assert deadline_s("forward_s", 3.0, 24, nominal, 8) == pytest.approx(0.125)
    assert deadline_s("block_s", 3.0, 24, nominal, 8) == 3.0
    assert deadline_s("none", 3.0, 24, nominal, 8) == inf


def test_the_reference_of_a_fixed_split_is_that_split():
    nominal = [Site(0, 8, 0, 1.0), Site(1, 8, 0, 3.0)]
    split = (0, 0, 0, 0, 1, 1, 1, 1)
    limit_s = deadline_s("ratio", 0.94, 24, nominal, 8, split)
    assert limit_s == 12, "the eighth of 1, 2, 3, 3, 4, 6, 9, 12"
    assert deadline_s("ratio", 0.88, 24, nominal, 8, split) == 9
    found = allocate([1.0] * 8, nominal, 9, only=split)
    assert found.device_of == (0, 0, 0, 0, 1, 1, 1, -1)


@settings(max_examples=300, deadline=None)
@given(
    heads=st.integers(1, 9),
    ratio=st.floats(0.01, 1),
    costs=st.data(),
    static=st.booleans(),
)
def test_with_any_number_of_devices_the_ratio_of_the_heads_is_kept_while_nothing_changes(
    heads, ratio, costs, static
):
    sites = [
        Site(rank, heads, costs.draw(st.floats(0, 3)), costs.draw(st.floats(0.01, 9)))
        for rank in range(costs.draw(st.integers(1, 2 * heads)))
    ]
    split = even_split(heads, range(len(sites))) if static else None
    limit_s = deadline_s("ratio", ratio, 1, sites, heads, split)
    found = allocate([1.0] * heads, sites, limit_s, only=split)
    assert found.num_kept >= max(1, math.floor(ratio * heads + 0.5))


def test_a_deadline_holds_as_many_heads_as_there_is_room_for():
    assert deadline_s("ratio", 0.88, 1, [Site(0, 3, 0, 1.0), Site(1, 2, 0, 5.0)], 8) == 10
    assert deadline_s("ratio", 0.88, 1, [Site(0, 0, 0, 1.0)], 8) == 0


def test_a_slower_network_prunes_more_under_a_ratio_of_the_nominal_one():
    def pruned(rate):
        where = [Site(0, 8, 0, 1.0), Site(1, 8, 0, 1e8 / rate)]
        nominal = [Site(0, 8, 0, 1.0), Site(1, 8, 0, 1.0)]
        return len(allocate([1.0] * 8, where, deadline_s("ratio", 1.0, 1, nominal, 8)).pruned)

    assert [pruned(rate) for rate in (1e8, 5e7, 2e7)] == [0, 2, 4]


def test_a_device_lends_less_the_less_memory_it_has():
    def lent(memory_bytes):
        cluster = star([1e10, 1e10])
        devices = (cluster.devices[0], cluster.devices[1].model_copy(update={"memory_bytes": memory_bytes}))
        spec = spec_of("edgeformer", GPT2, cluster.model_copy(update={"devices": devices}))
        return plan_of(spec).layout

    assert lent(4e8).lent_heads == (4, 4)
    small = lent(12_000)
    assert small.blocks == ((0, 0, 3),)
    assert 0 < small.lent_heads[1] < 4
    assert lent(1_000).lent_heads[1] == 0


def test_a_plan_says_whether_it_may_lose_anything():
    cluster = star([1e10] * 3)

    def lossy(**params):
        return plan_of(spec_of("edgeformer", LLAMA, cluster, **params)).layout.lossy

    assert lossy()
    assert lossy(t_max_mode="none", prune_below=0.1)
    assert not lossy(t_max_mode="none")
    assert not lossy(t_max_mode="none", scheduling="static")
    tiny = tuple(
        device.model_copy(update={"memory_bytes": 1e3 if rank else 4e8})
        for rank, device in enumerate(cluster.devices)
    )
    cluster = cluster.model_copy(update={"devices": tiny})
    assert not lossy(t_max_mode="none")
    assert lossy(t_max_mode="none", scheduling="static")


@pytest.mark.timeout(60)  # 0.03 s are taken; a search that tried all orders would not end
@pytest.mark.parametrize("devices", [5, 64])
def test_a_plan_for_a_large_model_on_many_devices_comes_to_an_end(devices):
    model = catalogue.resolve("llama-3.3-70b")[0]
    spec = spec_of("edgeformer", model, star([1e13] * devices, memory_bytes=64e9), rows=512, new_tokens=128)
    plan = plan_of(spec)
    assert plan.layout.blocks[-1][2] == model.num_layers
