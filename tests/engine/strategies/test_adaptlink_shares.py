"""AdaptLink's shares against the paper's formulas, worked examples and brute force."""

from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.plan import Slice
from engine.models import catalogue
from engine.ops.sizes import weight_bytes
from engine.strategies.adaptlink.shares import (
    FfnTime,
    Primary,
    fill_blocks,
    grid_size,
    sides_s,
    split_layers,
)
from tests.support.small_cases import GPT2

MB = 1e6
seconds = st.floats(1e-6, 1e3)


def balanced_share(primary_s: float, secondary_s: float) -> float:
    """p* of equation 5: both sides take primary_s · secondary_s / (primary_s + secondary_s)."""
    return secondary_s / (primary_s + secondary_s)


def exact_share(primary_s: float, compute_s: float, messages_s: float) -> float:
    """p where p · primary_s = (1 - p) · compute_s + messages_s; 1 if even the last column is not worth it.

    `messages_s` is the whole way of input and output, whatever the share.
    """
    return min(1.0, (compute_s + messages_s) / (primary_s + compute_s))


def test_a_secondary_that_takes_twice_as_long_leaves_two_thirds_to_the_primary():
    secondary = FfnTime(compute_s=1.5e-3, output_s=0.5e-3)
    share = balanced_share(1e-3, secondary.total_s)
    assert share == pytest.approx(2 / 3)
    sides = sides_s((share, 1 - share), (FfnTime(1e-3), secondary), exact=False)
    assert sides == pytest.approx((0.667e-3, 0.667e-3), rel=1e-3)


def test_with_messages_of_full_size_the_same_secondary_is_not_worth_it():
    secondary = FfnTime(compute_s=1.5e-3, output_s=0.5e-3)
    assert exact_share(1e-3, 1.5e-3, 2 * 0.5e-3) == 1.0
    sides = sides_s((2 / 3, 1 / 3), (FfnTime(1e-3), secondary), exact=True)
    assert sides[1] == pytest.approx(1.5e-3)


@pytest.mark.parametrize(
    ("rates", "bit_per_s", "printed", "exact"),
    [
        ((0.1e12, 0.05e12), 1e9, 0.669, 0.680),
        ((0.1e12, 0.05e12), 1e8, 0.687, 0.795),
        ((10e12, 10e12), 1e9, 0.745, 1.0),
    ],
)
def test_a_feed_forward_part_of_vicuna_13b(rates, bit_per_s, printed, exact):
    flops, output_bytes = 6 * 5120 * 13824, 10240
    assert flops == pytest.approx(424.7e6, rel=1e-4)
    primary_s, secondary_s = (flops / rate for rate in rates)
    message_s = output_bytes * 8 / bit_per_s
    assert balanced_share(primary_s, secondary_s + message_s) == pytest.approx(printed, abs=5e-4)
    assert exact_share(primary_s, secondary_s, 2 * message_s) == pytest.approx(exact, abs=5e-4)


@given(seconds, seconds, st.floats(1.001, 10))
def test_the_share_balances_both_sides_and_moves_the_right_way(primary_s, secondary_s, more):
    share = balanced_share(primary_s, secondary_s)
    assert 0 < share < 1
    assert abs(share * primary_s - (1 - share) * secondary_s) < 1e-9 * max(1, primary_s, secondary_s)
    assert balanced_share(primary_s, more * secondary_s) > share
    assert balanced_share(more * primary_s, secondary_s) < share


def test_three_devices_of_1_2_and_3_ms_get_6_3_and_2_elevenths():
    assert fill_blocks(11, [1, 2, 3], [11] * 3) == (6, 3, 2)
    shares = [6 / 11, 3 / 11, 2 / 11]
    assert sides_s(shares, [FfnTime(1), FfnTime(2), FfnTime(3)], False) == pytest.approx([0.5454545] * 3)


@given(st.lists(seconds, min_size=2, max_size=6), st.integers(8, 64))
def test_whole_blocks_are_within_one_block_of_balance(times_s, grid):
    blocks = fill_blocks(grid, times_s, [grid] * len(times_s))
    speed = sum(1 / time_s for time_s in times_s)
    assert sum(blocks) == grid and min(blocks) >= 1
    exact = [grid / time_s / speed for time_s in times_s]
    if min(exact) >= 1:
        assert all(abs(have - want) < 1 + 1e-6 for have, want in zip(blocks, exact, strict=True))
    if len(times_s) == 2 and min(exact) >= 1:
        sides = [size / grid * time_s for size, time_s in zip(blocks, times_s, strict=True)]
        assert abs(sides[0] - sides[1]) <= sum(times_s) / grid * (1 + 1e-6)


@given(st.lists(st.tuples(seconds, st.integers(0, 12)), min_size=1, max_size=6), st.integers(1, 40))
def test_no_device_gets_more_blocks_than_it_has_room_for(devices, total):
    times_s, caps = zip(*devices, strict=True)
    blocks = fill_blocks(total, times_s, caps)
    if sum(caps) < total:
        assert blocks is None
        return
    assert sum(blocks) == total
    assert all(0 <= size <= cap for size, cap in zip(blocks, caps, strict=True))


def test_water_filling_gives_the_rest_to_those_with_room():
    assert fill_blocks(12, [1, 1, 1], [12, 2, 12]) == (5, 2, 5)
    assert fill_blocks(12, [1, 2, 2], [12, 12, 1]) == (7, 4, 1)


@given(st.integers(1, 6), st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6)), min_size=2, max_size=3))
def test_under_caps_the_slowest_side_is_as_fast_as_brute_force_finds_within_one_block(total, devices):
    times_s, caps = zip(*devices, strict=True)
    blocks = fill_blocks(total, times_s, caps)
    every = [sizes for sizes in product(*(range(cap + 1) for cap in caps)) if sum(sizes) == total]
    if not every:
        assert blocks is None
        return
    slowest = min(max(n * t for n, t in zip(sizes, times_s, strict=True)) for sizes in every)
    assert max(n * t for n, t in zip(blocks, times_s, strict=True)) <= slowest + max(times_s)


