"""Stage plans: how many layers each device gets, worked by hand and against every possible division."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.strategies.shared.demand import demand_of, weights_bytes, working_bytes
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.pipeline import ends_placement
from engine.strategies.shared.shares import bounds_of, largest_remainder
from engine.strategies.shared.stages import (
    Stage,
    consecutive,
    fill,
    layer_bytes,
    rooms_of,
    source_first,
    stages_of,
)
from tests.support.small_cases import GPT2, spec_of, star

SIX = GPT2.model_copy(update={"num_layers": 6})


def demand(cluster, model=SIX):
    return demand_of(model, spec_of("gpipe", model, cluster).workload, False)


def stages(cluster, by, model=SIX):
    ends = ends_placement("gpipe", cluster, model)
    return [(s.device, s.start, s.stop) for s in stages_of(cluster, model, demand(cluster, model), ends, by)]


def sized(cluster, *layers, model=SIX):
    """`cluster` with memory for so many layers on each device besides what else it needs."""
    ends, size = ends_placement("gpipe", cluster, model), layer_bytes(model, demand(cluster, model))
    taken = [
        device.memory_bytes - room.bytes
        for device, room in zip(
            cluster.devices, rooms_of(cluster, model, demand(cluster, model), ends), strict=True
        )
    ]
    devices = [
        device.model_copy(update={"memory_bytes": least + (number + 0.5) * size})
        for device, least, number in zip(cluster.devices, taken, layers, strict=True)
    ]
    return cluster.model_copy(update={"devices": tuple(devices)})


def test_stages_follow_each_other_and_devices_without_layers_have_none():
    assert consecutive([4, 0, 2], [2, 0, 1]) == (
        Stage(device=4, start=0, stop=2),
        Stage(device=2, start=2, stop=3),
    )


def test_the_source_computes_first_and_terminals_not_at_all():
    assert source_first(star([1e9] * 3, source=2)) == (2, 0, 1)
    assert source_first(star([1e9] * 3, terminal=True)) == (0, 1, 2)


def test_six_layers_in_equal_parts_by_speed_and_by_memory():
    cluster = star([1e9, 3e9, 2e9], compute_model="flops", op_overhead_s=0.0)
    assert stages(cluster, "even") == [(0, 0, 2), (1, 2, 4), (2, 4, 6)]
    assert stages(cluster, "flops") == [(0, 0, 1), (1, 1, 4), (2, 4, 6)]
    assert stages(sized(cluster, 8, 16, 24), "memory") == [(0, 0, 1), (1, 1, 3), (2, 3, 6)]


def test_what_is_over_a_device_s_memory_goes_to_the_first_with_room():
    cluster = sized(star([1e9] * 3), 1, 4, 3)
    assert stages(cluster, "even") == [(0, 0, 1), (1, 1, 4), (2, 4, 6)]


def test_a_layer_takes_its_weights_and_the_caches_of_all_sequences():
    cluster = star([1e9])
    weights = sum(weight_bytes(SIX, piece) for piece in layer_slices(0))
    rows = 11 + 4 - 1  # the last token is not fed back
    assert layer_bytes(SIX, demand(cluster)) == weights + rows * kv_bytes_per_row(SIX, 4)
    assert kv_bytes_per_row(SIX, 4) == 2 * 4 * 8 * 4  # K and V, 4 heads of 8 numbers of 4 bytes


def test_a_device_gives_what_the_ends_and_one_operation_leave():
    cluster, ends = star([1e9, 1e9]), ends_placement("gpipe", star([1e9, 1e9]), SIX)
    source, other = rooms_of(cluster, SIX, demand(cluster), ends)
    assert source.bytes < other.bytes < 4e8
    assert source.bytes <= 4e8 - weights_bytes(ends, SIX, 0) and weights_bytes(ends, SIX, 1) == 0
    assert working_bytes(SIX, []) == 0


def test_too_little_memory_is_refused_with_what_every_device_has():
    cluster = sized(star([1e9] * 2), 2, 3)
    with pytest.raises(PlanError, match=r"small-gpt2 needs 6 layers of .*d0 has .* for 2, d1 has .* for 3"):
        stages(cluster, "even")


numbers = st.lists(st.integers(0, 6), min_size=1, max_size=4)


@given(numbers, st.data())
def test_filling_keeps_the_total_under_the_caps_and_moves_only_what_is_over(sizes, data):
    caps = data.draw(st.lists(st.integers(0, 8), min_size=len(sizes), max_size=len(sizes)))
    if sum(caps) < sum(sizes):
        return
    filled = fill(sizes, caps)
    assert sum(filled) == sum(sizes)
    assert all(size <= cap for size, cap in zip(filled, caps, strict=True))
    moved = sum(max(0, size - cap) for size, cap in zip(sizes, caps, strict=True))
    assert sum(abs(a - b) for a, b in zip(filled, sizes, strict=True)) == 2 * moved


@given(st.integers(0, 9), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_largest_remainders_are_as_close_to_the_quotas_as_any_division(total, weights):
    """Of all whole divisions none has a smaller sum of squared distances from the exact shares."""
    quotas = [total * weight / sum(weights) for weight in weights]

    def distance(sizes):
        return sum((size - quota) ** 2 for size, quota in zip(sizes, quotas, strict=True))

    every = [sizes for sizes in product(range(total + 1), repeat=len(weights)) if sum(sizes) == total]
    found = largest_remainder(total, weights)
    assert sum(found) == total and distance(found) <= min(map(distance, every)) + 1e-9
    assert bounds_of(found)[-1] == total
