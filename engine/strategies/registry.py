"""The list of all strategies. Forms, command-line options, documentation and tests derive from it.

A new strategy of EdgeLoom's own is one file and one line here. Those of installed packages follow them, and a
process may add one from a file or a notebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.method_report import MethodReport
from engine.domain.model import ModelSpec
from engine.domain.plan import Layout, Plan
from engine.domain.spec import MethodOrigin, RunSpec
from engine.plugins.installed import METHOD, check_free, place_of
from engine.program.strategy import DivisibleParams, Strategy
from engine.strategies.accelerate.strategy import Accelerate
from engine.strategies.adaptlink.strategy import AdaptLink
from engine.strategies.cloud_only import CloudOnly
from engine.strategies.deepspeed import DeepSpeed
from engine.strategies.disaggregated import Disaggregated
from engine.strategies.edge_only import EdgeOnly
from engine.strategies.edgeformer.strategy import EdgeFormer
from engine.strategies.edgeshard.strategy import EdgeShard
from engine.strategies.expert_parallel.strategy import ExpertParallel
from engine.strategies.galaxy.strategy import Galaxy
from engine.strategies.gpipe import GPipe
from engine.strategies.lime.strategy import Lime
from engine.strategies.mcu.strategy import Mcu
from engine.strategies.megatron import Megatron
from engine.strategies.outside import (
    Outside,
    installed_methods,
    is_file,
    of_file,
    of_object,
    of_source,
)
from engine.strategies.pipeline_offload.strategy import PipelineOffload
from engine.strategies.planner.choice import PlannedParams
from engine.strategies.single import Single
from engine.strategies.speculative.strategy import Speculative
from engine.strategies.tpi_llm.offload import TPILLMOffload
from engine.strategies.tpi_llm.strategy import TPILLM
from engine.strategies.voltage.strategy import Voltage

BUILT_IN: tuple[Strategy, ...] = (
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
    ExpertParallel(),
    Disaggregated(),
    Speculative(),
    Lime(),
    Mcu(),
    AdaptLink(),
    EdgeOnly(),
    CloudOnly(),
)

if len({chosen.name for chosen in BUILT_IN}) < len(BUILT_IN):
    raise RuntimeError("two strategies have the same name: rename one of them")

_INSTALLED, UNUSABLE = installed_methods({chosen.name for chosen in BUILT_IN})
"""`UNUSABLE`: what is declared, and wrong."""

STRATEGIES: tuple[Strategy, ...] = (*BUILT_IN, *(one.method for one in _INSTALLED.values()))
_BY_NAME = {chosen.name: chosen for chosen in STRATEGIES}
_OUTSIDE = dict(_INSTALLED)


def strategy(name: str) -> Strategy:
    """The strategy of this name. Raises `SpecError`, which names the known ones or what is wrong with it."""
    if is_file(name):
        raise SpecError(
            f"strategy is {name}: no file is run unless the command line names it: add --strategy {name}, "
            "and write the name of its method here.",
            [("strategy", "a file")],
        )
    if name not in _BY_NAME:
        wrong = next((one.reason for one in UNUSABLE if one.name == name), "")
        raise SpecError(
            wrong or f"strategy is {name}, which is unknown: choose one of {', '.join(_BY_NAME)}."
        )
    return _BY_NAME[name]


def named(text: str) -> Strategy:
    """The strategy of a name, or of FILE.py:CLASS, whose code this process then runs. Raises `SpecError`."""
    return _added(of_file(text)) if is_file(text) else strategy(text)


def every() -> tuple[Strategy, ...]:
    """`STRATEGIES`, and those that this process was given since."""
    return tuple(_BY_NAME.values())


def origin_of(name: str) -> MethodOrigin | None:
    """Where the strategy is from; None for EdgeLoom's own."""
    return _OUTSIDE[name].origin if name in _OUTSIDE else None


def installed_code() -> tuple[str, ...]:
    """The code of every installed method that this process uses: what its machine can run."""
    return tuple(one.origin.code for one in _INSTALLED.values())


def source_of(name: str) -> str:
    """The text of the file that the strategy is from ("": none), for processes that may not read it."""
    return _OUTSIDE[name].source if name in _OUTSIDE else ""


def sources() -> tuple[tuple[str, MethodOrigin], ...]:
    """What `add_source` takes, for a process that is to have the methods of files that this one has."""
    return tuple((one.source, one.origin) for one in _OUTSIDE.values() if one.source)


def folder_of(name: str) -> Path | None:
    """Where the code of an installed method is; None for any other."""
    one = _OUTSIDE.get(name)
    return place_of(type(one.method).__module__) if one is not None and one.origin.package else None


