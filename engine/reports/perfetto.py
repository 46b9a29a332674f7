"""Converts a trace to Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open.

One process per device; threads compute, send, recv, load and wait; a flow arrow from every send to its
recv; instant events for marks; memory as a counter. Times are virtual microseconds.
Format: "Trace Event Format", the Chrome project.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.trace import Mark, Span

Event = dict[str, Any]

THREADS = ("compute", "send", "recv", "load", "store", "wait", "stage", "evict")
RESOLUTION_US = 0.001
RUN_PROCESS = 0  # marks that belong to no device
LANES = 100  # thread ids of one kind: messages of several peers overlap, and slices of a thread may not


def chrome_trace(cluster: ClusterSpec, trace: Sequence[Span | Mark], title: str = "") -> Event:
    """The JSON object to write; `trace` in any order."""
    processes = {device.name: index + 1 for index, device in enumerate(cluster.devices)}
    spans = sorted((item for item in trace if isinstance(item, Span)), key=lambda span: span.start_s)
    events = [_name("process_name", RUN_PROCESS, 0, title or cluster.name)]
    events += [_name("process_name", number, 0, device) for device, number in processes.items()]
    lanes = _Lanes()
    for span in spans:
        thread = lanes.place(span)
        events.append(_slice(span, processes[span.device], thread))
        if span.kind in ("send", "recv") and span.message >= 0:
            events.append(_flow(span, processes[span.device], thread))
    events += [
        _name("thread_name", processes[device], thread, label) for device, thread, label in lanes.labels()
    ]
    for mark in (item for item in trace if isinstance(item, Mark)):
        events += _mark(mark, processes.get(mark.device, RUN_PROCESS))
    return {"displayTimeUnit": "ms", "traceEvents": events}


class _Lanes:
    """Assigns spans of one device and kind to threads, so that the slices of a thread never overlap.

    The viewer shows overlapping slices of one thread wrongly.
    """

    def __init__(self) -> None:
        self.busy_until_s: dict[tuple[str, str], list[float]] = {}

    def place(self, span: Span) -> int:
        """Thread id of a free lane. Call it in the order of the spans' starts."""
        lanes = self.busy_until_s.setdefault((span.device, span.kind), [])
        for lane, until_s in enumerate(lanes):
            if until_s <= span.start_s:
                lanes[lane] = span.end_s
                break
        else:
            lane = len(lanes)
            lanes.append(span.end_s)
        return THREADS.index(span.kind) * LANES + lane + 1

    def labels(self) -> Iterable[tuple[str, int, str]]:
        for (device, kind), lanes in self.busy_until_s.items():
            for lane in range(len(lanes)):
                label = kind if lane == 0 else f"{kind} {lane + 1}"
                yield device, THREADS.index(kind) * LANES + lane + 1, label


def _slice(span: Span, process: int, thread: int) -> Event:
    facts = {
        "layer": span.layer,
        "bytes": span.bytes,
        "payload_bytes": span.payload_bytes,
        "flops": span.flops,
        "peer": span.peer,
        "request": span.request,
        "token": span.token,
        "message": span.message,
    }
    default = Span("", "compute", "", -1, 0.0, 0.0)
    return {
        "ph": "X",
        "name": span.name or span.kind,
        "cat": span.kind,
        "pid": process,
        "tid": thread,
        "ts": _us(span.start_s),
        "dur": _us(span.end_s) - _us(span.start_s),
        "args": {key: value for key, value in facts.items() if value != getattr(default, key)},
    }


def _flow(span: Span, process: int, thread: int) -> Event:
    """The arrow's tail at the send's start, its head at the recv's end; both carry one id."""
    src, dst = (span.device, span.peer) if span.kind == "send" else (span.peer, span.device)
    event: Event = {
        "name": "message",
        "cat": "message",
        "id": f"{src}>{dst}#{span.message}",
        "pid": process,
        "tid": thread,
    }
    if span.kind == "send":
        return event | {"ph": "s", "ts": _us(span.start_s)}
    last_inside = max(_us(span.start_s), _us(span.end_s) - RESOLUTION_US)  # slices are half-open
    return event | {"ph": "f", "bp": "e", "ts": last_inside}


def _mark(mark: Mark, process: int) -> list[Event]:
    if mark.name == "memory":
        counted = {"resident_bytes": mark.facts.get("resident_bytes", 0)}
        at_us = _us(mark.time_s)
        return [{"ph": "C", "name": "memory", "pid": process, "tid": 0, "ts": at_us, "args": counted}]
    scope = "p" if mark.device else "g"
    return [
        {
            "ph": "i",
            "s": scope,
            "name": mark.name,
            "cat": "mark",
            "pid": process,
            "tid": 0,
            "ts": _us(mark.time_s),
            "args": mark.facts,
        }
    ]


def _name(what: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)  # RESOLUTION_US
