"""Voltage's partition: the paper's numbers, its theorem against all orders, and the search."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import PlanError, SpecError
from engine.ops.positions import PositionBlock
from engine.ops.tensors import Meta
from engine.strategies.voltage.positions import bounds, orders, reorders, search
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, spec_of, star


@pytest.mark.parametrize(
    ("positions", "ratios", "expected"),
    [
        (7, (0.5, 0.3, 0.2), (0, 4, 6, 7)),
        (10, (1 / 3,) * 3, (0, 3, 7, 10)),
        (2, (1 / 3,) * 3, (0, 1, 1, 2)),
        (5, (0, 1, 0), (0, 0, 5, 5)),
        (200, (1 / 6,) * 6, (0, 33, 67, 100, 133, 167, 200)),
    ],
)
def test_bounds_round_the_cumulative_ratio_half_up(positions, ratios, expected):
    assert bounds(positions, ratios) == expected


@given(st.integers(1, 500), st.lists(st.floats(0, 1), min_size=1, max_size=9).filter(any))
def test_bounds_are_ordered_and_cover_every_position(positions, weights):
    ends = bounds(positions, [weight / sum(weights) for weight in weights])
    assert ends[0] == 0 and ends[-1] == positions and len(ends) == len(weights) + 1
    assert all(a <= b for a, b in pairwise(ends))


def score_macs(rows, positions, hidden, wide):
    """Equations (10) to (14) of the paper, per head; (14) as it must be."""
    p, n, f, e = rows, positions, hidden, wide
    return [
        2 * p * f * e + p * f * n,
        p * f * e + n * f * e + p * n * e,
        p * f * f + p * f * n,
        n * f * f + p * f * n,
        2 * n * f * e + p * n * f,
    ]


def value_macs(rows, positions, hidden, wide):
    """Equation (6): S(x W_V) and (S x) W_V."""
    p, n, f, e = rows, positions, hidden, wide
    return [p * n * e + n * f * e, p * n * f + p * f * e]


@given(st.integers(2, 32), st.integers(1, 256), st.integers(1, 600), st.data())
def test_theorem_2_finds_the_cheapest_of_all_ten_orders(heads, wide, positions, data):
    rows, hidden = data.draw(st.integers(1, positions)), heads * wide
    model = GPT2.model_copy(
        update={"num_heads": heads, "num_kv_heads": heads, "head_dim": wide, "hidden_size": hidden}
    )
    score, value = score_macs(rows, positions, hidden, wide), value_macs(rows, positions, hidden, wide)
    naive, reordered = score[1] + value[0], score[0] + value[1]
    best = min(a + b for a, b in product(score, value))
    assert best == min(naive, reordered)
    assert reorders(model, rows, positions) == (reordered < naive)


@given(st.sampled_from([GPT2, LLAMA, BERT]), st.integers(2, 60), st.data())
def test_the_chosen_order_costs_no_more_flops_than_either(model, positions, data):
    rows = data.draw(st.integers(1, positions))
    score, value = orders(model, rows, positions, "auto", fills_cache=False)
    assert product_flops(model, rows, positions, score, value) == min(
        product_flops(model, rows, positions, *pair)
        for pair in product(["naive", "reorder"], repeat=2)
        if pair[0] == "naive" or model.positions != "rope"
    )


def product_flops(model, rows, positions, score, value):
    op = PositionBlock(0, 0, rows, positions, score, value)
    kernels = op.cost(model, (Meta((1, positions, model.hidden_size)),), 0).kernels
    return sum(kernel.flops for kernel in kernels if kernel.kind == "product")


@pytest.mark.parametrize(
    ("devices", "largest", "order", "layer_macs"),
    [
        (1, 200, "naive", 2598502400),
        (2, 100, "naive", 1508966400),
        (3, 67, "naive", 1149419520),
        (4, 50, "reorder", 956825600),
        (5, 40, "reorder", 765460480),
        (6, 34, "reorder", 650641408),
    ],
)
def test_a_bert_large_layer_has_the_products_that_the_paper_counts(devices, largest, order, layer_macs):
    model = BERT.model_copy(
        update={
            "num_heads": 16,
            "num_kv_heads": 16,
            "head_dim": 64,
            "hidden_size": 1024,
            "intermediate_size": 4096,
        }
    )
    ends = bounds(200, [1 / devices] * devices)
    rows = max(b - a for a, b in pairwise(ends))
    chosen = orders(model, rows, 200, "auto", fills_cache=False)
    assert (rows, chosen) == (largest, (order, order))
    assert product_flops(model, rows, 200, *chosen) == 2 * layer_macs


@given(st.integers(1, 300))
def test_one_device_never_reorders(positions):
    for model in (GPT2, LLAMA, BERT):
        assert not reorders(model, positions, positions)


def test_a_device_that_fills_the_cache_and_every_rotary_score_is_naive():
    assert orders(GPT2, 1, 60, "reorder", fills_cache=False) == ("reorder", "reorder")
    assert orders(GPT2, 1, 60, "reorder", fills_cache=True) == ("naive", "naive")
    assert orders(LLAMA, 1, 60, "reorder", fills_cache=False) == ("naive", "reorder")
    assert orders(GPT2, 1, 60, "naive", fills_cache=False) == ("naive", "naive")


@given(st.lists(st.integers(1, 20), min_size=2, max_size=5), st.integers(1, 120))
def test_search_comes_within_one_row_of_the_best_linear_split(costs, positions):
    """With a time per row, no split is better than all devices ending together, up to one row each."""

    def shard_s(index, start, stop):
        return costs[index] * (stop - start)

    start = bounds(positions, [1 / len(costs)] * len(costs))
    ends = search(positions, start, shard_s)
    slowest = max(shard_s(i, a, b) for i, (a, b) in enumerate(pairwise(ends)))
    assert ends[0] == 0 and ends[-1] == positions
    assert slowest <= positions / sum(1 / cost for cost in costs) + max(costs)
    assert slowest <= max(shard_s(i, a, b) for i, (a, b) in enumerate(pairwise(start)))


def test_searched_bounds_are_faster_than_even_and_proportional_ones():
    cluster = star([4e10, 1e10, 2.5e10, 3e9])
    slowest = {}
    for ratio, planner in (("even", "paper"), ("proportional", "paper"), ("even", "best")):
        plan = plan_of(spec_of("voltage", BERT, cluster, rows=60, ratio=ratio, planner=planner))
        slowest[ratio if planner == "paper" else "best"] = max(
            shard_s(cluster, BERT, 60, shard) for shard in plan.layout.shards
        )
    assert slowest["best"] <= min(slowest.values())
    assert slowest["best"] < slowest["even"]


def shard_s(cluster, model, positions, shard):
    from engine.ops.cost import op_time_s

    op = shard.op(0, None)
    x = Meta((1, positions, model.hidden_size))
    return op_time_s(cluster.devices[shard.device], op.cost(model, (x,), 0).kernels)


def test_trimmed_keys_end_with_the_rows_and_the_last_rows_owner_decodes():
    plan = plan_of(spec_of("voltage", GPT2, star([4e10, 1e10, 1e10]), rows=12, causal_trim=True))
    assert [shard.keys_stop for shard in plan.layout.shards] == [4, 8, 12]
    assert plan.layout.owner == 2
    untrimmed = plan_of(spec_of("voltage", GPT2, star([1e10, 4e10, 1e10]), rows=12))
    assert [shard.keys_stop for shard in untrimmed.layout.shards] == [12, 12, 12]
    assert untrimmed.layout.owner == 1


def test_a_decode_owner_without_all_keys_is_refused_with_the_one_that_has_them():
    with pytest.raises(PlanError, match=r"only d2.*whole KV cache"):
        plan_of(spec_of("voltage", GPT2, star([1e10] * 3), causal_trim=True, decode_owner="d0"))
    with pytest.raises(SpecError, match="term is a terminal"):
        plan_of(spec_of("voltage", GPT2, star([1e10] * 3, terminal=True), decode_owner="term"))


def test_an_encoder_has_no_decode_owner_and_is_never_trimmed():
    plan = plan_of(spec_of("voltage", BERT, star([1e10] * 3), rows=12, causal_trim=True))
    assert plan.layout.owner is None
    assert [shard.keys_stop for shard in plan.layout.shards] == [12, 12, 12]


def attention_macs(rows, positions, heads, wide, order):
    """Products of all heads for `rows` of `positions`, without the output's; hidden is heads·wide."""
    hidden = heads * wide
    model = BERT.model_copy(
        update={
            "num_heads": heads,
            "num_kv_heads": heads,
            "head_dim": wide,
            "hidden_size": hidden,
            "intermediate_size": 4 * hidden,
        }
    )
    if order == "auto":
        order, _ = orders(model, rows, positions, "auto", fills_cache=False)
    flops = product_flops(model, rows, positions, order, order)
    return flops // 2 - rows * hidden * hidden - 2 * rows * hidden * 4 * hidden


