"""Run one forward pass of Voltage (Hu, Li, ICDCS 2024, Algorithms 1 and 2), also with a changing partition.

Every device computes its rows of each layer; an all-gather follows each layer except the last, whose rows are
sent to the source. The source sends the input to one device after the other (the paper's "broadcast").

All devices have all rows, so the partition may change before any layer. Before the first layer the source
decides, before the others the leader, which is the first device with rows. The new bounds travel as a note on
messages that all devices receive anyway: the input, and the leader's rows.
"""

from __future__ import annotations

from engine.domain.plan import Plan
from engine.ops.tensors import Tensor, concat, narrow
from engine.program.collectives import all_gather, broadcast, gather
from engine.program.ctx import Ctx, Note
from engine.program.strategy import Step
from engine.strategies.shared.ends import cache_of, tag
from engine.strategies.voltage.layout import PositionsLayout
from engine.strategies.voltage.partition import Partition


async def forward_pass(ctx: Ctx, plan: Plan[PositionsLayout], step: Step, x: Tensor | None) -> Tensor | None:
    """One pass from the input [B, N, D] at the source to the last layer's rows there: all, or only the needed
    one.
    """
    partition = Partition(ctx, plan, step.start + step.rows, step.batch)
    source, group, last = ctx.cluster.source_rank, partition.group, ctx.model.num_layers - 1
    if ctx.rank not in group and ctx.rank != source:
        return None
    if partition.renews:
        x = await _noted_input(ctx, partition, x, tag(step, "input"))
    else:
        x = await broadcast(ctx, x, source, group, tag(step, "input"))
    rows = None
    if ctx.rank in group:
        cache = cache_of(step) if ctx.rank == plan.layout.owner else None
        for layer in range(last):
            rows = await _own_rows(ctx, partition, layer, cache, x)
            x = await _all_rows(ctx, plan, partition, layer, rows, tag(step, "rows", layer))
        partition.end()
        rows = await _own_rows(ctx, partition, last, cache, x)
    if partition.renews:
        return await _noted_output(ctx, partition, rows, tag(step, "rows", last))
    if ctx.rank not in group:
        partition.end()
    return await gather(ctx, rows, partition.sizes, source, group, tag(step, "rows", last))


async def _own_rows(
    ctx: Ctx, partition: Partition, layer: int, cache: str | None, x: Tensor
) -> Tensor | None:
    """The rows of this device of the layer's output; None if it has no rows. A leader without rows returns an
    empty tensor, because it sends one with a note.
    """
    shard = partition.shards[partition.group.index(ctx.rank)]
    if shard.size or cache:  # a decode owner without rows still fills its KV cache
        rows = await ctx.compute(shard.op(layer, cache), x)
    if shard.size:
        return rows
    return narrow(x, 1, 0, 0) if partition.renews and ctx.rank == partition.leader else None


async def _all_rows(
    ctx: Ctx, plan: Plan[PositionsLayout], partition: Partition, layer: int, rows: Tensor | None, name: str
) -> Tensor:
    """The all-gather after a layer; a causal one leaves out the rows that this device does not need."""
    if partition.renews:
        return await _noted_gather(ctx, partition, layer, rows, name)
    if plan.layout.gather == "causal":
        return await _causal_gather(ctx, partition, rows, name)
    return await all_gather(ctx, rows, partition.sizes, partition.group, name, plan.layout.gather)


async def _causal_gather(ctx: Ctx, partition: Partition, rows: Tensor | None, name: str) -> Tensor | None:
    """Every device with rows sends them to the devices with later rows only."""
    sharers = [shard.device for shard in partition.shards if shard.size]
    if rows is None:
        return None
    me = sharers.index(ctx.rank)
    for peer in sharers[me + 1 :]:
        ctx.send(rows, peer, name)
    started = [ctx.recv(peer, name) for peer in sharers[:me]]
    return concat([*[await handle for handle in started], rows], 1)


async def _noted_input(ctx: Ctx, partition: Partition, x: Tensor | None, name: str) -> Tensor:
    """Send the source's input to every device, with new bounds if there are any."""
    source = ctx.cluster.source_rank
    if ctx.rank != source:
        note, x = await ctx.recv_noted(source, name)
    else:
        note = partition.decide(0)
        for peer in partition.group:
            if peer != source:
                ctx.send(x, peer, name, note)
    partition.adopt(note)
    partition.lead()
    return x


async def _noted_gather(ctx: Ctx, partition: Partition, layer: int, rows: Tensor | None, name: str) -> Tensor:
    """The direct all-gather. The leader adds the bounds of the next layer as a note."""
    group, leader = partition.group, partition.leader
    me = group.index(ctx.rank)
    note: Note = partition.decide(layer + 1) if ctx.rank == leader else ()
    if rows is not None:
        for step in range(1, len(group)):
            ctx.send(rows, group[(me + step) % len(group)], name, note)
    started = {peer: ctx.recv_noted(peer, name) for peer in partition.senders if peer != ctx.rank}
    shards = {} if rows is None else {ctx.rank: rows}
    for peer, handle in started.items():
        received, shards[peer] = await handle
        note = note or received
    partition.adopt(note)
    return concat([shards[peer] for peer in partition.group if peer in shards], 1)


async def _noted_output(ctx: Ctx, partition: Partition, rows: Tensor | None, name: str) -> Tensor | None:
    """The last layer's rows at the source. A source that computes nothing reads from the leader's note which
    devices have rows.
    """
    source, leader = ctx.cluster.source_rank, partition.leader
    outside = source not in partition.group
    if ctx.rank != source:
        if rows is not None:
            ctx.send(rows, source, name, partition.bounds_note if outside and ctx.rank == leader else ())
        return None
    shards = {} if rows is None else {source: rows}
    if outside:
        note, shards[leader] = await ctx.recv_noted(leader, name)
        partition.adopt(note)
        partition.end()
    others = [peer for peer in partition.senders if peer not in (*shards, source)]
    started = {peer: ctx.recv(peer, name) for peer in others}
    for peer, handle in started.items():
        shards[peer] = await handle
    return concat([shards[peer] for peer in partition.group if peer in shards], 1)
