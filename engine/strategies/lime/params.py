"""LIME's parameters: the paper's modes and ablations, and what it does not publish."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.domain.values import Count
from engine.strategies.lime.allocation import Mode
from engine.strategies.planner.choice import PLANNER_HELP, PlannedParams, PlannerChoice


class LimeParams(PlannedParams):
    units = ("layers",)
    settings = ("streams", "segments", "prefill_chunk")
    planner: PlannerChoice = Field(
        default="best",
        description=PLANNER_HELP.format(rule="one request of a burst after the other, as in the paper"),
    )
    mode: Mode = Field(
        default="joint",
        description="joint: the fastest ring, layers and streamed blocks, chosen together; exact: the "
        "fastest whole streamed layers, then blocks that stay; dp: the paper's Algorithm 1 with overlapping "
        "loads; printed: Algorithm 1 to the letter.",
    )
    num_segments: Count = Field(default=0, description="Rounds of the ring per token; 0: the fastest.")
    prefill_chunk: Count = Field(
        default=0,
        description="Tokens of the prompt that pass at a time; 0: all, or fewer where their working set "
        "would take the memory of layers.",
    )
    fine_grained: bool = Field(
        default=True, description="Let single attention or feed-forward blocks of streamed layers stay."
    )
    online_planner: Literal["blocks", "layers", "off"] = Field(
        default="blocks", description="What is streamed in addition when KV caches outgrow their memory."
    )
    kv_transfer: bool = Field(default=True, description="Park KV rows on a device with memory to spare.")
    fluctuation_rows: int = Field(
        default=8, gt=0, description="Smaller changes of the number of parked rows are not made."
    )
    lookahead_tokens: int = Field(default=1, gt=0, description="How much longer the next online plan lasts.")
    reserve_frac: float = Field(
        default=0.0, ge=0, lt=1, description="Share of a device's memory that no plan uses."
    )
