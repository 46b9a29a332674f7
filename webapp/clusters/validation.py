"""Check a drawn cluster: list its problems, and say whether a model's weights fit on its devices."""

from __future__ import annotations

import math
import re
from typing import Any

from pydantic import model_validator

from engine.domain.cluster import ClusterSpec, complaints
from engine.domain.errors import EdgeLoomError, SpecError
from engine.domain.model import ModelSpec, QuantisedBits, computed_bits
from engine.domain.plan import Plan
from engine.domain.units import human
from engine.domain.values import Value
from engine.domain.workload import Workload
from engine.ops.ledger import Ledger
from engine.ops.sizes import model_bytes
from engine.strategies.registry import strategy as find_strategy
from topologies.layout import CanvasLayout, enabled, parts_on
from webapp.base import budgets
from webapp.clusters.catalogue import resolve_model


class Problem(Value):
    path: str
    message: str


class DeviceFit(Value):
    """Whether a device has the memory. `need_bytes` are the weights that the plan places here; KV cache and
    activations come on top.
    """

    need_bytes: int
    memory_bytes: float
    fits: bool


class Fits(Value):
    """Whether a cluster has the memory for a model. `fits` is None if no model was given or the check is
    impossible.
    """

    model: str = ""
    weight_bits: QuantisedBits | None = None
    strategy: str = ""
    model_bytes: int = 0
    fits: bool | None = None
    sentence: str = ""
    devices: dict[str, DeviceFit] = {}


class Validation(Value):
    problems: tuple[Problem, ...]
    fits: Fits


class Draft(ClusterSpec):
    """A cluster whose parts are valid, but perhaps not what is between them: devices may be separate."""

    @model_validator(mode="after")
    def _consistent(self) -> Draft:
        return self


def about(path: str, message: str, rest: ClusterSpec, draft: ClusterSpec) -> Problem:
    """A complaint about a part of `rest` as one about the same part of `draft`, of which `rest` is a part."""
    found = re.match(r"(links|devices)\[(\d+)\]", path)
    if found is None:
        return Problem(path=path, message=message)
    here, there = getattr(rest, found[1]), getattr(draft, found[1])
    name = here[int(found[2])].name
    index = [part.name for part in there].index(name)
    return Problem(path=f"{found[1]}[{index}]", message=message.replace(found[0], f"link {name}"))


def validate(
    spec: dict[str, Any],
    layout: CanvasLayout,
    model: str | None,
    strategy: str | None,
    weight_bits: QuantisedBits | None = None,
) -> Validation:
    try:
        draft = Draft.parse(spec, "cluster")
        budgets.check_cluster(draft, "spec")
        rest = Draft.parse(parts_on(draft, layout), "cluster")
        problems = [about(path, message, rest, draft) for path, message in complaints(rest)]
        if problems:
            return Validation(problems=tuple(problems), fits=Fits())
        cluster = enabled(ClusterSpec.parse(spec, "cluster"), layout)
    except SpecError as error:
        return Validation(problems=problems_of(error, "spec"), fits=Fits())
    if model is None:
        return Validation(problems=(), fits=Fits())
    try:
        resolved, _ = resolve_model(model, "random", weight_bits)
        return Validation(problems=(), fits=fits_of(cluster, resolved, strategy))
    except EdgeLoomError as error:
        path = "strategy" if strategy else "model"
        return Validation(
            problems=problems_of(error, path),
            fits=Fits(
                model=model,
                weight_bits=weight_bits,
                strategy=strategy or "",
                fits=False,
                sentence=str(error),
            ),
        )


def problems_of(error: EdgeLoomError, path: str) -> tuple[Problem, ...]:
    fields = getattr(error, "fields", None) or [(path, str(error))]
    return tuple(
        Problem(path=path, message=message.removeprefix("Value error, ")) for path, message in fields
    )


def fits_of(cluster: ClusterSpec, model: ModelSpec, strategy: str | None) -> Fits:
    """Whether a model fits a cluster: with a strategy by its plan for a short prompt, device by device;
    without, total against total.
    """
    total, bits = model_bytes(model), computed_bits(model)
    if strategy is None:
        memory = sum(cluster.devices[rank].usable_bytes for rank in cluster.workers)
        fits = total <= memory
        sentence = (
            f"{model.name} has {human(total, 'B')} of weights{f' in {bits} bits' if bits else ''}, "
            f"the workers together {human(memory, 'B')} of memory."
        )
        return Fits(model=model.name, weight_bits=bits, model_bytes=total, fits=fits, sentence=sentence)
    chosen = find_strategy(strategy)
    reason = chosen.supports(cluster, model)
    if reason:
        sentence = f"{chosen.title} cannot run {model.name} here: {reason}"
        return Fits(
            model=model.name,
            weight_bits=bits,
            strategy=strategy,
            model_bytes=total,
            fits=False,
            sentence=sentence,
        )
    rows = model.image_rows + (16 if model.reads_text else 0)
    workload = Workload(prompt_tokens=rows, new_tokens=16 if model.has_head else 0)
    plan = chosen.plan(cluster, model, workload, chosen.Params())
    devices = {
        device.name: device_fit(rank, device.name, device.usable_bytes, plan, model)
        for rank, device in enumerate(cluster.devices)
    }
    short = [name for name, fit in devices.items() if not fit.fits]
    return Fits(
        model=model.name,
        weight_bits=bits,
        strategy=strategy,
        model_bytes=total,
        fits=not short,
        devices=devices,
        sentence=f"The weights do not fit on {', '.join(short)}." if short else "The weights fit everywhere.",
    )


def device_fit(rank: int, name: str, memory_bytes: float, plan: Plan, model: ModelSpec) -> DeviceFit:
    ledger = Ledger(name, math.inf, model)  # never full: the need is the question
    for piece in plan.held_by(rank):
        ledger.load(piece)
    need = ledger.resident_bytes
    return DeviceFit(need_bytes=need, memory_bytes=memory_bytes, fits=need <= memory_bytes)
