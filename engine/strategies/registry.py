"""The list of all strategies. Forms, command-line options, documentation and tests derive from it.

A new strategy is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.method_report import MethodReport
from engine.domain.plan import Layout, Plan
from engine.program.strategy import Strategy
from engine.strategies.accelerate.strategy import Accelerate
from engine.strategies.adaptlink.strategy import AdaptLink
from engine.strategies.cloud_only import CloudOnly
from engine.strategies.deepspeed import DeepSpeed
from engine.strategies.edge_only import EdgeOnly
from engine.strategies.edgeformer.strategy import EdgeFormer
from engine.strategies.edgeshard.strategy import EdgeShard
from engine.strategies.galaxy.strategy import Galaxy
from engine.strategies.gpipe import GPipe
from engine.strategies.lime.strategy import Lime
from engine.strategies.mcu.strategy import Mcu
from engine.strategies.megatron import Megatron
from engine.strategies.pipeline_offload.strategy import PipelineOffload
from engine.strategies.planner.choice import PlannedParams
from engine.strategies.single import Single
from engine.strategies.tpi_llm.offload import TPILLMOffload
from engine.strategies.tpi_llm.strategy import TPILLM
from engine.strategies.voltage.strategy import Voltage

STRATEGIES: tuple[Strategy, ...] = (
    Single(),
    Accelerate(),
    GPipe(),
    PipelineOffload(),
    EdgeShard(),
    Megatron(),
    DeepSpeed(),
    Galaxy(),
    TPILLM(),
    TPILLMOffload(),
    Voltage(),
    EdgeFormer(),
    Lime(),
    Mcu(),
    AdaptLink(),
    EdgeOnly(),
    CloudOnly(),
)

_BY_NAME = {chosen.name: chosen for chosen in STRATEGIES}
if len(_BY_NAME) < len(STRATEGIES):
    raise RuntimeError("two strategies have the same name: rename one of them")


def strategy(name: str) -> Strategy:
    """The strategy of this name. Raises `SpecError`, which names the known ones."""
    if name not in _BY_NAME:
        raise SpecError(f"strategy is {name}, which is unknown: choose one of {', '.join(_BY_NAME)}.")
    return _BY_NAME[name]


def by_rule(name: str) -> dict[str, str]:
    """Parameters with which the strategy `name` plans by its rule, where it could also search: by most rules
    every device takes part. Raises `SpecError` for an unknown name.
    """
    return {"planner": "paper"} if issubclass(strategy(name).Params, PlannedParams) else {}


def by_best(name: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters `given` with planner=best; None where the strategy `name` has no such parameter, plans
    so already, or has a plan made by hand. Raises `SpecError` for an unknown name.
    """
    kind = strategy(name).Params
    return kind.with_best(given) if issubclass(kind, PlannedParams) else None


def layout_types() -> tuple[type[Layout], ...]:
    """The layouts of all strategies, each once, in the order of `STRATEGIES`."""
    return tuple(dict.fromkeys(chosen.Layout for chosen in STRATEGIES))


def report_types() -> tuple[type[MethodReport], ...]:
    """The reports of all methods that have one, each once, in the order of `STRATEGIES`."""
    return tuple(dict.fromkeys(chosen.Report for chosen in STRATEGIES if chosen.Report is not None))


def plan_from_json(document: dict[str, Any]) -> Plan:
    """A plan's JSON as a value. Raises `SpecError` unless its layout is the one of its strategy."""
    plan: Plan = Plan.parse(document, "plan")
    expected = strategy(plan.strategy).Layout
    if not isinstance(plan.layout, expected):
        raise SpecError(
            f"plan, layout: {plan.strategy} has a {expected.__name__}, got a {type(plan.layout).__name__}."
        )
    return plan
