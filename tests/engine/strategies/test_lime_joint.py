"""LIME's joint choice of layers and streamed blocks against every plan that the memory allows."""

import random
from itertools import combinations, product

import pytest

from engine.strategies.lime.allocation import stages_of_segments
from engine.strategies.lime.blocks import blocks_of
from engine.strategies.lime.cost import HopTime, steady_step_s
from engine.strategies.lime.joint import Table
from engine.strategies.lime.placement import best_placement
from engine.strategies.lime.search import Search, few_segments, rings_of
from tests.support.lime_cases import MB, MS, compositions, ring

ATTENTION, FFN = 1 / 3, 2 / 3


def drawn(seed):
    draw = random.Random(seed)
    size = draw.randint(1, 3)
    num_layers = draw.randint(2 * size, 9)
    return ring(
        num_layers,
        [draw.randint(1, 9) * MS for _ in range(size)],
        [draw.randint(1, 30) * MS for _ in range(size)],
        [draw.randint(100, 100 * max(2, num_layers // size + 1)) * MB for _ in range(size)],
        hop_s=draw.randint(0, 3) * MS,
        kv_bytes=draw.choice((0.0, 7 * MB)),
    )


def streams_of(attention, ffn):
    whole = min(attention, ffn)
    return ("layer",) * whole + ("attention",) * (attention - whole) + ("ffn",) * (ffn - whole)


def busy_s(one, device, attention, ffn):
    """Computing up to the last streamed block, and loading all of them, by hand: attention takes a third."""
    if not attention and not ffn:
        return 0.0
    layer_s = one.step.layer_s[device]
    front_s = ffn * layer_s if ffn >= attention else (attention - 1) * layer_s + layer_s / 3
    return front_s + (attention * ATTENTION + ffn * FFN) * one.load_s[device]


def every_plan(one, whole_layers=False):
    """(segments, layers, streamed attention and feed-forward blocks per device) within the memory."""
    for segments in range(1, one.num_layers // one.size + 1):
        for layers in compositions(one.num_layers, one.size):
            if min(layers) < segments:
                continue
            choices = []
            for num, memory in zip(layers, one.memory_bytes, strict=True):
                most = num // segments if segments > 1 else 0
                choices.append(
                    [
                        (a, f)
                        for a, f in product(range(most + 1), repeat=2)
                        if (a == f or not whole_layers)
                        and num * (one.layer_bytes + one.kv_bytes)
                        - (segments - 1) * (a * ATTENTION + f * FFN) * one.layer_bytes
                        <= memory + 1e-3
                    ]
                )
            for streamed in product(*choices):
                yield segments, layers, streamed


def closed_form(one, segments, layers, streamed):
    compute_s = sum(num * layer_s for num, layer_s in zip(layers, one.step.layer_s, strict=True))
    through_s = compute_s + segments * sum(hop.total_s for hop in one.step.hops)
    loaders = [segments * busy_s(one, device, *blocks) for device, blocks in enumerate(streamed)]
    return max(through_s, *loaders)


def event_s(one, segments, layers, streamed, num_micro_batches):
    loads_s = [(a * ATTENTION + f * FFN) * one.load_s[i] for i, (a, f) in enumerate(streamed)]
    blocks = [blocks_of(streams_of(*each)) for each in streamed]
    return steady_step_s(stages_of_segments(layers, segments), blocks, loads_s, one.step, num_micro_batches)


def joint(one, num_micro_batches=1, fine_grained=True):
    search = Search(num_micro_batches, fine_grained)
    search.over([((0,), one)], few_segments)
    search.improve()
    return search.best.placement if search.best else None


@pytest.mark.parametrize("fine_grained", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_the_smallest_bound_is_that_of_every_plan_within_the_memory(seed, fine_grained):
    one = drawn(seed)
    best_s = min((closed_form(one, *plan) for plan in every_plan(one, not fine_grained)), default=None)
    tables = [Table(one, segments, 1, fine_grained) for segments in few_segments(one)]
    spreads = [spread for table in tables if (spread := table.best())]
    assert (best_s is None) == (not spreads)
    if spreads:
        assert min(spread.least_s for spread in spreads) == pytest.approx(best_s)


@pytest.mark.parametrize("num_micro_batches", [1, 3])
@pytest.mark.parametrize("seed", range(40))
def test_no_plan_is_faster_in_the_event_model(seed, num_micro_batches):
    """Stages of unequal sizes take longer than the bound by which spreads are chosen: 2 % at most is left."""
    one = drawn(seed)
    best_s = min((event_s(one, *plan, num_micro_batches) for plan in every_plan(one)), default=None)
    placement = joint(one, num_micro_batches)
    assert (best_s is None) == (placement is None)
    if placement:
        assert best_s - 1e-12 <= placement.step_s <= 1.02 * best_s


def test_half_layers_chosen_from_the_start_beat_whole_layers_promoted_afterwards():
    """The first device has room for three layers of 100 MB and 40 MB more, the second for five.

    A fourth layer on the first, with two segments, lacks 60 MB: streaming a feed-forward block of 67 MB
    takes 2 · (10 + 2/3 · 60) = 100 ms, covered by 4 · 10 + 4 · 20 + 4 = 124 ms for everything. A whole
    streamed layer takes 2 · (10 + 60) = 140 ms, so the paper's order streams nothing: 3 · 10 + 5 · 20 + 2.
    """
    one = ring(8, (10 * MS, 20 * MS), (60 * MS, 60 * MS), (340 * MB, 500 * MB))
    best, papers = joint(one), best_placement(one, "exact", 0, True, 1)
    assert best.streams == (("ffn",), ()) and best.chosen.layers == (4, 4)
    assert best.step_s / MS == pytest.approx(124)
    assert papers.chosen.layers == (3, 5) and papers.step_s / MS == pytest.approx(132)


@pytest.mark.parametrize("num_micro_batches", [1, 3])
@pytest.mark.parametrize("seed", range(60))
def test_the_joint_choice_is_never_slower_than_the_paper_s_order(seed, num_micro_batches):
    one = drawn(seed)
    papers = best_placement(one, "exact", 0, True, num_micro_batches)
    if papers is not None:
        assert joint(one, num_micro_batches).step_s <= 1.0001 * papers.step_s


def better(one, what):
    """The same ring with its first device or every link improved."""
    step = one.step
    if what == "memory":
        return one._replace(memory_bytes=(one.memory_bytes[0] + 150 * MB, *one.memory_bytes[1:]))
    if what == "disk":
        return one._replace(load_s=(one.load_s[0] / 2, *one.load_s[1:]))
    if what == "speed":
        halves = [(times[0] / 2, *times[1:]) for times in (step.layer_s, step.attention_s)]
        return one._replace(step=step._replace(layer_s=halves[0], attention_s=halves[1]))
    hops = tuple(HopTime(hop.transfer_s / 2) for hop in step.hops)
    return one._replace(step=step._replace(hops=hops, leave=hops[-1]))


@pytest.mark.parametrize("what", ["memory", "disk", "speed", "links"])
@pytest.mark.parametrize("seed", range(40))
def test_the_bound_never_gets_worse_when_anything_gets_better(seed, what):
    def least_s(ring):
        spreads = [Table(ring, segments, 2, True).best() for segments in few_segments(ring)]
        return min((spread.least_s for spread in spreads if spread), default=float("inf"))

    one = drawn(seed)
    assert least_s(better(one, what)) <= least_s(one) + 1e-12


def test_a_device_whose_layer_would_slow_down_the_ring_is_left_out():
    """Both devices together take 4 · 10 + 4 · 10 ms and two hops of 50 ms; the first alone takes 80 ms."""
    one = ring(8, (10 * MS, 10 * MS), (1 * MS, 1 * MS), (900 * MB, 900 * MB), hop_s=50 * MS)
    alone = one._replace(
        memory_bytes=one.memory_bytes[:1],
        load_s=one.load_s[:1],
        step=one.step._replace(
            layer_s=one.step.layer_s[:1],
            attention_s=one.step.attention_s[:1],
            hops=(HopTime(),),
            leave=HopTime(),
        ),
    )
    search = Search(1, True)
    search.over([((0, 1), one), ((0,), alone)], few_segments)
    assert search.best.ranks == (0,) and search.best.placement.step_s == pytest.approx(80 * MS)
    search = Search(3, True)  # three requests at once keep both devices busy
    slow = one._replace(step=one.step._replace(hops=(HopTime(0, 2 * MS),) * 2, leave=HopTime(0, 2 * MS)))
    search.over([((0, 1), slow), ((0,), alone)], few_segments)
    assert search.best.ranks == (0, 1)


@pytest.mark.parametrize("size", range(1, 7))
def test_every_subset_of_few_devices_is_a_ring(size):
    found = set(rings_of(dict.fromkeys(range(size), 1.0), dict.fromkeys(range(size), 1.0)))
    assert found == {ring for n in range(1, size + 1) for ring in combinations(range(size), n)}
