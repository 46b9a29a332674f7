"""Collective operations over `ctx.send` and `ctx.recv`. All ranks of a group call them.

K is the group's size, z the bytes of the tensor. Sums run in ring or rank order, never in order of arrival,
and a sum is computed on one member and copied to the others, or on all in the same order, so results are
bit-identical on all devices.
All members know all sizes beforehand, so pieces without elements are not sent. `tag` must be unique to one
collective, because messages with the same sender and tag are matched in order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from itertools import accumulate
from typing import Any, Literal

from engine.ops.core import Add
from engine.ops.tensors import Tensor, concat, flatten, narrow, reshape, shape_of
from engine.program.ctx import Ctx

AllReduce = Literal["ring", "direct", "tree", "star"]
"""How `all_reduce` adds up."""
AllGather = Literal["direct", "ring"]
ReduceScatter = Literal["ring", "direct"]
Group = tuple[int, ...]
"""Ranks of the members of a collective, in order: the sums' order, too."""
Rows = Callable[[int], Awaitable[Tensor]]
"""Gives the addend of this member for the rows of member i, computed already or from the call on."""


async def all_reduce(ctx: Ctx, x: Tensor, group: Group, tag: str, algorithm: AllReduce = "ring") -> Tensor:
    """The sum of every member's `x` (equal shapes), on every member.

    ring    each member sends 2(K-1)/K·z if K divides the elements (chunks differ by one element else).
    direct  each member sends (K-1)·z, z to each other one, and adds all in the group's order: one hop.
    tree    each member but the root sends z up a binomial tree; all together (K-1)·z up, (K-1)·z down.
    star    each member sends z to the first, which adds in rank order and sends (K-1)·z back.
    """
    if len(group) == 1:
        return x
    ways = {"ring": _ring_sum, "direct": _direct_sum, "tree": _tree_sum, "star": _star_sum}
    return await ways[algorithm](ctx, x, group, tag)


async def all_gather(
    ctx: Ctx,
    shard: Tensor | None,
    sizes: Sequence[int],
    group: Group,
    tag: str,
    algorithm: AllGather = "direct",
    dim: int = 1,
) -> Tensor:
    """All members' shards one after the other along `dim`, on every member. Member i has `sizes[i]` rows.

    A member without rows gives None. Bytes of one row being r, N rows in all:
    direct  member i sends its shard to i+1, i+2, …: (K-1)·sizes[i]·r, and receives (N - sizes[i])·r.
    ring    member i passes on what it has: sends (N - sizes[i+1])·r, receives (N - sizes[i])·r.
    """
    if len(group) == 1:
        return shard
    shards = await {"direct": _direct_gather, "ring": _ring_gather}[algorithm](ctx, shard, sizes, group, tag)
    return concat([piece for piece in shards if piece is not None], dim)


async def reduce_scatter(
    ctx: Ctx, addends: Rows, sizes: Sequence[int], group: Group, tag: str, algorithm: ReduceScatter = "ring"
) -> Tensor | None:
    """The sum of all members' rows of member i, on member i, which has `sizes[i]` rows; None without rows.

    `addends(i)` is called once per member with rows, the farthest member first, while earlier results are
    being sent. Rows of member i are summed in the order i+1, i+2, …, i.
    ring    each member adds its own to what comes from the left: sends (N - sizes[i])·r.
    direct  each member sends its own to their owner, which adds: also (N - sizes[i])·r, in one hop.
    """
    scatter = {"ring": _ring_scatter, "direct": _direct_scatter}[algorithm]
    return await scatter(ctx, addends, sizes, group, tag)


def rows_in(x: Tensor, sizes: Sequence[int], dim: int = 1) -> Rows:
    """The members' rows of `x`, in turn along `dim` ([B, T, D] along 1): member i has `sizes[i]`."""
    bounds = tuple(accumulate(sizes, initial=0))
    return lambda member: _Ready(narrow(x, dim, bounds[member], bounds[member + 1]))


class _Ready:
    """An awaitable whose value is known already. Unlike a coroutine, it may stay unawaited."""

    def __init__(self, value: Tensor):
        self.value = value

    def __await__(self) -> Generator[Any, None, Tensor]:
        yield from ()
        return self.value


async def broadcast(ctx: Ctx, x: Tensor | None, root: int, group: Group, tag: str) -> Tensor:
    """`root`'s `x`, of any shape, on every member; others give None. The root need not be one; it sends z to
    each other member in turn.
    """
    if ctx.rank != root:
        return await ctx.recv(root, tag)
    for peer in group:
        if peer != root:
            ctx.send(x, peer, tag)
    return x


async def gather(
    ctx: Ctx, shard: Tensor | None, sizes: Sequence[int], root: int, group: Group, tag: str, dim: int = 1
) -> Tensor | None:
    """All members' shards ([B, T, D] along 1) one after the other along `dim`, on `root` alone, which need
    not be a member.

    Each other member with rows sends its shard once; they return None.
    """
    if ctx.rank != root:
        if shard is not None:
            ctx.send(shard, root, tag)
        return None
    started = [
        (peer, ctx.recv(peer, tag)) for peer, size in zip(group, sizes, strict=True) if size and peer != root
    ]
    pieces = {peer: await handle for peer, handle in started}
    if shard is not None:
        pieces[root] = shard
    return concat([pieces[peer] for peer in group if peer in pieces], dim)