def add_source(text: str, origin: MethodOrigin) -> None:
    """Let this process have the method of a file that another has read. Raises `SpecError`."""
    _added(of_source(text, origin.file, origin.attribute))


def add(method: Strategy) -> Strategy:
    """Let this process have a method as it stands, as one of a notebook. Raises `SpecError` if it is none, or
    its name is taken.
    """
    known = _BY_NAME.get(method.name)
    return known if known is not None and type(known) is type(method) else _added(of_object(method))


def _added(one: Outside) -> Strategy:
    """A later one from the same place replaces the earlier."""
    name = one.method.name
    known = _OUTSIDE.get(name)
    if known is None or (known.origin.file, known.origin.package) != (one.origin.file, ""):
        check_free(name, _BY_NAME, METHOD, f"method {name} of {one.origin}")
    _OUTSIDE[name] = one
    _BY_NAME[name] = one.method
    return one.method


def strategy_of(spec: RunSpec) -> Strategy:
    """The strategy of a run. Raises `SpecError` unless this process has it from where the run has it."""
    wanted, present = spec.method, origin_of(spec.strategy)
    if wanted is None or (present is not None and present.code == wanted.code):
        return strategy(spec.strategy)
    if spec.strategy not in _BY_NAME:
        here = "which this process does not have"
    elif str(present) == str(wanted):
        here = "whose code has changed since"
    else:
        here = f"and here it is from {present or 'EdgeLoom itself'}"
    raise SpecError(
        f"method {spec.strategy}: the run has it from {wanted}, {here}: start the run anew, or where there "
        "is the code that it was started with.",
        [("strategy", "other code")],
    )


def why_not(method: Strategy, cluster: ClusterSpec, model: ModelSpec) -> str | None:
    """The reason in one sentence why `method` cannot run this model or cluster; None if it can."""
    reason = method.supports(cluster, model)
    if reason is None and model.activation_bits and not method.computes_int8:
        able = " or ".join(each.name for each in STRATEGIES if each.computes_int8)
        reason = f"it multiplies no whole numbers: choose {able}, or float activations (no activation_bits)."
    return reason


def with_strategy(spec: RunSpec, name: str, **other: Any) -> RunSpec:
    """The run with another strategy, and `other` fields."""
    return spec.model_copy(update={"strategy": name, "method": origin_of(name), **other})


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


def drafted(method: Strategy, model: ModelSpec, params: Mapping[str, Any] | None = None) -> ModelSpec:
    """`model` with its own first layer as the draft model, where `method` drafts and it generates text: for
    trials of every method. With random weights of the same seed, some guesses are right. With `params` by
    which its own first layers draft, it has no draft model.
    """
    if params and params.get("draft_layers"):
        return model.model_copy(update={"draft": None})
    if not method.drafts or not (model.causal and model.has_head) or model.vision is not None:
        return model
    draft = model.model_copy(update={"name": f"{model.name} draft", "num_layers": 1, "draft": None})
    return model.model_copy(update={"draft": draft})


def rule_of(spec: RunSpec) -> str:
    """The rule of the run's method, in one sentence, if it plans by one that may react badly to the order of
    several devices or to better ones; else nothing. Raises `SpecError` for bad parameters.
    """
    chosen = strategy_of(spec)
    params = chosen.Params.parse(spec.params, f"parameters of {spec.strategy}")
    by_hand = isinstance(params, DivisibleParams) and params.plan is not None
    searches = isinstance(params, PlannedParams) and params.planner == "best"
    return "" if by_hand or searches or len(spec.cluster.workers) < 2 else chosen.rule


def layout_types() -> tuple[type[Layout], ...]:
    """The layouts of EdgeLoom's own strategies, each once: those that its types in the browser know."""
    return tuple(dict.fromkeys(chosen.Layout for chosen in BUILT_IN))


def report_types() -> tuple[type[MethodReport], ...]:
    """The reports of EdgeLoom's own methods that have one, each once."""
    return tuple(dict.fromkeys(chosen.Report for chosen in BUILT_IN if chosen.Report is not None))


def plan_from_json(document: dict[str, Any]) -> Plan:
    """A plan's JSON as a value. Raises `SpecError` unless its layout is the one of its strategy."""
    plan: Plan = Plan.parse(document, "plan")
    expected = strategy(plan.strategy).Layout
    if not isinstance(plan.layout, expected):
        raise SpecError(
            f"plan, layout: {plan.strategy} has a {expected.__name__}, got a {type(plan.layout).__name__}."
        )
    return plan
