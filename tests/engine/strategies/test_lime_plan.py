"""LIME's planner against its worked example, against brute force, and against its own event model."""

import random
from itertools import pairwise

import pytest

from engine.strategies.lime.allocation import (
    LayerAllocation,
    Ring,
    allocate,
    bounds_of_stages,
    dynamic_program,
    exact,
    planned_s,
    printed,
    printed_slots,
    stages_of_segments,
)
from engine.strategies.lime.blocks import blocks_of, load_frac, refine, spare_bytes, whole_layers
from engine.strategies.lime.cost import HopTime, closed_form_s, event_model, idle_s, steady_step_s
from engine.strategies.lime.placement import best_placement
from tests.support.lime_cases import EXAMPLE, MB, MS, brute_force_s, compositions, ring

TABLE = [
    # segments, layers, slots, stages, memory in layers, closed form, event model M=1 and M=2 (ms)
    (2, (4, 4), (1, 1), ((2, 2), (2, 2)), (3, 3), 124, 124, 200),
    (2, (5, 3), (2, 0), ((3, 1), (2, 2)), (3, 3), 120, 122, 170),
    (2, (3, 5), (0, 2), ((2, 2), (1, 3)), (3, 3), 240, 240, 340),
    (3, (5, 3), (1, 0), ((2, 1), (2, 1), (1, 1)), (3, 3), 116, 116, 142),
    (3, (3, 5), (0, 1), ((1, 2), (1, 2), (1, 1)), (3, 3), 180, 180, 280),
    (4, (4, 4), (1, 1), ((1, 1),) * 4, (1, 1), 240, 240, 320),
]


def steady_ms(one, chosen, num_micro_batches, streams=None):
    streams = streams or whole_layers(chosen)
    stages = stages_of_segments(chosen.layers, chosen.num_segments)
    loads_s = [load_frac(one, each) * one.load_s[device] for device, each in enumerate(streams)]
    blocks = [blocks_of(each) for each in streams]
    return steady_step_s(stages, blocks, loads_s, one.step, num_micro_batches) / MS


