"""Trace → RunReport: a pure fold over spans and marks, the only source of a run's figures.

latency_s     arrival of the first request → the last request's end (its last token in an unfinished run)
ttft_s        first token since arrival, mean over requests (an encoder's: its whole answer)
tpot_s        mean time of every later token since the one before, over all requests
tokens_per_s  all tokens / latency_s
energy_j      of a device: watts × busy_s, and each byte that its operations move and that it loads;
              of a link: each byte on it. Waiting costs nothing. 0 where the cluster states no energy
edp_j_s       energy-delay product: energy of all devices and links × latency_s
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from operator import attrgetter
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.network import LinkMeasurement
from engine.domain.plan import Plan
from engine.domain.report import (
    ClassReport,
    DeviceReport,
    LayerReport,
    LinkReport,
    Outcome,
    RequestReport,
    RunReport,
)
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.units import transfer_s
from engine.domain.world import World
from engine.reports.attribution import attribute
from engine.reports.load import load_report
from engine.reports.metrics import METRICS
from engine.reports.outside import figures_of
from engine.reports.recoveries import fold_recoveries

Interval = tuple[float, float]


def fold(
    spec: RunSpec,
    plan: Plan | None,
    trace: Sequence[Span | Mark],
    world: World,
    outcome: Outcome = Outcome(),  # noqa: B008  (a frozen value)
    dilation: float = 1.0,
    measured: Sequence[LinkMeasurement] = (),
) -> RunReport:
    """The figures of a trace of `spec`; the caller adds correctness, fidelity and prediction."""
    spans = [item for item in trace if isinstance(item, Span)]
    marks = [item for item in trace if isinstance(item, Mark)]
    requests, ends_s = fold_requests(marks)
    start_s = min((request.arrival_s for request in requests), default=0.0)
    end_s = max(ends_s, default=start_s)
    latency_s = end_s - start_s
    num_tokens = sum(len(request.token_s) for request in requests)
    devices = fold_devices(spec.cluster, spans, marks)
    links = fold_links(spec.cluster, spans, marks, measured)
    energy_j = sum(device.energy_j for device in devices) + sum(link.energy_j for link in links)
    report = RunReport(
        spec=spec,
        plan=plan,
        world=world,
        dilation=dilation,
        outcome=outcome,
        latency_s=latency_s,
        ttft_s=_mean(request.ttft_s for request in requests if request.ttft_s > 0),
        tpot_s=_mean(b - a for request in requests for a, b in pairwise(request.token_s)),
        tokens_per_s=num_tokens / latency_s if latency_s > 0 else 0.0,
        energy_j=energy_j,
        edp_j_s=energy_j * latency_s,
        output_tokens=requests[0].output_tokens if requests else (),
        text=requests[0].text if requests else "",
        requests=requests,
        load=load_report(spec.workload, requests, latency_s) if spec.workload.is_queued else None,
        devices=devices,
        links=links,
        layers=fold_layers(spans),
        attribution=attribute(spans, spec.cluster, spec.cluster.source, start_s, end_s, idle_times(requests)),
        recoveries=fold_recoveries(marks),
        scenario=spec.scenario,
        seed=spec.seed,
    )
    figures = figures_of(report, trace, METRICS)
    return report.model_copy(update={"figures": figures}) if figures else report


def fold_requests(marks: Iterable[Mark]) -> tuple[tuple[RequestReport, ...], list[float]]:
    """The requests that arrived, in order of their index, and when each ended (or got its last token)."""
    arrival_s: dict[int, float] = {}
    begun_s: dict[int, float] = {}
    finish_s: dict[int, float] = {}
    cancel_s: dict[int, float] = {}
    tokens: dict[int, list[Mark]] = defaultdict(list)
    classes: dict[int, tuple[ClassReport, ...]] = {}
    for mark in marks:
        match mark.name:
            case "request_arrived":
                arrival_s[mark.facts["request"]] = mark.time_s
            case "request_begun":
                begun_s[mark.facts["request"]] = mark.time_s
            case "token_emitted":
                tokens[mark.facts["request"]].append(mark)
            case "classified":
                found = (ClassReport(**one) for one in mark.facts["classes"])
                classes[mark.facts["request"]] = tuple(found)
            case "request_finished":
                finish_s[mark.facts["request"]] = mark.time_s
            case "request_cancelled":
                cancel_s[mark.facts["request"]] = mark.time_s
    reports, ends_s = [], []
    for index, arrived_s in sorted(arrival_s.items()):
        emitted = sorted(tokens[index], key=lambda mark: mark.facts["index"])
        token_s = tuple(mark.time_s - arrived_s for mark in emitted)
        if index in finish_s:
            ends_s.append(finish_s[index])
        elif emitted:
            ends_s.append(emitted[-1].time_s)
        answered_s = finish_s.get(index, arrived_s) - arrived_s
        reports.append(
            RequestReport(
                index=index,
                arrival_s=arrived_s,
                ttft_s=token_s[0] if token_s else answered_s,
                token_s=token_s,
                output_tokens=tuple(m.facts["token"] for m in emitted if m.facts.get("token") is not None),
                text="".join(mark.facts.get("text") or "" for mark in emitted)
                or _named(classes.get(index, ())),
                classes=classes.get(index, ()),
                queue_s=begun_s[index] - arrived_s if index in begun_s else None,
                answered_s=answered_s if index in finish_s else None,
                cancelled_s=cancel_s[index] - arrived_s if index in cancel_s else None,
            )
        )
    return tuple(reports), ends_s


def idle_times(requests: Iterable[RequestReport]) -> tuple[Interval, ...]:
    """When no request was there, between the first arrival and the last answer."""
    idle: list[Interval] = []
    busy_until_s: float | None = None
    for request in sorted(requests, key=lambda request: request.arrival_s):
        if busy_until_s is not None and request.arrival_s > busy_until_s:
            idle.append((busy_until_s, request.arrival_s))
        took_s = request.cancelled_s if request.answered_s is None else request.answered_s
        ended_s = inf if took_s is None else request.arrival_s + took_s
        busy_until_s = max(busy_until_s or 0.0, ended_s)
    return tuple(idle)


def _named(classes: Sequence[ClassReport]) -> str:
    """The most likely class in words."""
    if not classes:
        return ""
    best = classes[0]
    return f"{best.label or f'class {best.index}'} ({best.probability:.0%})"


def fold_devices(
    cluster: ClusterSpec, spans: Iterable[Span], marks: Iterable[Mark]
) -> tuple[DeviceReport, ...]:
    """The figures of every device. busy_s: computing. wait_s: a program was blocked on a message and nothing
    was being computed.
    """
    busy: dict[str, list[Interval]] = defaultdict(list)
    waits: dict[str, list[Interval]] = defaultdict(list)
    flops: dict[str, int] = defaultdict(int)
    peak_bytes: dict[str, int] = defaultdict(int)
    moved_bytes: dict[tuple[str, str], int] = defaultdict(int)
    for span in spans:
        kind, name = span.kind, span.device
        if kind == "compute":
            _append(busy[name], span.start_s, span.end_s)
            flops[name] += span.flops
            moved_bytes[name, "compute"] += span.bytes
        elif kind == "wait":
            waits[name].append((span.start_s, span.end_s))
        elif kind == "load" or kind == "store":
            moved_bytes[name, kind] += span.bytes
    for mark in marks:
        if mark.name == "memory":
            peak_bytes[mark.device] = max(peak_bytes[mark.device], mark.facts["peak_bytes"])
    reports = []
    for device in cluster.devices:
        busy_s = covered_s(busy[device.name])
        either_s = covered_s(busy[device.name] + waits[device.name])
        reports.append(
            DeviceReport(
                name=device.name,
                busy_s=busy_s,
                wait_s=max(0.0, either_s - busy_s),
                peak_memory_bytes=peak_bytes[device.name],
                memory_bytes=device.usable_bytes,
                flops=flops[device.name],
                energy_j=device.watts * busy_s
                + device.j_per_memory_byte * moved_bytes[device.name, "compute"]
                + device.j_per_disk_byte
                * (moved_bytes[device.name, "load"] + moved_bytes[device.name, "store"]),
            )
        )
    return tuple(reports)


def fold_links(
    cluster: ClusterSpec,
    spans: Iterable[Span],
    marks: Iterable[Mark],
    measured: Sequence[LinkMeasurement] = (),
) -> tuple[LinkReport, ...]:
    """The figures of both directions of every link. busy_s: bytes at the rate that was set when their message
    began.
    """
    achieved = {(row.link, row.forward): row.achieved_bit_per_s for row in measured}
    size_bytes: dict[tuple[int, bool], int] = defaultdict(int)
    payload_bytes: dict[tuple[int, bool], int] = defaultdict(int)
    busy_s: dict[tuple[int, bool], float] = defaultdict(float)
    first_bytes: dict[tuple[int, bool], int] = defaultdict(int)
    first_busy_s: dict[tuple[int, bool], float] = defaultdict(float)
    rates = _Rates(cluster, marks)
    ways: dict[tuple[str, str], list[tuple[int, bool]]] = {}
    for span in spans:
        if span.kind != "send":
            continue
        pair = (span.device, span.peer)
        if pair not in ways:
            path = cluster.path(cluster.rank(span.device), cluster.rank(span.peer))
            ways[pair] = [(hop.link, hop.forward) for hop in path]
        for way in ways[pair]:
            took_s = transfer_s(span.bytes, rates.at(way, span.start_s))
            size_bytes[way] += span.bytes
            payload_bytes[way] += span.payload_bytes
            busy_s[way] += took_s
            if span.token <= 0:
                first_bytes[way] += span.bytes
                first_busy_s[way] += took_s
    directions: tuple[tuple[bool, Any], ...] = ((True, "forward"), (False, "backward"))
    return tuple(
        LinkReport(
            a=link.a,
            b=link.b,
            parallel=link.parallel,
            direction=name,
            bytes=size_bytes[index, forward],
            payload_bytes=payload_bytes[index, forward],
            busy_s=busy_s[index, forward],
            first_bytes=first_bytes[index, forward],
            first_busy_s=first_busy_s[index, forward],
            energy_j=link.j_per_byte * size_bytes[index, forward],
            rate_bit_per_s=link.rate(forward),
            achieved_bit_per_s=achieved.get((index, forward)),
        )
        for index, link in enumerate(cluster.links)
        for forward, name in directions
    )


def fold_layers(spans: Iterable[Span]) -> tuple[LayerReport, ...]:
    """The first forward pass of each layer on each device: the lowest request's lowest token."""
    computed = [span for span in spans if span.kind == "compute" and span.layer >= 0]
    first = min(map(attrgetter("request", "token"), computed), default=None)
    extent: dict[tuple[int, str], Interval] = {}
    for span in computed:
        if (span.request, span.token) == first:
            start_s, end_s = extent.get((span.layer, span.device), (span.start_s, span.end_s))
            extent[span.layer, span.device] = (min(start_s, span.start_s), max(end_s, span.end_s))
    return tuple(
        LayerReport(layer=layer, device=device, start_s=start_s, end_s=end_s)
        for (layer, device), (start_s, end_s) in sorted(extent.items())
    )


