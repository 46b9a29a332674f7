"""Galaxy's time of one member's part: whose tiles it moves, where to, and what hides behind what."""

import pytest

from engine.strategies.galaxy.time import MemberTimes
from engine.strategies.planner.estimate import SplitEstimate
from engine.strategies.shared.demand import demand_of
from tests.support.small_cases import GPT2, spec_of, star

ROW_BYTES = GPT2.hidden_size * 4


def times_of(rates_bit_per_s, sizes):
    """Of devices as fast as each other: a product takes its FLOPs, a transfer its bytes."""
    cluster = star([1e9] * len(sizes), compute_model="flops", message_overhead_s=0.0)
    links = zip(cluster.links, rates_bit_per_s, strict=True)
    cluster = cluster.model_copy(
        update={"links": tuple(link.model_copy(update={"bit_per_s": rate}) for link, rate in links)}
    )
    demand = demand_of(GPT2, spec_of("galaxy", GPT2, cluster, rows=sum(sizes)).workload, True)
    return MemberTimes(cluster, GPT2, demand, tuple(range(len(sizes))), sizes, tiles=True)


def test_a_tile_goes_to_the_next_member_of_the_ring_over_the_slower_of_both_links():
    hops_s = times_of([8e6, 4e6, 2e6], (1, 1, 1)).hops_s
    bits = 8 * ROW_BYTES
    assert [tiles_s[0] for tiles_s in hops_s] == pytest.approx([bits / 4e6, bits / 2e6, bits / 2e6])


def test_a_small_tile_travels_while_a_large_one_is_multiplied_and_a_large_one_takes_longer_than_that():
    """Nine rows and three, of which each travels for twice as long as its product takes."""
    for phase in (0, 2):  # gather and project; project and scatter
        row_s = times_of([1e15, 1e15], (9, 3)).attention_s(0, 2)[phase] / 12
        times = times_of([8 * ROW_BYTES / (2 * row_s)] * 2, (9, 3))
        assert times.attention_s(0, 2)[phase] == pytest.approx((9 + 3) * row_s, rel=1e-6)
        assert times.attention_s(1, 2)[phase] == pytest.approx((18 + 9) * row_s, rel=1e-6)


def test_operations_take_as_long_on_devices_that_differ_in_nothing_but_their_names():
    cluster = star([1e9, 1e9, 5e8], compute_model="flops")
    demand = demand_of(GPT2, spec_of("megatron", GPT2, cluster, rows=6).workload, True)
    split = SplitEstimate(cluster, GPT2, demand)
    columns_s = [split.part_s(rank, "columns", 4, 0) for rank in range(3)]
    assert columns_s == pytest.approx([columns_s[0], columns_s[0], 2 * columns_s[0]])
    times = MemberTimes(cluster, GPT2, demand, (0, 1, 2), (2, 2, 2), tiles=True)
    attends_s = [times.attention_s(i, 2)[1] for i in range(3)]
    assert attends_s == pytest.approx([attends_s[0], attends_s[0], 2 * attends_s[0]])