def primary_of(usable):
    """Six layers of 4 MB attention, 8 MB feed-forward, and 10 MB besides."""
    return Primary((10 + 6 * 4) * MB, 8 * MB, 6, usable * MB)


def test_a_budget_of_72_mb_splits_the_last_four_of_six_layers():
    primary = primary_of(72)
    split = split_layers(primary, [inf], [1.0, 2.0], 6, None)
    assert split == (4, (4, 2))
    secondary_bytes = 4 * 2 / 6 * 8 * MB
    used = primary.usable_bytes + primary.over_bytes - secondary_bytes
    assert used == pytest.approx(71.33 * MB, rel=1e-4)
    assert secondary_bytes == pytest.approx(10.67 * MB, rel=1e-3)


def test_its_step_takes_7_667_ms_as_printed_and_11_ms_in_truth_of_9_on_one_device():
    times, shares = (FfnTime(1.0), FfnTime(1.5, 0.5)), (2 / 3, 1 / 3)
    for exact, step_ms in ((False, 7.667), (True, 11.0)):
        step = 2 * (0.5 + 1.0) + 4 * (0.5 + max(sides_s(shares, times, exact)))
        assert step == pytest.approx(step_ms, abs=1e-3)
    assert 6 * 1.5 == 9.0


@pytest.mark.parametrize(("budget", "kept", "share"), [(60, 3, 0.5417), (40, 0, 0.125)])
def test_where_all_layers_free_too_little_the_primary_keeps_what_fits(budget, kept, share):
    primary = primary_of(budget)
    assert primary.num_split(2 / 3) > 6
    assert 1 - primary.over_bytes / (6 * 8 * MB) == pytest.approx(share, abs=1e-4)
    assert split_layers(primary, [inf], [1.0, 2.0], 6, None) == (6, (kept, 6 - kept))


def test_a_budget_of_30_mb_moves_all_feed_forward_parts_and_still_lacks_room():
    primary = primary_of(30)
    assert primary.most_blocks(6, 6) < 0
    assert split_layers(primary, [inf], [1.0, 2.0], 6, None) == (6, (0, 6))
    assert primary.over_bytes > 6 * 8 * MB


def test_a_model_that_fits_is_not_split():
    assert primary_of(82).num_split(2 / 3) == 0


def test_a_small_secondary_makes_more_layers_be_split_or_is_refused():
    assert split_layers(primary_of(72), [10.6 * MB, 8 * MB], [1.0, 2.0, 4.0], 6, None) is not None
    assert split_layers(primary_of(72), [9 * MB], [1.0, 2.0], 6, None) is None


@given(
    st.floats(31, 81),
    st.lists(st.tuples(st.floats(0.5, 4), st.floats(0, 60)), min_size=1, max_size=3),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_splits_are_minimal_and_within_every_memory(usable, secondaries, share):
    primary = primary_of(usable)
    times, rooms = zip(*secondaries, strict=True)
    rooms = [room * MB for room in rooms]
    split = split_layers(primary, rooms, [1.0, *times], 8, share)
    if split is None:
        return
    moved = split.num_split * primary.ffn_bytes / 8
    assert sum(split.blocks) == 8
    for size, room in zip(split.blocks[1:], rooms, strict=True):
        assert size * moved <= room * (1 + 1e-9)
    left = primary.over_bytes - (8 - split.blocks[0]) * moved
    assert left <= 1 or split.blocks[0] == 0
    fewer = primary.over_bytes - (8 - split.blocks[0]) * (split.num_split - 1) * primary.ffn_bytes / 8
    assert fewer > -1, "one split layer less would do"


def test_the_grid_is_the_largest_common_divisor_of_both_widths_up_to_64():
    assert grid_size(GPT2) == 32
    assert grid_size(catalogue.resolve("gpt2", "random")[0]) == 64


@pytest.mark.parametrize(
    ("name", "needs_gb", "splits"),
    [
        ("llava-7b", 14.6, {0.5: 0, 0.0: 0}),
        ("llava-13b", 27.1, {0.5: 27, 0.0: 14}),
        ("llava-34b", 69.9, {}),
    ],
)
def test_the_published_runs_on_a_primary_of_24_gb(name, needs_gb, splits):
    """16 bit, 0.62 GB for the tower, 0.5 GB of KV cache, 90 % of memory; 34B with half of every layer needs
    43.5 GB of a primary: more than there is.
    """
    model = catalogue.resolve(name, "random")[0]
    attention, ffn = (
        sum(weight_bytes(model, Slice(layer=layer, part=part)) for layer in range(model.num_layers))
        for part in ("attention", "ffn")
    )
    ends = 2 * model.vocab_size * model.hidden_size * 2
    primary = Primary(attention + ends + 1.12e9, ffn / model.num_layers, model.num_layers, 0.9 * 24e9)
    assert (primary.over_bytes + primary.usable_bytes) / 1e9 == pytest.approx(needs_gb, abs=0.1)
    assert {share: primary.num_split(share) for share in splits} == splits
    if name == "llava-34b":
        assert primary.num_split(0.5) > model.num_layers
        left = primary.over_bytes + primary.usable_bytes - 0.5 * ffn
        assert left / 1e9 == pytest.approx(43.5, abs=0.1)


def test_the_first_of_those_with_most_gives_a_block_to_one_that_has_none():
    assert fill_blocks(4, [1.0, 1.0, 1000.0], [4, 4, 4]) == (1, 2, 1)