def drawn(seed, max_devices=3, max_layers=11, kv=True):
    """A random small ring; its capacities make some streaming necessary in most cases."""
    draw = random.Random(seed)
    size = draw.randint(2, max_devices)
    num_layers = draw.randint(2 * size, max_layers)
    return ring(
        num_layers,
        [draw.randint(1, 9) * MS for _ in range(size)],
        [draw.randint(1, 30) * MS for _ in range(size)],
        [draw.randint(100, 100 * max(2, num_layers // size + 1)) * MB for _ in range(size)],
        hop_s=draw.randint(0, 3) * MS,
        kv_bytes=draw.choice((0.0, 7 * MB)) if kv else 0.0,
    )


@pytest.mark.parametrize("row", TABLE)
def test_the_worked_example(row):
    segments, layers, slots, stages, in_memory, closed_ms, one_ms, two_ms = row
    chosen = LayerAllocation(segments, layers, slots)
    assert stages_of_segments(layers, segments) == stages
    assert tuple(num - k * (segments - 1) for num, k in zip(layers, slots, strict=True)) == in_memory
    assert planned_s(EXAMPLE, chosen) / MS == pytest.approx(closed_ms)
    assert steady_ms(EXAMPLE, chosen, 1) == pytest.approx(one_ms)
    assert steady_ms(EXAMPLE, chosen, 2) == pytest.approx(two_ms)


def test_the_exact_plan_of_the_example_is_its_optimum():
    assert exact(EXAMPLE, 3) == LayerAllocation(3, (5, 3), (1, 0))
    best = best_placement(EXAMPLE, "exact", 0, True, 1)
    assert best.chosen == LayerAllocation(3, (5, 3), (1, 0)) and best.step_s / MS == pytest.approx(116)
    assert best_placement(EXAMPLE, "exact", 0, True, 2).step_s / MS == pytest.approx(142)
    assert min(brute_force_s(EXAMPLE, segments) for segments in (2, 3, 4)) / MS == pytest.approx(116)


def test_blocks_become_resident_where_the_load_is_least_covered():
    one = ring(8, (10 * MS, 20 * MS), (20 * MS, 60 * MS), (300 * MB, 370 * MB))
    chosen = LayerAllocation(2, (4, 4), (1, 1))
    assert planned_s(one, chosen) / MS == pytest.approx(160)
    assert spare_bytes(one, chosen, 1, ("layer",)) / MB == pytest.approx(70)
    streams = refine(one, chosen)
    assert streams == (("layer",), ("attention",))  # the feed-forward block stays
    fronts = [one.step.front_s(device, blocks_of(each)) for device, each in enumerate(streams)]
    loads = [load_frac(one, each) * one.load_s[device] for device, each in enumerate(streams)]
    assert 2 * (fronts[1] + loads[1]) / MS == pytest.approx(2 * (20 + 20 / 3))
    assert closed_form_s(one.step, chosen.layers, 2, fronts, loads) / MS == pytest.approx(124)
    assert steady_ms(one, chosen, 1, streams) == pytest.approx(124)


@pytest.mark.parametrize("seed", range(80))
def test_exact_is_as_good_as_trying_everything(seed):
    one = drawn(seed)
    for segments in range(2, one.num_layers // one.size + 1):
        chosen = exact(one, segments)
        best_s = brute_force_s(one, segments)
        assert (chosen is None) == (best_s is None)
        if chosen is not None:
            assert planned_s(one, chosen) == pytest.approx(best_s)


def test_numbers_of_layers_that_a_device_can_host_may_have_gaps_and_exact_respects_them():
    # two slots of four segments need eight layers: six or seven fit in memory and not in stages
    one = ring(12, (5 * MS, 1 * MS), (1 * MS, 1 * MS), (600 * MB, 200 * MB))
    assert [one.slots_for(1, layers, 4) for layers in range(4, 9)] == [1, 1, None, None, 2]
    assert planned_s(one, exact(one, 4)) == pytest.approx(brute_force_s(one, 4))


@pytest.mark.parametrize("seed", range(60))
def test_the_dynamic_program_is_as_good_as_trying_everything_and_exact_is_better_still(seed):
    one = drawn(seed)
    for segments in range(2, one.num_layers // one.size + 1):
        filled = [one.capacity(device) for device in range(one.size)]
        left = one.num_layers - sum(filled)
        if left <= 0:
            continue
        idle = [idle_s(one.step, filled, segments, device, 0.0) for device in range(one.size)]

        def cost_s(extras, segments=segments, filled=filled, idle=idle):
            slots = [one.slots_for(i, filled[i] + extra, segments) for i, extra in enumerate(extras)]
            if any(k is None or k > num for k, num in zip(slots, filled, strict=True)):
                return None
            return max(max(0.0, k * one.load_s[i] - idle[i]) for i, k in enumerate(slots))

        costs = [cost for extras in compositions(left, one.size) if (cost := cost_s(extras)) is not None]
        chosen = dynamic_program(one, segments)
        assert (chosen is None) == (not costs)
        if chosen is not None:
            extras = [num - before for num, before in zip(chosen.layers, filled, strict=True)]
            assert cost_s(extras) == pytest.approx(min(costs))
            assert planned_s(one, exact(one, segments)) <= planned_s(one, chosen) + 1e-12


def test_algorithm_1_as_printed_adds_overlapping_delays_and_prefers_the_later_device():
    assert printed_slots(2, (5, 5), (0, 0)) == (0, 2)  # costs 10 where (1, 1) costs 5
    assert printed_slots(3, (4,), (2,)) == (3,)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("mode", ["exact", "dp", "printed"])
def test_every_plan_fits_and_gives_every_layer_to_one_stage(mode, seed):
    one = drawn(seed)
    for segments in range(2, one.num_layers // one.size + 1):
        chosen = allocate(one, segments, mode)
        if chosen is None:
            continue
        streams = refine(one, chosen)
        for device in range(one.size):
            assert spare_bytes(one, chosen, device, whole_layers(chosen)[device]) >= 0
            assert spare_bytes(one, chosen, device, streams[device]) >= 0
        stages = stages_of_segments(chosen.layers, segments)
        assert [sum(each) for each in zip(*stages, strict=True)] == list(chosen.layers)
        assert max(map(sum, stages)) - min(map(sum, stages)) <= 1
        assert all(size >= max(1, k) for each in stages for size, k in zip(each, chosen.slots, strict=True))
        ends = [bound for segment in bounds_of_stages(stages) for bound in segment]
        assert ends[0][0] == 0 and ends[-1][1] == one.num_layers
        assert all(before[1] == after[0] for before, after in pairwise(ends))


@pytest.mark.parametrize("seed", range(200))
def test_events_take_as_long_as_the_closed_form_or_longer_where_stages_differ(seed):
    draw = random.Random(seed)
    size, segments = draw.randint(1, 4), draw.randint(2, 4)
    equal = draw.random() < 0.5
    layers = tuple(segments * draw.randint(1, 3) + (0 if equal else draw.randint(0, 2)) for _ in range(size))
    one = ring(
        sum(layers),
        [draw.randint(1, 9) * MS for _ in layers],
        [draw.randint(1, 40) * MS for _ in layers],
        [0.0] * size,
        hop_s=draw.randint(0, 3) * MS,
    )
    slots = tuple(draw.randint(0, num // segments) for num in layers)
    chosen = LayerAllocation(segments, layers, slots)
    event_ms, closed_ms = steady_ms(one, chosen, 1), planned_s(one, chosen) / MS
    if equal:
        assert event_ms == pytest.approx(closed_ms)
    else:
        assert event_ms >= closed_ms - 1e-9


def better(one, what):
    """The same ring with a device or a link improved."""
    step = one.step
    if what == "memory":
        return one._replace(memory_bytes=(one.memory_bytes[0] + 150 * MB, *one.memory_bytes[1:]))
    if what == "disk":
        return one._replace(load_s=(one.load_s[0] / 2, *one.load_s[1:]))
    if what == "speed":
        layer_s = (step.layer_s[0] / 2, *step.layer_s[1:])
        return one._replace(step=step._replace(layer_s=layer_s))
    hops = tuple(HopTime(hop.transfer_s / 2) for hop in step.hops)
    return one._replace(step=step._replace(hops=hops, leave=hops[-1]))


@pytest.mark.parametrize("what", ["memory", "disk", "speed", "links"])
@pytest.mark.parametrize("seed", range(20))
def test_the_optimum_never_gets_worse_when_anything_gets_better(what, seed):
    one = drawn(seed)
    for segments in range(2, one.num_layers // one.size + 1):
        before, after = exact(one, segments), exact(better(one, what), segments)
        if before is not None:
            assert planned_s(better(one, what), after) <= planned_s(one, before) + 1e-12


def test_nothing_is_streamed_where_everything_fits():
    one = ring(8, (10 * MS, 20 * MS), (20 * MS, 40 * MS), (500 * MB, 300 * MB))
    placement = best_placement(one, "exact", 0, True, 1)
    assert placement.chosen.num_segments == 1 and placement.blocks == ((), ())
    assert isinstance(one, Ring)


def test_no_plan_where_the_slots_themselves_do_not_fit():
    assert best_placement(ring(9, (1, 1), (1, 1), (100 * MB, 100 * MB)), "exact", 4, True, 1) is None
    assert printed(ring(9, (1, 1), (1, 1), (50 * MB, 50 * MB)), 2) is None


def test_a_terminal_source_adds_the_way_in_and_the_way_out():
    step = EXAMPLE.step._replace(enter=HopTime(2 * MS), leave=HopTime(3 * MS), begin_s=4 * MS, end_s=5 * MS)
    stages = ((2, 2), (2, 2))
    times = event_model(stages, [(), ()], [0.0, 0.0], [step])
    assert times[0] / MS == pytest.approx(4 + 2 + 120 + 3 * 1 + 3 + 5)
    assert step.around_s(2) / MS == pytest.approx(2 + 3 * 1 + 3)


@pytest.mark.parametrize(("device", "front_ms", "idle_ms"), [(0, 0, 62), (0, 10, 52), (1, 20, 42)])
def test_a_device_s_slots_are_idle_while_others_compute_and_hidden_states_travel(device, front_ms, idle_ms):
    """Equation 2 by hand: a segment has two layers on either device, 2 · 10 + 2 · 20 ms, and two hops of
    1 ms; the device needs its slots until its streamed layers are computed.
    """
    assert idle_s(EXAMPLE.step, (4, 4), 2, device, front_ms * MS) / MS == pytest.approx(idle_ms)


def test_idle_time_counts_both_the_transfer_and_the_delay_of_every_hop():
    step = EXAMPLE.step._replace(hops=(HopTime(3 * MS, 4 * MS), HopTime(5 * MS, 6 * MS)))
    assert idle_s(step, (4, 4), 2, 0, 10 * MS) / MS == pytest.approx(60 - 10 + 3 + 4 + 5 + 6)


def test_hops_that_cover_a_load_keep_the_refinement_from_spending_memory():
    """A load of 100 ms is not covered by the 50 ms in which others compute; with 60 ms of hops it is."""

    def streams(hop_s):
        one = ring(8, (10 * MS, 20 * MS), (100 * MS, 0.0), (400 * MB, 400 * MB), hop_s=hop_s)
        return refine(one, LayerAllocation(2, (4, 4), (1, 0)))

    assert streams(0.0)[0] != ("layer",)
    assert streams(30 * MS)[0] == ("layer",)


def test_algorithm_1_is_asked_only_about_layers_that_are_left_over():
    ample = ring(4, (10 * MS, 20 * MS), (20 * MS, 40 * MS), (300 * MB, 300 * MB))
    assert allocate(ample, 2, "dp") == allocate(ample, 2, "printed") == exact(ample, 2)
    assert allocate(EXAMPLE, 2, "dp") == dynamic_program(EXAMPLE, 2)


def test_a_device_alone_has_all_layers():
    assert exact(ring(4, (10 * MS,), (20 * MS,), (400 * MB,)), 2) == LayerAllocation(2, (4,), (0,))
