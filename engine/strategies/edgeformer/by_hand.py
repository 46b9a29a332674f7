"""Plans of EdgeFormer made by hand: who owns which blocks, who helps whom, and with how many heads. Pure."""

from __future__ import annotations

from engine.domain.by_hand import DeviceShare, PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.strategies.edgeformer.layout import HeadsLayout
from engine.strategies.edgeformer.memory import HeadRooms
from engine.strategies.shared.by_hand import workers_of

Lenders = tuple[tuple[int, ...], ...]


def rooms_by_hand(name: str, cluster: ClusterSpec, rooms: HeadRooms, plan: PlanByHand) -> HeadRooms:
    """The rooms with the lent heads of the plan as limits; a device that it does not name lends none.

    Raises `PlanError` for more heads than a device has memory for.
    """
    lent = [0] * len(cluster.devices)
    for share in plan.devices:
        (rank,) = workers_of(name, cluster, [share.device])
        if share.lent_heads > rooms.lent[rank]:
            raise PlanError(
                f"{name}: {share.device} has memory for {rooms.lent[rank]} heads of other devices' blocks, "
                f"and the plan made by hand wants {share.lent_heads}: give it fewer lent_heads."
            )
        lent[rank] = share.lent_heads
    return rooms._replace(lent=tuple(lent))


def helpers_by_hand(name: str, cluster: ClusterSpec, lenders: Lenders, plan: PlanByHand) -> Lenders:
    """The lenders of each device by rank, where the plan names its helpers; else those chosen."""
    found = list(lenders)
    for share in plan.devices:
        if share.helpers is None:
            continue
        rank = cluster.rank(share.device)
        helpers = workers_of(name, cluster, share.helpers)
        if (helpers and not share.layers) or rank in helpers:
            raise PlanError(
                f"{name}: {share.device} has no layers of its own, or is its own helper, in the plan made by "
                "hand: name other devices as helpers of a device with layers."
            )
        found[rank] = tuple(sorted(set(helpers)))
    return tuple(found)


def of_heads(cluster: ClusterSpec, layout: HeadsLayout) -> PlanByHand:
    """Owners in the order of their blocks, then the other workers."""
    layers = {rank: stop - start for rank, start, stop in layout.blocks}
    others = [rank for rank in layout.workers if rank not in layers]

    def names(ranks: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(cluster.devices[rank].name for rank in ranks)

    return PlanByHand(
        devices=tuple(
            DeviceShare(
                device=cluster.devices[rank].name,
                layers=layers.get(rank, 0),
                lent_heads=layout.lent_heads[rank],
                helpers=names(layout.lenders[rank]) if rank in layers else None,
            )
            for rank in (*layers, *others)
        )
    )
