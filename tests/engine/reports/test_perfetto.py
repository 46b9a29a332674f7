"""The Chrome trace: what the viewer needs to draw slices, arrows, instants and names."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.trace import Mark, Span
from engine.reports.perfetto import chrome_trace

CLUSTER = ClusterSpec(
    name="pair",
    source="a",
    devices=tuple(
        DeviceSpec(name=name, flop_per_s=1e9, memory_bytes=1e9, memory_byte_per_s=1e9) for name in ("a", "b")
    ),
    links=(LinkSpec(a="a", b="b", bit_per_s=1e6),),
)
TRACE: list[Span | Mark] = [
    Span("a", "compute", "attention", 3, 0.0, 1.0, flops=5, request=0, token=0),
    Span("a", "send", "L3", 3, 1.0, 2.0, bytes=10, peer="b", message=0),
    Span("b", "recv", "L3", 3, 1.0, 2.5, bytes=10, peer="a", message=0),
    Span("b", "wait", "recv L3 from a", -1, 0.0, 2.5),
    Mark(2.5, "token_emitted", "a", {"token": 4}),
    Mark(2.5, "link_changed", facts={"link": "a--b"}),
    Mark(2.5, "memory", "b", {"resident_bytes": 7, "peak_bytes": 9}),
]


@pytest.fixture
def events() -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(json.dumps(chrome_trace(CLUSTER, TRACE)))["traceEvents"]
    return data


def of_phase(events: list[dict[str, Any]], phase: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == phase]


def test_every_device_is_a_named_process(events: list[dict[str, Any]]) -> None:
    named = [event for event in of_phase(events, "M") if event["name"] == "process_name"]
    names = {event["pid"]: event["args"]["name"] for event in named}
    assert names == {0: "pair", 1: "a", 2: "b"}


def test_every_slice_lies_on_a_thread_named_after_its_kind(events: list[dict[str, Any]]) -> None:
    threads = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in of_phase(events, "M")
        if event["name"] == "thread_name"
    }
    slices = of_phase(events, "X")
    assert len(slices) == 4
    for event in slices:
        assert threads[event["pid"], event["tid"]] == event["cat"]


def test_times_are_virtual_microseconds(events: list[dict[str, Any]]) -> None:
    (compute,) = (event for event in of_phase(events, "X") if event["cat"] == "compute")
    assert (compute["ts"], compute["dur"]) == (0, 1e6)
    assert compute["args"] == {"layer": 3, "flops": 5, "request": 0, "token": 0}


def test_an_arrow_leads_from_the_send_into_the_recv(events: list[dict[str, Any]]) -> None:
    (tail,), (head,) = of_phase(events, "s"), of_phase(events, "f")
    assert tail["id"] == head["id"]
    assert (tail["pid"], head["pid"]) == (1, 2)
    (recv,) = (event for event in of_phase(events, "X") if event["cat"] == "recv")
    assert recv["ts"] <= head["ts"] < recv["ts"] + recv["dur"]
    assert head["tid"] == recv["tid"] and head["bp"] == "e"


def test_marks_are_instants_of_their_device_or_of_the_run(events: list[dict[str, Any]]) -> None:
    instants = {event["name"]: (event["pid"], event["s"]) for event in of_phase(events, "i")}
    assert instants == {"token_emitted": (1, "p"), "link_changed": (0, "g")}
    (counter,) = of_phase(events, "C")
    assert counter["args"] == {"resident_bytes": 7} and counter["pid"] == 2


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=20))
def test_slices_of_one_thread_never_overlap(times: list[tuple[int, int]]) -> None:
    spans = [Span("a", "send", "x", 0, start, start + length, peer="b") for start, length in times]
    slices = of_phase(chrome_trace(CLUSTER, spans)["traceEvents"], "X")
    assert len(slices) == len(spans)
    for thread in {event["tid"] for event in slices}:
        lane = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == thread)
        assert all(end <= start for (_, end), (start, _) in pairwise(lane))
