"""Plans divided by hand: how many layers, heads and columns, or positions each device gets. Pure.

Such a division is a parameter of the strategies that can run any one; it passes the same checks of cover and
of memory as one that the strategy chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from pydantic import Field, field_validator

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement, Plan
from engine.domain.values import Count, Name, Value
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.pipeline import StagesLayout
from engine.strategies.shared.shares import bounds_of
from engine.strategies.shared.stages import Stage, all_rooms, consecutive
from engine.strategies.shared.tensor_parallel import Bounds, ShareLayout
from engine.strategies.voltage.layout import PositionsLayout

HELP = "A division made by hand, in place of the strategy's own; empty: the strategy divides."
NOT_BY_HAND = (
    "its plan cannot be divided by hand: more than the shares of its devices follows from its rules."
)


class StageShare(Value):
    """So many consecutive layers on `device`."""

    device: Name
    layers: Count


class MemberShare(Value):
    """So many query heads and feed-forward columns of every layer on `device`."""

    device: Name
    heads: Count
    columns: Count


class RowShare(Value):
    """`device` gets positions in proportion to `rows`."""

    device: Name
    rows: Count


class StagesByHand(Value):
    """Stages in the order of computation."""

    kind: Literal["stages"] = "stages"
    stages: tuple[StageShare, ...] = Field(min_length=1)

    @field_validator("stages")
    @classmethod
    def _once(cls, shares: tuple[StageShare, ...]) -> tuple[StageShare, ...]:
        return named_once(shares)


class SharesByHand(Value):
    """Shares of every layer, in the order of the devices' ranks."""

    kind: Literal["shares"] = "shares"
    shares: tuple[MemberShare, ...] = Field(min_length=1)

    @field_validator("shares")
    @classmethod
    def _once(cls, shares: tuple[MemberShare, ...]) -> tuple[MemberShare, ...]:
        return named_once(shares)


class PositionsByHand(Value):
    """Shares of the positions; rows are weights, so that the division holds for prompts of any length."""

    kind: Literal["positions"] = "positions"
    positions: tuple[RowShare, ...] = Field(min_length=1)

    @field_validator("positions")
    @classmethod
    def _once(cls, shares: tuple[RowShare, ...]) -> tuple[RowShare, ...]:
        return named_once(shares)


ByHand = StagesByHand | SharesByHand | PositionsByHand


Share = TypeVar("Share", StageShare, MemberShare, RowShare)


def named_once(shares: tuple[Share, ...]) -> tuple[Share, ...]:
    names = [share.device for share in shares]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is named twice: give each device one share")
    return shares


def stages_by_hand(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement, plan: StagesByHand
) -> tuple[Stage, ...]:
    """Raises `PlanError` if the layers are not all layers, or too many for a device, or the source has layers
    but not the first.
    """
    name, given = ends.strategy, [share for share in plan.stages if share.layers]
    _check_total(name, "layers", sum(share.layers for share in given), model.num_layers, model)
    rooms = {room.rank: room for room in all_rooms(cluster, model, demand, ends)}
    ranks = _workers(name, cluster, [share.device for share in given])
    if cluster.source_rank in ranks[1:]:
        raise PlanError(
            f"{name}: {cluster.source} is the source and has layers that are not the first: put its "
            "stage first."
        )
    for rank, share in zip(ranks, given, strict=True):
        if share.layers > rooms[rank].layers:
            raise PlanError(
                f"{name}: {share.device} has memory for {rooms[rank].layers} layers, and the plan made by "
                f"hand gives it {share.layers}: give it fewer."
            )
    return consecutive(ranks, [share.layers for share in given])


def bounds_by_hand(name: str, cluster: ClusterSpec, model: ModelSpec, plan: SharesByHand) -> Bounds:
    """Raises `PlanError` if heads or columns are not all there are."""
    given = sorted(plan.shares, key=lambda share: cluster.rank(share.device))
    given = [share for share in given if share.heads or share.columns]
    _check_total(name, "attention heads", sum(share.heads for share in given), model.num_heads, model)
    columns = sum(share.columns for share in given)
    _check_total(name, "feed-forward columns", columns, model.intermediate_size, model)
    return Bounds(
        _workers(name, cluster, [share.device for share in given]),
        bounds_of([share.heads for share in given]),
        bounds_of([share.columns for share in given]),
    )


def ratios_by_hand(
    name: str, cluster: ClusterSpec, plan: PositionsByHand
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Ranks, and their shares of the positions. Raises `PlanError` if no device gets any."""
    total = sum(share.rows for share in plan.positions)
    if not total:
        raise PlanError(f"{name}: the plan made by hand gives no device any position: give one device some.")
    given = sorted(plan.positions, key=lambda share: cluster.rank(share.device))
    ranks = _workers(name, cluster, [share.device for share in given])
    return ranks, tuple(share.rows / total for share in given)


def division_of(plan: Plan, cluster: ClusterSpec) -> ByHand:
    """The division of a plan as one could have made it by hand.

    Raises `PlanError` for a plan that has more to it than its devices' shares.
    """
    layout, names = plan.layout, [device.name for device in cluster.devices]
    if isinstance(layout, StagesLayout):
        stages = [StageShare(device=names[one.device], layers=one.num_layers) for one in layout.stages]
        return StagesByHand(stages=tuple(stages))
    if isinstance(layout, ShareLayout):
        members = [
            MemberShare(
                device=names[rank],
                heads=layout.heads[i + 1] - layout.heads[i],
                columns=layout.columns[i + 1] - layout.columns[i],
            )
            for i, rank in enumerate(layout.group)
        ]
        return SharesByHand(shares=tuple(members))
    if isinstance(layout, PositionsLayout):
        rows = [RowShare(device=names[shard.device], rows=shard.size) for shard in layout.shards]
        return PositionsByHand(positions=tuple(rows))
    raise PlanError(f"{plan.strategy}: {NOT_BY_HAND}")


def _workers(name: str, cluster: ClusterSpec, devices: Sequence[str]) -> tuple[int, ...]:
    ranks = tuple(cluster.rank(device) for device in devices)
    for rank, device in zip(ranks, devices, strict=True):
        if rank not in cluster.workers:
            raise PlanError(f"{name}: {device} computes nothing, and the plan made by hand gives it a share.")
    return ranks


def _check_total(name: str, what: str, given: int, whole: int, model: ModelSpec) -> None:
    if given != whole:
        raise PlanError(
            f"{name}: the plan made by hand divides {given} {what}, and {model.name} has {whole}: give every "
            "one to one device."
        )
