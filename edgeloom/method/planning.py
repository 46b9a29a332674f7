"""Shares, stages, times and searches, of which plans are made. All of it is pure."""

from __future__ import annotations

from engine.domain.message_costs import receiver_cost_s, sender_cost_s
from engine.planning.judge import Judge
from engine.planning.search import Shares, fastest_shares
from engine.strategies.planner.all_reduce import AllReduceSearch
from engine.strategies.planner.choice import PLANNER_HELP, PlannedParams, PlannerChoice
from engine.strategies.planner.estimate import SplitEstimate
from engine.strategies.planner.exact import UnitShares, best_shares, most_granules
from engine.strategies.planner.groups import Group, best_groups
from engine.strategies.planner.known_length import best_of_lengths
from engine.strategies.planner.order import nearest_first
from engine.strategies.planner.pipelines import (
    PipelineSeconds,
    batches,
    best_batch,
    best_pipelines,
    does_fit,
    pipeline_seconds,
)
from engine.strategies.planner.search import GroupSearch
from engine.strategies.planner.split import SplitSearch, bounds_in, shares_in
from engine.strategies.shared.all_reduce_time import (
    ALL_REDUCE_HELP,
    HOP_S,
    AllReduceChoice,
    chosen_all_reduce,
    cluster_all_reduce_s,
)
from engine.strategies.shared.by_hand import (
    bounds_by_hand,
    check_whole,
    of_device,
    of_shares,
    of_stages,
    ratios_by_hand,
    stages_by_hand,
    wanted_device,
    workers_of,
)
from engine.strategies.shared.messages import fixed_s, message_s
from engine.strategies.shared.shares import (
    bounds_of,
    fastest,
    head_shares,
    largest_remainder,
    layer_s,
    named_worker,
    op_s,
    prefill_layer_s,
)
from engine.strategies.shared.stages import (
    Room,
    Stage,
    StagesBy,
    all_rooms,
    check_stages_fit,
    consecutive,
    fill,
    free_bytes,
    layer_bytes,
    most_layers,
    rooms_of,
    source_first,
    stages_of,
    too_small,
)

__all__ = [
    "ALL_REDUCE_HELP",
    "HOP_S",
    "PLANNER_HELP",
    "AllReduceChoice",
    "AllReduceSearch",
    "Group",
    "GroupSearch",
    "Judge",
    "PipelineSeconds",
    "PlannedParams",
    "PlannerChoice",
    "Room",
    "Shares",
    "SplitEstimate",
    "SplitSearch",
    "Stage",
    "StagesBy",
    "UnitShares",
    "all_rooms",
    "batches",
    "best_batch",
    "best_groups",
    "best_of_lengths",
    "best_pipelines",
    "best_shares",
    "bounds_by_hand",
    "bounds_in",
    "bounds_of",
    "check_stages_fit",
    "check_whole",
    "chosen_all_reduce",
    "cluster_all_reduce_s",
    "consecutive",
    "does_fit",
    "fastest",
    "fastest_shares",
    "fill",
    "fixed_s",
    "free_bytes",
    "head_shares",
    "largest_remainder",
    "layer_bytes",
    "layer_s",
    "message_s",
    "most_granules",
    "most_layers",
    "named_worker",
    "nearest_first",
    "of_device",
    "of_shares",
    "of_stages",
    "op_s",
    "pipeline_seconds",
    "prefill_layer_s",
    "ratios_by_hand",
    "receiver_cost_s",
    "rooms_of",
    "sender_cost_s",
    "shares_in",
    "source_first",
    "stages_by_hand",
    "stages_of",
    "too_small",
    "wanted_device",
    "workers_of",
]
