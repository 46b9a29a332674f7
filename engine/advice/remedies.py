"""Changes of an experiment that make its question a real one, where all of its methods come to one plan: a
larger model, less memory, a longer prompt, each checked by prediction. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from engine.advice.changes import told_once
from engine.advice.values import Assessment
from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.model import ModelSpec
from engine.domain.scenario import DeviceChange
from engine.domain.spec import RunSpec
from engine.domain.units import human
from engine.domain.values import Value
from engine.ops.sizes import model_bytes

AssessAll = Callable[[Sequence[RunSpec]], Sequence[Assessment]]
SHARES = (0.9, 0.6, 0.4)
"""Parts of what one device needs for all of it, which every device then has."""
LONGER = (8, 64)
"""How many times as long a prompt is tried."""
MOST_MODELS = 2
"""Larger models that are tried of those that one device holds, and of those that none holds."""


class Remedy(Value):
    """A change, in `words`, after which `methods` compute on several devices and differ. One of `model` (a
    name), `cluster` (a copy with less memory) and `prompt_tokens` is given.
    """

    words: str
    methods: tuple[str, ...]
    model: str = ""
    cluster: ClusterSpec | None = None
    prompt_tokens: int | None = None


def remedies(
    specs: Sequence[RunSpec], models: Sequence[ModelSpec], assess_all: AssessAll
) -> Iterator[Remedy]:
    """At most one of each kind, as they are found; `specs` are the runs of the methods at one place, `models`
    what may be taken instead.
    """
    for tried in (_memories(specs, assess_all), _prompts(specs), _models(specs, models)):
        for remedy, runs in tried:
            if methods := _real(runs, assess_all):
                yield remedy.model_copy(update={"methods": methods})
                break


def _real(runs: Sequence[RunSpec], assess_all: AssessAll) -> tuple[str, ...]:
    """The methods that compute on several devices, where the runs are more than one computation, and each
    device that changes computes in one of them; else none.
    """
    rows = told_once(assess_all(runs))
    changed = {change.device for change in runs[0].scenario.changes if isinstance(change, DeviceChange)}
    computing = {name for row in rows for name in row.devices}
    different = [row for row in rows if row.total_s is not None and not row.like]
    cluster = runs[0].cluster
    workers = {cluster.devices[rank].name for rank in cluster.workers}
    several = [row.strategy for row in rows if len(workers & set(row.devices)) > 1]
    return tuple(dict.fromkeys(several)) if len(different) > 1 and changed <= computing else ()


Tried = Iterator[tuple[Remedy, list[RunSpec]]]


def _models(specs: Sequence[RunSpec], models: Sequence[ModelSpec]) -> Tried:
    """Larger models of the same kind, those first that no device holds."""
    now = specs[0].model
    same = [one for one in models if (one.has_head, one.has_tower) == (now.has_head, now.has_tower)]
    larger = sorted((one for one in same if model_bytes(one) > 2 * model_bytes(now)), key=model_bytes)
    cluster = specs[0].cluster
    room = max(cluster.devices[rank].usable_bytes for rank in cluster.workers)
    over = [one for one in larger if model_bytes(one) > room]
    for model in (*over[:MOST_MODELS], *larger[: len(larger) - len(over)][-MOST_MODELS:]):
        words = f"{model.name}, {human(model_bytes(model), 'B')} of weights"
        runs = [spec.model_copy(update={"model": model}) for spec in specs]
        yield Remedy(words=words, methods=(), model=model.name), runs


def _memories(specs: Sequence[RunSpec], assess_all: AssessAll) -> Tried:
    """Less memory on every device than one needs for all of it."""
    alone = [row.peak_memory_bytes for row in assess_all(specs[:1]) if row.peak_memory_bytes]
    cluster = specs[0].cluster
    for share in SHARES if alone else ():
        usable = share * alone[0]
        devices = tuple(_with_memory(device, usable) for device in cluster.devices)
        less = ClusterSpec(
            **{name: getattr(cluster, name) for name in ClusterSpec.model_fields if name != "devices"},
            devices=devices,
        )
        words = f"{human(usable, 'B', 2)} of memory on every device"
        runs = [spec.model_copy(update={"cluster": less}) for spec in specs]
        yield Remedy(words=words, methods=(), cluster=less), runs


def _with_memory(device: DeviceSpec, usable_bytes: float) -> DeviceSpec:
    memory_bytes = device.reserved_bytes + float(f"{usable_bytes:.2g}")
    return device.model_copy(update={"memory_bytes": min(device.memory_bytes, memory_bytes)})


def _prompts(specs: Sequence[RunSpec]) -> Tried:
    """Longer random prompts, as far as the model's positions go."""
    workload = specs[0].workload
    for times in LONGER if workload.prompt_tokens else ():
        length = times * (workload.prompt_tokens or 0)
        if length + workload.new_tokens <= specs[0].model.max_positions:
            runs = [
                spec.model_copy(update={"workload": workload.model_copy(update={"prompt_tokens": length})})
                for spec in specs
            ]
            yield Remedy(words=f"prompts of {length} tokens", methods=(), prompt_tokens=length), runs