def _append(intervals: list[Interval], start_s: float, end_s: float) -> None:
    """Add an interval; one that begins when the last one ends prolongs that."""
    if intervals and intervals[-1][1] == start_s:
        intervals[-1] = (intervals[-1][0], end_s)
    else:
        intervals.append((start_s, end_s))


def covered_s(intervals: Iterable[Interval]) -> float:
    """The length of the union of intervals."""
    total_s, reach_s = 0.0, float("-inf")
    for start_s, end_s in sorted(intervals):
        if end_s > reach_s:
            total_s += end_s - (start_s if start_s > reach_s else reach_s)
            reach_s = end_s
    return total_s


class _Rates:
    """bit/s of each direction of each link over time: the spec's, then what `link_changed` marks say."""

    def __init__(self, cluster: ClusterSpec, marks: Iterable[Mark]):
        self.set = {
            (index, forward): link.rate(forward)
            for index, link in enumerate(cluster.links)
            for forward in (True, False)
        }
        self.changes: dict[tuple[int, bool], list[tuple[float, float]]] = defaultdict(list)
        # changes of delay and loss are marked alike
        changed = [m for m in marks if m.name == "link_changed" and "bit_per_s" in m.facts]
        for mark in sorted(changed, key=lambda m: m.time_s):
            link, direction = cluster.link_index(mark.facts["link"]), mark.facts.get("direction", "both")
            for forward, name in ((True, "forward"), (False, "backward")):
                if direction in ("both", name):
                    self.changes[link, forward].append((mark.time_s, mark.facts["bit_per_s"]))

    def at(self, way: tuple[int, bool], time_s: float) -> float:
        rate = self.set[way]
        for changed_s, bit_per_s in self.changes.get(way, ()):
            if changed_s <= time_s:
                rate = bit_per_s
        return rate


def _mean(values: Iterable[float]) -> float:
    seen = list(values)
    return sum(seen) / len(seen) if seen else 0.0
