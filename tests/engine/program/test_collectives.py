"""Collectives on real tensors: right, bit-identical everywhere, and with the stated bytes."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.program.collectives import (
    all_gather,
    all_reduce,
    broadcast,
    chunk_bounds,
    gather,
    reduce_scatter,
    rows_in,
)
from tests.support.memory_world import MemoryWorld
from tests.support.small_cases import GPT2, star

CLUSTER = star([1e10] * 7)


def together(program, group, seed=0):
    """`program(ctx)` on every rank of `group`: results by rank, and the world."""
    world = MemoryWorld(CLUSTER, GPT2, seed)
    results = world.run([(rank, program(world.devices[rank])) for rank in group])
    return dict(zip(group, results, strict=True)), world


def sent_bytes(world, rank):
    return sum(size for (src, _), sent in world.sent.items() if src == rank for _, size in sent)


groups = st.permutations(range(7)).flatmap(lambda ranks: st.integers(1, 7).map(lambda k: tuple(ranks[:k])))


@settings(max_examples=60, deadline=None)
@given(groups, st.integers(1, 40), st.sampled_from(["ring", "direct", "tree", "star"]), st.integers(0, 9))
def test_all_reduce_gives_every_member_the_same_bits_of_the_sum(group, elements, algorithm, seed):
    torch.manual_seed(elements)
    values = {rank: torch.randn(1, 1, elements) for rank in group}
    results, _ = together(lambda ctx: all_reduce(ctx, values[ctx.rank], group, "t", algorithm), group, seed)
    torch.testing.assert_close(results[group[0]], torch.stack([*values.values()]).sum(0))
    again, _ = together(lambda ctx: all_reduce(ctx, values[ctx.rank], group, "t", algorithm), group, seed + 1)
    for rank in group:
        assert torch.equal(results[rank], results[group[0]])
        assert torch.equal(results[rank], again[rank]), "the order of arrival changed the sum"


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_ring_all_reduce_sends_two_times_k_minus_1_over_k_of_the_tensor(size):
    group = tuple(range(size))
    x = torch.ones(1, 3, 4 * size)
    _, world = together(lambda ctx: all_reduce(ctx, x, group, "t", "ring"), group)
    for rank in group:
        assert sent_bytes(world, rank) == 2 * (size - 1) * x.numel() * 4 // size


@pytest.mark.parametrize("size", [2, 3, 7])
def test_direct_all_reduce_sends_the_tensor_to_each_other_member_once(size):
    group, x = tuple(range(size)), torch.ones(1, 3, 8)
    _, world = together(lambda ctx: all_reduce(ctx, x, group, "t", "direct"), group)
    assert all(sent_bytes(world, rank) == (size - 1) * 96 for rank in group)
    assert all(len(sent) == 1 for sent in world.sent.values())


def test_star_all_reduce_sends_one_tensor_up_and_k_minus_1_down():
    group, x = (4, 0, 2, 5), torch.ones(1, 3, 8)
    _, world = together(lambda ctx: all_reduce(ctx, x, group, "t", "star"), group)
    assert [sent_bytes(world, rank) for rank in group] == [3 * 96, 96, 96, 96]


@pytest.mark.parametrize("size", [2, 5, 6, 7])
def test_tree_all_reduce_sends_k_minus_1_tensors_up_and_as_many_down(size):
    group, x = tuple(range(size)), torch.ones(1, 3, 8)
    _, world = together(lambda ctx: all_reduce(ctx, x, group, "t", "tree"), group)
    assert sum(sent_bytes(world, rank) for rank in group) == 2 * (size - 1) * 96


def test_a_ring_of_more_members_than_elements_sends_no_empty_chunks():
    group, x = tuple(range(7)), torch.ones(1, 1, 3)
    results, world = together(lambda ctx: all_reduce(ctx, x, group, "t", "ring"), group)
    assert torch.equal(results[6], 7 * x)
    assert all(size for sent in world.sent.values() for _, size in sent)


@settings(max_examples=60, deadline=None)
@given(groups, st.lists(st.integers(0, 4), min_size=7, max_size=7), st.sampled_from(["direct", "ring"]))
def test_all_gather_puts_uneven_and_empty_shards_in_order(group, sizes, algorithm):
    sizes = sizes[: len(group)]
    if not sum(sizes):
        sizes[-1] = 2
    whole = torch.arange(sum(sizes) * 6.0).reshape(1, -1, 6).repeat(2, 1, 1)
    shards = dict(zip(group, whole.split(sizes, dim=1), strict=True))

    def program(ctx):
        shard = shards[ctx.rank]
        return all_gather(ctx, shard if shard.shape[1] else None, sizes, group, "t", algorithm)

    results, world = together(program, group)
    row_bytes, members = 2 * 6 * 4, len(group)
    for place, rank in enumerate(group):
        assert torch.equal(results[rank], whole)
        ring = sum(sizes) - sizes[(place + 1) % members]
        rows = (members - 1) * sizes[place] if algorithm == "direct" else ring
        assert sent_bytes(world, rank) == (rows * row_bytes if members > 1 else 0)


@pytest.mark.parametrize("root", [1, 6])
def test_gather_and_broadcast_work_with_a_root_inside_or_outside_the_group(root):
    group, sizes = (3, 1, 5), [2, 0, 3]
    whole = torch.arange(30.0).reshape(1, 5, 6)
    shards = dict(zip(group, whole.split(sizes, dim=1), strict=True))

    async def program(ctx):
        shard = shards.get(ctx.rank)
        shard = shard if shard is not None and shard.shape[1] else None
        joined = await gather(ctx, shard, sizes, root, group, "g")
        return await broadcast(ctx, joined, root, group, "b")

    results, _ = together(program, tuple({*group, root}))
    assert all(torch.equal(result, whole) for result in results.values())


@given(st.integers(0, 100), st.integers(1, 12))
def test_chunks_cover_all_elements_and_differ_by_one_at_most(elements, chunks):
    bounds = chunk_bounds(elements, chunks)
    widths = [b - a for a, b in pairwise(bounds)]
    assert bounds[0] == 0 and bounds[-1] == elements
    assert max(widths) - min(widths) <= 1


def ring_order(rows, group, owner):
    """The sum of one member's rows in the order that both algorithms promise."""
    total = rows[group[(owner + 1) % len(group)]]
    for step in range(2, len(group) + 1):
        total = total + rows[group[(owner + step) % len(group)]]
    return total


@settings(max_examples=60, deadline=None)
@given(
    groups,
    st.lists(st.integers(0, 4), min_size=7, max_size=7),
    st.sampled_from(["direct", "ring"]),
    st.integers(0, 9),
)
def test_reduce_scatter_gives_each_member_its_rows_of_the_sum_in_ring_order(group, sizes, algorithm, seed):
    sizes = sizes[: len(group)]
    bounds = [sum(sizes[:i]) for i in range(len(group) + 1)]
    values = {rank: torch.randn(2, bounds[-1], 3) for rank in group}

    def program(ctx):
        return reduce_scatter(ctx, rows_in(values[ctx.rank], sizes), sizes, group, "t", algorithm)

    results, world = together(program, group, seed)
    for i, rank in enumerate(group):
        if not sizes[i]:
            assert results[rank] is None
            continue
        rows = {peer: value[:, bounds[i] : bounds[i + 1]] for peer, value in values.items()}
        assert torch.equal(results[rank], ring_order(rows, group, i) if len(group) > 1 else rows[rank])
        sent = (bounds[-1] - sizes[i]) * 2 * 3 * 4 if len(group) > 1 else 0
        assert sent_bytes(world, rank) == sent
