"""What a method is: its parameters, its plan with a layout, and the program that every device runs.

A method is a `Strategy`. `PlacesLayers`, `DividesLayers` and `DividesRows` have the running already: such a
method is only a plan. The other modules of this package have what plans and programs are made of.
"""

from __future__ import annotations

import edgeloom.own_packages  # noqa: F401
from engine.domain.by_hand import (
    BackupShare,
    DeviceShare,
    EditablePlan,
    PlanByHand,
    StreamedPart,
    Unit,
    UnitSize,
)
from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import OutOfMemory, PeerFailed, PlanError, RunError, SpecError
from engine.domain.method_report import MethodReport, PlanAt, layouts_of
from engine.domain.model import ModelSpec, draft_of, layer_kinds, tower_model
from engine.domain.plan import (
    Axis,
    Bits,
    ComputedSlice,
    HeldSlice,
    Layout,
    Part,
    Placement,
    Plan,
    Slice,
    of_draft,
)
from engine.domain.trace import Mark, Span
from engine.domain.values import Count, Fraction, NonNegative, Positive, Value
from engine.domain.workload import Workload
from engine.ops.tensors import (
    Meta,
    Tensor,
    concat,
    flatten,
    narrow,
    payload_bytes,
    reshape,
    shape_of,
    spread,
    take,
    zeros,
)
from engine.program.ctx import Ctx, Decision, Handle, Note
from engine.program.strategy import (
    DivisibleParams,
    Done,
    Overlapping,
    Params,
    ParamsT,
    SequenceRows,
    Step,
    Strategy,
)
from engine.schedulers.scheduler import Chunk, DeviceMemory, Iteration, Job, Scheduler, View
from engine.strategies.shared.only_plans import DividesLayers, PlacesLayers
from engine.strategies.voltage.positions_program import DividesRows

__all__ = [
    "Axis",
    "BackupShare",
    "Bits",
    "Chunk",
    "ClusterSpec",
    "ComputedSlice",
    "Count",
    "Ctx",
    "Decision",
    "DeviceMemory",
    "DeviceShare",
    "DeviceSpec",
    "DividesLayers",
    "DividesRows",
    "DivisibleParams",
    "Done",
    "EditablePlan",
    "Fraction",
    "Handle",
    "HeldSlice",
    "Iteration",
    "Job",
    "Layout",
    "Mark",
    "Meta",
    "MethodReport",
    "ModelSpec",
    "NonNegative",
    "Note",
    "OutOfMemory",
    "Overlapping",
    "Params",
    "ParamsT",
    "Part",
    "PeerFailed",
    "Placement",
    "PlacesLayers",
    "Plan",
    "PlanAt",
    "PlanByHand",
    "PlanError",
    "Positive",
    "RunError",
    "Scheduler",
    "SequenceRows",
    "Slice",
    "Span",
    "SpecError",
    "Step",
    "Strategy",
    "StreamedPart",
    "Tensor",
    "Unit",
    "UnitSize",
    "Value",
    "View",
    "Workload",
    "concat",
    "draft_of",
    "flatten",
    "layer_kinds",
    "layouts_of",
    "narrow",
    "of_draft",
    "payload_bytes",
    "reshape",
    "shape_of",
    "spread",
    "take",
    "tower_model",
    "zeros",
]
