"""Sizes of a workload, and the check that every device has enough memory."""

from __future__ import annotations

from engine.domain.units import BITS_PER_BYTE, human, human_j, human_s, needs_and_has, transfer_s
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    attention_ops,
    beside_rows,
    block_ops,
    check_memory,
    demand_of,
    end_ops,
    hidden,
    in_all_layers,
    needed_bytes,
    prompt_ops,
    weights_bytes,
    working_bytes,
)

__all__ = [
    "BITS_PER_BYTE",
    "Demand",
    "SizedOp",
    "attention_ops",
    "beside_rows",
    "block_ops",
    "check_memory",
    "demand_of",
    "end_ops",
    "hidden",
    "human",
    "human_j",
    "human_s",
    "in_all_layers",
    "needed_bytes",
    "needs_and_has",
    "prompt_ops",
    "transfer_s",
    "weights_bytes",
    "working_bytes",
]
