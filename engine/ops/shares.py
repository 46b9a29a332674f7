"""How much of its layer an operation computes: over all devices, a step adds up to all of it."""

from __future__ import annotations

from typing import Any

from engine.domain.model import ModelSpec
from engine.ops.core import Attention, Block, FeedForward, Norm, Residual
from engine.ops.heads import (
    Attend,
    Features,
    Importance,
    Join,
    Mix,
    Project,
    Recall,
    Regroup,
    Statistics,
    Weigh,
)
from engine.ops.kv_cache import DropRows, PutRows, TakeRows
from engine.ops.operation import Op
from engine.ops.positions import PositionBlock
from engine.ops.quantised import QuantisedBlock
from engine.ops.recompute import AttentionAgain
from engine.ops.summa import SummaActivate, SummaDown, SummaUp
from engine.ops.tensors import Meta
from engine.ops.tiles import Contract, Expand

Share = tuple[int, int]
"""Row-heads of attention, and row-columns × hidden units of the feed-forward part."""

NOTHING: Share = (0, 0)
AROUND = frozenset({
    Norm, Residual, Project, Join, Expand, SummaActivate, SummaDown, Recall, Regroup, Features, Importance,
    Weigh, Statistics, TakeRows, PutRows, DropRows,
})  # fmt: skip
"""Operations of layers beside those that are counted."""


def share_of(op: Op, inputs: tuple[Meta, ...], model: ModelSpec) -> Share | None:
    """What `op` computes of its layer; None if nobody knows: it is an operation of a package."""
    kind: Any = type(op)
    if op.layer < 0 or kind in AROUND:
        return NOTHING
    this: Any = op
    shape = inputs[0].shape
    hidden, columns = model.hidden_size, model.intermediate_size
    if kind in (Attend, Mix):
        return shape[0] * shape[1] * shape[2], 0
    rows = shape[0] * shape[1]
    if kind in (Block, QuantisedBlock):
        return rows * model.num_heads, rows * columns * hidden
    if kind is PositionBlock:
        some = shape[0] * (this.stop - this.start)
        return some * model.num_heads, some * columns * hidden
    if kind in (Attention, AttentionAgain):
        return rows * (this.stop - this.start), 0
    if kind in (FeedForward, Contract):
        return 0, rows * (this.stop - this.start) * hidden
    if kind is SummaUp:
        return 0, rows * (this.stop - this.start) * (this.last - this.first)
    return None