@pytest.mark.parametrize(
    ("rows", "naive", "reordered", "auto_speed_up", "naive_speed_up"),
    [
        (100, 565248000, 969932800, 1.722, 1.722),
        (67, 517128192, 649854976, 2.261, 2.261),
        (50, 492339200, 484966400, 2.716, 2.695),
        (40, 477757440, 387973120, 3.395, 3.038),
        (34, 469008384, 329777152, 3.994, 3.290),
    ],
)
def test_attention_of_a_bert_large_layer_in_both_orders(
    rows, naive, reordered, auto_speed_up, naive_speed_up
):
    assert attention_macs(rows, 200, 16, 64, "naive") == naive
    assert attention_macs(rows, 200, 16, 64, "reorder") == reordered
    whole, rest = 2_598_502_400, rows * 1024**2 + 2 * rows * 1024 * 4096
    assert whole / (min(naive, reordered) + rest) == pytest.approx(auto_speed_up, abs=5e-4)
    assert whole / (naive + rest) == pytest.approx(naive_speed_up, abs=5e-4)


@pytest.mark.parametrize(
    ("heads", "wide", "naive", "auto"), [(4, 256, 1.66, 6.71), (8, 128, 1.66, 4.66), (16, 64, 1.66, 2.90)]
)
def test_attention_over_300_positions_on_ten_devices_is_as_much_faster_as_in_figure_6(
    heads, wide, naive, auto
):
    alone = attention_macs(300, 300, heads, wide, "naive")
    for order, speed_up in (("naive", naive), ("auto", auto)):
        assert alone / attention_macs(30, 300, heads, wide, order) == pytest.approx(speed_up, abs=6e-3)


