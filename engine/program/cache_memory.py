"""How much memory a plan leaves each device for KV caches. Pure."""

from __future__ import annotations

from math import inf

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, Plan
from engine.ops.core import Attention, FeedForward, Head
from engine.ops.layout import kv_heads
from engine.ops.ledger import Ledger, working_bytes
from engine.ops.operation import Op
from engine.ops.sizes import kv_bytes_per_row
from engine.ops.tensors import Meta, payload_bytes
from engine.schedulers.scheduler import DeviceMemory


def cache_memory(
    cluster: ClusterSpec, model: ModelSpec, plan: Plan, batch: int, rows: int, cached: int
) -> tuple[DeviceMemory, ...]:
    """The room for KV caches on every device with weights, beside these and the largest operation of a step:
    on `rows` rows of each of `batch` sequences that have `cached` rows in their caches.
    """
    found = []
    for rank in sorted({item.device for item in plan.holdings}):
        ledger = Ledger("", inf, model)
        for piece in plan.held_by(rank):
            ledger.load(piece)
        work = [item for item in plan.work if item.device == rank]
        working = max((_working(model, item, batch, rows, cached) for item in work), default=0)
        device = cluster.devices[rank]
        left = int(device.usable_bytes) - ledger.weights_bytes - working
        row_bytes = sum(_row_bytes(model, item) for item in work if item.phase != "prefill")
        found.append(DeviceMemory(device.name, max(0, left), row_bytes))
    return tuple(found)


def _row_bytes(model: ModelSpec, item: ComputedSlice) -> int:
    """Bytes that a token adds to the KV cache of one layer on one device."""
    if item.slice.part != "attention":
        return 0
    start, stop = _range(item, model.num_heads)
    first, last = kv_heads(model, start, stop)
    return kv_bytes_per_row(model, last - first) if start < stop else 0


def _working(model: ModelSpec, item: ComputedSlice, batch: int, rows: int, cached: int) -> int:
    """Bytes in memory while a device computes a slice, besides weights and KV caches."""
    op: Op
    if item.phase == "decode":  # no prompts
        rows, cached = 1, cached + rows - 1
    x, layer = Meta((batch, rows, model.hidden_size), model.dtype), item.slice.layer
    match item.slice.part:
        case "attention":
            op = Attention(layer, *_range(item, model.num_heads), True, "any")
        case "ffn":
            op = FeedForward(layer, *_range(item, model.intermediate_size), True)
        case "lm_head":
            op, x = Head(), Meta((batch, 1, model.hidden_size), model.dtype)
        case _:
            return 0
    residual_bytes = payload_bytes(x)  # the hidden states while a part of a layer runs
    return working_bytes((x,), op.cost(model, (x,), cached)) + residual_bytes


def _range(item: ComputedSlice, size: int) -> tuple[int, int]:
    return (0, size) if item.slice.axis == "all" else (item.slice.start, item.slice.stop)
