"""What EdgeFormer's decisions depend on at the moment: the devices that may attend heads, and the
deadline.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from engine.domain.cluster import ClusterSpec
from engine.program.ctx import Ctx
from engine.strategies.edgeformer.allocation import Site, even_split
from engine.strategies.edgeformer.costs import AttentionRows, deadline_s, sites_of
from engine.strategies.edgeformer.state import OwnerState
from engine.strategies.edgeformer.transfers import Transfer


def neighbours_of(ctx: Ctx, state: OwnerState) -> list[int]:
    """Ranks of the workers that may attend heads of this owner and are present."""
    now = ctx.cluster_now.workers
    return [rank for rank in state.lenders[ctx.rank] if rank in now and rank not in ctx.failed]


def sites_now(ctx: Ctx, state: OwnerState, rows: AttentionRows) -> tuple[Site, ...]:
    """The devices that may attend heads of these rows, with their present costs; this one first."""
    now, failed, before = ctx.cluster_now, ctx.failed, state.conditions
    if before is None or before[0] is not now or before[1] != failed:
        state.sites.clear()
        state.conditions = (now, failed)
        state.transfers.forget()
    if rows not in state.sites:
        slowdowns = state.transfers.slowdowns()
        state.sites[rows] = _sites_in(ctx, state, now, neighbours_of(ctx, state), rows, slowdowns)
    return state.sites[rows]


def learn_transfers(ctx: Ctx, state: OwnerState, transfers: Sequence[Transfer]) -> None:
    """Take measured transfers into account from the next block on."""
    before = state.transfers.slowdowns()
    for transfer in transfers:
        state.transfers.observe(transfer)
    now = state.transfers.slowdowns()
    if now != before:
        state.sites.clear()
        names = {ctx.cluster.devices[rank].name: round(factor, 3) for rank, factor in now.items()}
        ctx.mark("transfers_changed", owner=ctx.rank, slowdowns=names)


def block_deadline_s(ctx: Ctx, state: OwnerState, rows: AttentionRows) -> float:
    """T_max of a block with these rows. A ratio refers to the cluster without disturbances."""
    if rows not in state.deadlines_s:
        nominal = _sites_in(ctx, state, ctx.cluster, state.lenders[ctx.rank], rows)
        state.deadlines_s[rows] = deadline_s(
            state.params.t_max_mode,
            state.params.t_max,
            ctx.model.num_layers,
            nominal,
            ctx.model.num_heads,
            split_of(ctx, state, state.workers),
        )
    return state.deadlines_s[rows]


def split_of(ctx: Ctx, state: OwnerState, there: Collection[int]) -> tuple[int, ...] | None:
    """The fixed rank of every head with static scheduling, among the ranks `there`; else None."""
    if state.params.scheduling == "dynamic":
        return None
    return even_split(ctx.model.num_heads, [rank for rank in state.workers if rank in there])


def _sites_in(
    ctx: Ctx,
    state: OwnerState,
    cluster: ClusterSpec,
    neighbours: Sequence[int],
    rows: AttentionRows,
    slowdowns: Mapping[int, float] = MappingProxyType({}),
) -> tuple[Site, ...]:
    rooms = state.rooms
    return sites_of(
        cluster,
        ctx.model,
        ctx.rank,
        neighbours,
        rooms.own[ctx.rank],
        rooms.lent,
        rows,
        state.params.cost_model,
        slowdowns,
    )
