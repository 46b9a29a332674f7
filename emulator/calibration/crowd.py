"""What messages cost where there are more devices than this host has cores, in place of as many.

wakeup_s            Devices with a core of their own poll for messages, others sleep until one comes, and
                    what they compute then finds less in the caches. Two pipelines of one model, in which one
                    device works at a time, show how much longer a hop takes then: its message, and what the
                    layer that follows takes longer than the next one. A machine that is slower during one
                    run than during the other changes neither.
message_work_frac   A message between two idle devices takes as long whether its threads work on it or wait
                    for each other. Where processes share cores the two differ: work of one keeps the others
                    from theirs. So one run of twice as many devices as cores is measured, and the share with
                    which the simulated world takes as long per token is kept.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from emulator.calibration.runtime import TALKING, run_native, spec_of
from engine.domain.cluster import LinkSpec, SwitchSpec
from engine.domain.host_times import HostProfile, RuntimeCosts
from engine.domain.network import Network
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.runs.native import on_host
from engine.runs.predict import Prepared, prepare, simulate

ROWS, NEW_TOKENS, REQUESTS = 8, 6, 4
CROWD_RUNS = 3
"""The crowd's token takes now a tenth more, now a tenth less: the median counts."""

PREDICTED_TOKENS, PREDICTED_REQUESTS = 3, 2
"""Of a prediction, in which every later token takes as long but for the rows of its cache: 0.01 % here."""

MOST_DEVICES = 8
MOST_PREDICTIONS = 5


def crowd_devices() -> int:
    """The number of devices: twice as many as cores."""
    return max(2, min(MOST_DEVICES, 2 * len(os.sched_getaffinity(0))))


def crowd_spec(bit_per_s: float) -> RunSpec:
    """The run of a crowd: tensor parallelism, the method with the most messages, on twice as many devices as
    cores.
    """
    return over_a_switch("megatron", crowd_devices(), bit_per_s)


def pipeline_specs(bit_per_s: float) -> tuple[RunSpec, RunSpec]:
    """A pipeline of two devices, each of which can have a core, and one of twice as many as cores; in both a
    device has two layers or more.
    """
    family, hidden, layers = TALKING
    model = family, hidden, max(layers, 2 * crowd_devices())
    few, many = (over_a_switch("gpipe", devices, bit_per_s, model) for devices in (2, crowd_devices()))
    return few, many


def over_a_switch(
    strategy: str, devices: int, bit_per_s: float, model: tuple[str, int, int] = TALKING
) -> RunSpec:
    spec = spec_of(model, devices, strategy, ROWS)
    cluster = spec.cluster.model_copy(
        update={
            "switches": (SwitchSpec(name="hub"),),
            "links": tuple(
                LinkSpec(a=device.name, b="hub", bit_per_s=bit_per_s) for device in spec.cluster.devices
            ),
        }
    )
    workload = spec.workload.model_copy(update={"new_tokens": NEW_TOKENS, "requests": REQUESTS})
    return spec.model_copy(update={"cluster": cluster, "workload": workload})


def token_s(items: Sequence[Span | Mark]) -> float:
    """Median seconds from token to token of the requests after the first."""
    times: dict[int, list[float]] = {}
    for item in items:
        if isinstance(item, Mark) and item.name == "token_emitted" and item.facts["request"] > 0:
            times.setdefault(item.facts["request"], []).append(item.time_s)
    return statistics.median(
        after - before for series in times.values() for before, after in pairwise(series)
    )


def hop_s(items: Sequence[Span | Mark]) -> float:
    """Median seconds of a hop of a pipeline: its message, from the call of `send` to the layer that follows,
    and how much longer that layer takes than the device's next one. Of requests after the first, single rows.
    """
    by_device: dict[str, list[Span]] = {}
    for item in items:
        if isinstance(item, Span) and min(item.request, item.token) > 0 and item.kind in ("recv", "compute"):
            by_device.setdefault(item.device, []).append(item)
    hops = []
    for spans in by_device.values():
        spans.sort(key=lambda span: span.end_s)
        for message, first, second in zip(spans, spans[1:], spans[2:], strict=False):
            of_one_kind = (first.kind, first.name) == (second.kind, second.name)
            if (message.kind, first.kind) == ("recv", "compute") and of_one_kind:
                took_s, usual_s = (span.end_s - span.start_s for span in (first, second))
                hops.append(first.start_s - message.start_s + took_s - usual_s)
    return statistics.median(hops)


def measured_hop_s(spec: RunSpec, network: Network | None = None, drawn: Path | None = None) -> float:
    """Seconds of a hop; `drawn` as for `run_native`. Raises `HostError`."""
    return hop_s(run_native(spec, network, drawn).trace)


def measured_token_s(spec: RunSpec, network: Network | None = None, drawn: Path | None = None) -> float:
    """Seconds per token, the median of `CROWD_RUNS` runs; `drawn` as for `run_native`. Raises `HostError`."""
    return statistics.median(token_s(run_native(spec, network, drawn).trace) for _ in range(CROWD_RUNS))


def predicted_token_s(spec: RunSpec, profile: HostProfile) -> float:
    """Seconds per token of `spec` as predicted on the host of `profile`."""
    whole = prepare(spec)
    few = {"new_tokens": PREDICTED_TOKENS, "requests": PREDICTED_REQUESTS}
    short = spec.model_copy(update={"workload": spec.workload.model_copy(update=few)})
    prepared = Prepared(short, whole.requests[:PREDICTED_REQUESTS], whole.plan)
    return token_s(simulate(on_host(prepared, profile), host=profile.runtime)[0])


def with_wakeup(profile: HostProfile, few_s: float, many_s: float) -> HostProfile:
    """`profile` with the `wakeup_s` that a hop takes longer in the pipeline of many devices than of two."""
    return _with(profile, wakeup_s=max(0.0, many_s - few_s))


def with_message_work(profile: HostProfile, bit_per_s: float, seconds: float) -> HostProfile:
    """`profile` with the share of work for which a token of the crowd takes `seconds`, or the nearest.

    The time grows with the share, nearly in proportion: each prediction between the two ends brings the line
    through all of them closer.
    """
    crowd = crowd_spec(bit_per_s)

    def predicted_s(share: float) -> float:
        return predicted_token_s(crowd, _with(profile, message_work_frac=share))

    times_s = {share: predicted_s(share) for share in (0.0, 1.0)}
    while (share := _share_of(seconds, times_s)) not in times_s and len(times_s) < MOST_PREDICTIONS:
        times_s[share] = predicted_s(share)
    return _with(profile, message_work_frac=share)


def _share_of(seconds: float, times_s: Mapping[float, float]) -> float:
    """The share on the line through the known ones with their times, or the nearest."""
    shares = sorted(times_s)
    return float(np.interp(seconds, [times_s[share] for share in shares], shares))


def _with(profile: HostProfile, **costs: float) -> HostProfile:
    """`profile` with these costs of the runtime in place of its own."""
    runtime: RuntimeCosts = profile.runtime.model_copy(update=costs)
    changed: HostProfile = profile.model_copy(update={"runtime": runtime})
    return changed