def chunk_bounds(elements: int, chunks: int) -> tuple[int, ...]:
    """Half-open bounds of `chunks` pieces of `elements` that differ by one element at most; some may be
    empty.
    """
    return tuple(elements * index // chunks for index in range(chunks + 1))


async def _ring_sum(ctx: Ctx, x: Tensor, group: Group, tag: str) -> Tensor:
    """Reduce-scatter around the ring, then all-gather around it: 2(K-1) steps.

    Chunk c is summed in the order c, c+1, …, and ends complete on member c-1.
    """
    size, me = len(group), group.index(ctx.rank)
    right, left = group[(me + 1) % size], group[(me - 1) % size]
    flat = flatten(x)
    bounds = chunk_bounds(shape_of(flat)[0], size)
    widths = [bounds[i + 1] - bounds[i] for i in range(size)]
    chunks = [narrow(flat, 0, bounds[i], bounds[i + 1]) for i in range(size)]
    for first, adds in ((me, True), (me + 1, False)):
        for step in range(size - 1):
            outgoing, incoming = (first - step) % size, (first - step - 1) % size
            if widths[outgoing]:
                ctx.send(chunks[outgoing], right, tag)
            if widths[incoming]:
                received = await ctx.recv(left, tag)
                chunks[incoming] = await ctx.compute(Add(), received, chunks[incoming]) if adds else received
    return reshape(concat(chunks, 0), shape_of(x))


async def _direct_sum(ctx: Ctx, x: Tensor, group: Group, tag: str) -> Tensor:
    for peer in group:
        if peer != ctx.rank:
            ctx.send(x, peer, tag)
    started = [None if peer == ctx.rank else ctx.recv(peer, tag) for peer in group]
    total = None
    for handle in started:
        addend = x if handle is None else await handle
        total = addend if total is None else await ctx.compute(Add(), total, addend)
    return total


async def _star_sum(ctx: Ctx, x: Tensor, group: Group, tag: str) -> Tensor:
    root, others = group[0], group[1:]
    if ctx.rank != root:
        ctx.send(x, root, tag)
        return await ctx.recv(root, tag)
    for handle in [ctx.recv(peer, tag) for peer in others]:
        x = await ctx.compute(Add(), x, await handle)
    for peer in others:
        ctx.send(x, peer, tag)
    return x


async def _tree_sum(ctx: Ctx, x: Tensor, group: Group, tag: str) -> Tensor:
    """Binomial tree with its root at the first member: up in steps of 1, 2, 4, …, down the same way."""
    size, me = len(group), group.index(ctx.rank)
    distance = 1
    while distance < size and not me & distance:
        if me + distance < size:
            x = await ctx.compute(Add(), x, await ctx.recv(group[me + distance], tag))
        distance *= 2
    if me:
        ctx.send(x, group[me - distance], tag)
        x = await ctx.recv(group[me - distance], tag)
    while distance > 1:
        distance //= 2
        if me + distance < size:
            ctx.send(x, group[me + distance], tag)
    return x


async def _direct_gather(
    ctx: Ctx, shard: Tensor | None, sizes: Sequence[int], group: Group, tag: str
) -> list[Tensor | None]:
    size, me = len(group), group.index(ctx.rank)
    if shard is not None:
        for step in range(1, size):
            ctx.send(shard, group[(me + step) % size], tag)
    started = [
        ctx.recv(peer, tag) if rows and peer != ctx.rank else None
        for peer, rows in zip(group, sizes, strict=True)
    ]
    shards = [None if handle is None else await handle for handle in started]
    shards[me] = shard
    return shards


async def _ring_gather(
    ctx: Ctx, shard: Tensor | None, sizes: Sequence[int], group: Group, tag: str
) -> list[Tensor | None]:
    shards: list[Tensor | None] = [None] * len(group)
    await ring_gather(ctx, shard, sizes, group, tag, shards.__setitem__)
    return shards


async def ring_gather(
    ctx: Ctx,
    shard: Tensor | None,
    sizes: Sequence[int],
    group: Group,
    tag: str,
    arrived: Callable[[int, Tensor], None],
) -> None:
    """Pass all members' shards [B, rows, D] around the ring; calls `arrived(i, shard)` for each, the own one
    first.
    """
    size, me = len(group), group.index(ctx.rank)
    right, left = group[(me + 1) % size], group[(me - 1) % size]
    for step in range(size):
        owner = (me - step) % size
        if not sizes[owner]:
            continue
        if step:
            shard = await ctx.recv(left, tag)
        if step < size - 1:
            ctx.send(shard, right, tag)
        arrived(owner, shard)


async def _ring_scatter(
    ctx: Ctx, addends: Rows, sizes: Sequence[int], group: Group, tag: str
) -> Tensor | None:
    size, me = len(group), group.index(ctx.rank)
    right, left = group[(me + 1) % size], group[(me - 1) % size]
    total = None
    for step in range(size):
        owner = (me - 1 - step) % size
        if not sizes[owner]:
            continue
        addend = addends(owner)
        if step:
            received = await ctx.recv(left, tag)
            total = await ctx.compute(Add(), received, await addend)
        else:
            total = await addend
        if owner != me:
            ctx.send(total, right, tag)
    return total if sizes[me] else None


async def _direct_scatter(
    ctx: Ctx, addends: Rows, sizes: Sequence[int], group: Group, tag: str
) -> Tensor | None:
    size, me = len(group), group.index(ctx.rank)
    for step in range(size - 1):
        owner = (me - 1 - step) % size
        if sizes[owner]:
            ctx.send(await addends(owner), group[owner], tag)
    if not sizes[me]:
        return None
    total, mine = None, addends(me)
    for handle in [ctx.recv(group[(me + step) % size], tag) for step in range(1, size)]:
        received = await handle
        total = received if total is None else await ctx.compute(Add(), total, received)
    return await mine if total is None else await ctx.compute(Add(), total, await mine)
