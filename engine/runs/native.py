"""Runs at native speed: nothing is paced, every operation takes what this host takes.

A native run is predicted by the times of its host (`RunSpec.profile`), in place of the cluster's devices:
every device is one process of the host, with the runtime's costs, and all of them share its cores. Links are
those of the cluster, because the network is shaped at native speed, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.host_times import HostProfile
from engine.domain.report import NativePart, RunReport
from engine.domain.trace import Mark, Span
from engine.ops.cost import runtime_s
from engine.reports.attribution import attribute
from engine.reports.fold import fold, idle_times
from engine.runs.predict import Prepared, simulate
from engine.worlds.simulated.device import Decisions

Trace = Sequence[Span | Mark]


class Simulated(NamedTuple):
    """A native run in the simulated world, on this host."""

    report: RunReport
    trace: list[Span | Mark]


def as_host(cluster: ClusterSpec, profile: HostProfile) -> ClusterSpec:
    """`cluster` with devices that compute and send as processes of the host of `profile` do."""
    return cluster.model_copy(
        update={"devices": tuple(_as_host(device, profile) for device in cluster.devices)}
    )


def _as_host(device: DeviceSpec, profile: HostProfile) -> DeviceSpec:
    costs = profile.runtime
    return device.model_copy(
        update={
            "compute_model": "measured",
            "measured_scale": costs.operation_scale,
            "family_rates": (),
            "dispatch_s": costs.dispatch_s,
            "handover_s": costs.handover_s,
            "token_s": costs.token_s,
            "message_overhead_s": costs.send_s,
            "receive_overhead_s": costs.receive_s,
            "byte_overhead_s": costs.byte_s,
            "staging_byte_per_s": None,
        }
    )


def predict_native(prepared: Prepared, profile: HostProfile, decisions: Decisions | None = None) -> Simulated:
    """The run of `prepared` at native speed on the host of `profile`, by the plan that it has."""
    host = on_host(prepared, profile)
    trace, outcome = simulate(host, decisions=decisions, host=profile.runtime)
    report = fold(host.spec, prepared.plan, trace, world="predicted", outcome=outcome)
    return Simulated(report, trace)


def on_host(prepared: Prepared, profile: HostProfile) -> Prepared:
    """The run of `prepared` with devices that are processes of the host of `profile`."""
    spec = prepared.spec
    update = {"cluster": as_host(spec.cluster, profile), "profile": profile, "compute_model": None}
    return prepared._replace(spec=spec.model_copy(update=update))


def native_parts(report: RunReport, trace: Trace, predicted: Simulated) -> tuple[NativePart, ...]:
    """The parts of the time, predicted beside measured: the parts of the critical path, and waiting beside
    it.

    compute   operations on the critical path
    runtime   the rest of the path on a device: dispatch, hand-over, choosing tokens, waiting for a core
    link      messages on the path, from the call of send to their use
    disk      loading and storing on the path
    wait      what a device waits for messages in all, the mean of all devices (no part of the path)
    """
    expected = _parts(predicted.report, _without_runtime(predicted))
    found = _parts(report, trace)
    return tuple(
        NativePart(name=name, predicted_s=expected[name], measured_s=found[name]) for name in expected
    )


def _parts(report: RunReport, trace: Trace) -> dict[str, float]:
    spans = [item for item in trace if isinstance(item, Span)]
    start_s = min((request.arrival_s for request in report.requests), default=0.0)
    end_s = start_s + report.latency_s
    idle = idle_times(report.requests)
    path = attribute(spans, report.spec.cluster, report.spec.cluster.source, start_s, end_s, idle)
    devices = {span.device for span in spans if span.kind == "compute"} | {report.spec.cluster.source}
    waited_s = sum(span.end_s - span.start_s for span in spans if span.kind == "wait")
    return {
        "compute": path.compute_s,
        "runtime": path.wait_s,
        "link": path.link_s + path.staging_s,
        "disk": path.load_s,
        "wait": waited_s / len(devices),
    }


def _without_runtime(predicted: Simulated) -> list[Span | Mark]:
    """The trace with operations as a native run records them: without what the runtime adds before them."""
    devices = {device.name: device for device in predicted.report.spec.cluster.devices}
    found: list[Span | Mark] = []
    for item in predicted.trace:
        if isinstance(item, Span) and item.kind == "compute":
            added_s = min(runtime_s(devices[item.device], item.flops), item.end_s - item.start_s)
            item = replace(item, start_s=item.start_s + added_s)
        found.append(item)
    return found
