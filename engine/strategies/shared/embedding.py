"""Embed tokens on every member of a tensor-parallel group, which then gets ids in place of hidden rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import HeldSlice, Placement, Slice
from engine.ops.tensors import Meta, payload_bytes
from engine.strategies.shared.all_reduce_time import HOP_S
from engine.strategies.shared.demand import Demand, SizedOp, hidden, prompt_ops
from engine.strategies.shared.messages import message_s

EmbeddingChoice = Literal["source", "members", "auto"]
"""The parameter `embedding`: who embeds tokens."""

EMBEDDING_HELP = (
    "Which devices embed tokens: the source, which sends hidden rows, or all members, which hold the table "
    "and get ids of 8 bytes; auto takes members where a token's rows take long to send and the table fits."
)
"""Description of the parameter `embedding`."""

TABLE = Slice(layer=-1, part="embed")


def check_choice(choice: EmbeddingChoice, model: ModelSpec) -> None:
    """Check that members are not to embed a picture, which only the source has; raises `PlanError`."""
    if choice == "members" and model.vision:
        raise PlanError(
            f"embedding is members and {model.name} reads pictures, which only the source has: choose source."
        )


def saved_s(cluster: ClusterSpec, model: ModelSpec, demand: Demand, group: Sequence[int]) -> float:
    """Seconds per token that the source's messages to the members take less with ids: its link sends them
    one after the other.
    """
    source = cluster.source_rank
    rows = payload_bytes(hidden(model, demand.batch, 1))
    ids = payload_bytes(Meta((demand.batch, 1), "int64"))
    return sum(
        message_s(cluster, source, peer, rows) - message_s(cluster, source, peer, ids) for peer in group
    )


def is_worth_a_table(cluster: ClusterSpec, model: ModelSpec, demand: Demand, group: Sequence[int]) -> bool:
    """Whether ids save as much time as a hop costs. Pure."""
    return not model.vision and saved_s(cluster, model, demand, group) >= HOP_S


def with_tables(placement: Placement, group: Sequence[int]) -> Placement:
    """`placement` with the table on every member. It remains the source's work, which the members repeat."""
    holders = {item.device for item in placement.holdings if item.slice == TABLE}
    more = (HeldSlice(device=rank, slice=TABLE) for rank in group if rank not in holders)
    return placement.model_copy(update={"holdings": (*placement.holdings, *more)})


def with_table_ops(
    ops: Mapping[int, Sequence[SizedOp]], model: ModelSpec, demand: Demand, group: Sequence[int]
) -> dict[int, list[SizedOp]]:
    """The largest operations of every device where all members embed, by rank. Pure."""
    more = prompt_ops(model, demand)
    return {rank: [*ones, *(more if rank in group else ())] for rank, ones in ops.items()}