@pytest.mark.parametrize(
    ("positions", "naive", "reordered", "switch"),
    [
        (6, 544, 384, 1.75),
        (12, 1280, 1152, 2.5),
    ],
)
def test_two_heads_of_four_on_three_devices(positions, naive, reordered, switch):
    """8 numbers per position: per head, and the number of devices from which on reordering pays."""
    rows = positions // 3
    assert attention_macs(rows, positions, 2, 4, "naive") == 2 * naive
    assert attention_macs(rows, positions, 2, 4, "reorder") == 2 * reordered
    assert positions * (8 - 4) / (8 * 4) + 1 == switch


@pytest.mark.parametrize(
    ("hidden", "wide", "positions", "switch"),
    [
        (1024, 64, 200, 3.93),
        (768, 64, 200, 3.86),
        (768, 64, 197, 3.82),
        (1024, 64, 512, 8.5),
        *((1024, 64, n, k) for n, k in ((100, 2.46), (200, 3.93), (300, 5.39))),
        *((1024, 128, n, k) for n, k in ((100, 1.68), (200, 2.37), (300, 3.05))),
        *((1024, 256, n, k) for n, k in ((100, 1.29), (200, 1.59), (300, 1.88))),
    ],
)
def test_reordering_pays_from_the_published_number_of_devices_on(hidden, wide, positions, switch):
    """BERT-Large, GPT-2, ViT, BERT-Large with 512 tokens, and the layers of figure 6; with N/K rows each."""
    heads = hidden // wide
    model = BERT.model_copy(
        update={
            "num_heads": heads,
            "num_kv_heads": heads,
            "head_dim": wide,
            "hidden_size": hidden,
        }
    )
    assert reorders(model, positions / (switch + 0.02), positions)
    assert not reorders(model, positions / (switch - 0.02), positions)


@given(st.integers(1, 16), st.integers(1, 64), st.integers(2, 200), st.data())
def test_reordered_products_shrink_with_the_rows_and_naive_ones_have_a_part_that_does_not(
    heads, wide, positions, data
):
    rows, hidden = data.draw(st.integers(1, positions)), heads * wide
    one, two = (attention_macs(rows, positions, heads, wide, order) for order in ("reorder", "naive"))
    assert one == rows * attention_macs(1, positions, heads, wide, "reorder")
    assert two >= heads * 2 * positions * hidden * wide


@given(st.integers(1, 8), st.integers(1, 32), st.lists(st.integers(1, 30), min_size=2, max_size=6))
def test_naive_devices_together_form_all_keys_and_values_once_each(heads, wide, sizes):
    positions, hidden = sum(sizes), heads * wide
    together = sum(attention_macs(size, positions, heads, wide, "naive") for size in sizes)
    alone = attention_macs(positions, positions, heads, wide, "naive")
    assert together == alone + (len(sizes) - 1) * heads * 2 * positions * hidden * wide


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 8), st.integers(2, 60), st.data())
def test_with_grouped_queries_the_cheaper_order_is_still_found(group, keys, positions, data):
    rows = data.draw(st.integers(1, positions))
    model = GPT2.model_copy(
        update={
            "num_heads": group * keys,
            "num_kv_heads": keys,
            "hidden_size": 8 * group * keys,
        }
    )
    chosen = orders(model, rows, positions, "auto", fills_cache=False)
    assert product_flops(model, rows, positions, *chosen) == min(
        product_flops(model, rows, positions, *pair) for pair in product(["naive", "reorder"], repeat=2)
    )


@pytest.mark.parametrize(("rates", "sizes"), [((4e10, 1e10), [8, 2]), ((1e10, 4e10), [2, 8])])
def test_a_device_four_times_as_fast_gets_four_times_the_positions(rates, sizes):
    """With FLOPs / rate as the device model, ten positions are 8 and 2."""
    cluster = star(rates, compute_model="flops", op_overhead_s=0.0)
    plan = plan_of(spec_of("voltage", BERT, cluster, rows=10, ratio="proportional"))
    assert plan.layout.ratios == pytest.approx([size / 10 for size in sizes])
    assert [shard.size for shard in plan.layout.shards] == sizes
