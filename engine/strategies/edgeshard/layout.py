"""The layout of EdgeShard's plans."""

from __future__ import annotations

from typing import Literal

from engine.domain.values import NonNegative
from engine.strategies.edgeshard.segments import Objective
from engine.strategies.shared.pipeline import StagesLayout

DecodeSchedule = Literal["no-bubbles", "bubbles"]


class PlannedPipelineLayout(StagesLayout):
    """A pipeline with what its planner minimised. `planned_s` is the objective's value in seconds; no stages
    have one below `bound_s` (0: unknown). Plans of version 2 may be of the layer-wise heuristic.
    """

    kind: Literal["planned_pipeline"] = "planned_pipeline"
    objective: Objective
    schedule: DecodeSchedule
    planner: Literal["exact", "search", "layer-wise heuristic", "by_hand"]
    planned_s: NonNegative
    bound_s: NonNegative
