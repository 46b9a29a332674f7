"""What messages cost where there are more devices than this host has cores, in place of as many.

wakeup_s            Devices with a core of their own poll for messages, others sleep until one comes, and
                    what they compute then finds less in the caches. Two pipelines of one model, in which one
                    device works at a time, show how much longer a token takes then, by hop.
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

from emulator.calibration.runtime import MODELS, run_native, spec_of
from engine.domain.cluster import LinkSpec, SwitchSpec
from engine.domain.host_times import HostProfile, RuntimeCosts
from engine.domain.network import Network
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.runs.native import on_host
from engine.runs.predict import Prepared, prepare, simulate

ROWS, NEW_TOKENS, REQUESTS = 8, 6, 4
PREDICTED_TOKENS, PREDICTED_REQUESTS = 3, 2
"""Of a prediction, in which every later token takes as long but for the rows of its cache: 0.01 % here."""

MOST_DEVICES = 8
MOST_PREDICTIONS = 5
TRIED_WAKEUP_S = 3e-4


def crowd_devices() -> int:
    """The number of devices: twice as many as cores."""
    return max(2, min(MOST_DEVICES, 2 * len(os.sched_getaffinity(0))))


def crowd_spec(bit_per_s: float) -> RunSpec:
    """The run of a crowd: tensor parallelism, the method with the most messages, on twice as many devices as
    cores.
    """
    return over_a_switch("megatron", crowd_devices(), bit_per_s)


def pipeline_specs(bit_per_s: float) -> tuple[RunSpec, RunSpec]:
    """A pipeline of two devices, each of which can have a core, and one of twice as many as cores."""
    return over_a_switch("gpipe", 2, bit_per_s), over_a_switch("gpipe", crowd_devices(), bit_per_s)


def over_a_switch(strategy: str, devices: int, bit_per_s: float) -> RunSpec:
    spec = spec_of(MODELS[-1], devices, strategy, ROWS)
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


def measured_token_s(
    spec: RunSpec, repeats: int, network: Network | None = None, drawn: Path | None = None
) -> float:
    """Seconds per token, the median of so many runs; `drawn` as for `run_native`. Raises `HostError`."""
    return statistics.median(token_s(run_native(spec, network, drawn).trace) for _ in range(repeats))


def predicted_token_s(spec: RunSpec, profile: HostProfile) -> float:
    """Seconds per token of `spec` as predicted on the host of `profile`."""
    whole = prepare(spec)
    few = {"new_tokens": PREDICTED_TOKENS, "requests": PREDICTED_REQUESTS}
    short = spec.model_copy(update={"workload": spec.workload.model_copy(update=few)})
    prepared = Prepared(short, whole.requests[:PREDICTED_REQUESTS], whole.plan)
    return token_s(simulate(on_host(prepared, profile), host=profile.runtime)[0])


def with_wakeup(profile: HostProfile, bit_per_s: float, few_s: float, many_s: float) -> HostProfile:
    """`profile` with the `wakeup_s` for which the pipeline of many devices takes as much longer per token
    than the one of two as `few_s` and `many_s` say, and none if it takes less without any.

    Both have the same model, so that what is predicted wrong of its operations does not count.
    """
    few, many = pipeline_specs(bit_per_s)

    def longer_s(wakeup_s: float) -> float:
        host = _with(profile, wakeup_s=wakeup_s)
        return predicted_token_s(many, host) - predicted_token_s(few, host)

    none_s = longer_s(0.0)
    slope = (longer_s(TRIED_WAKEUP_S) - none_s) / TRIED_WAKEUP_S
    if slope <= 0:  # as many devices as cores
        return profile
    return _with(profile, wakeup_s=max(0.0, (many_s - few_s - none_s) / slope))


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
