"""The critical path: its parts add up whatever the trace, and a random schedule is explained exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.trace import Span
from engine.reports.attribution import attribute, critical_path

NAMES = ("a", "b", "c")


def cluster(staging_byte_per_s: float | None = None) -> ClusterSpec:
    devices = tuple(
        DeviceSpec(
            name=name,
            flop_per_s=1e9,
            memory_bytes=1e9,
            memory_byte_per_s=1e9,
            staging_byte_per_s=staging_byte_per_s,
        )
        for name in NAMES
    )
    links = tuple(LinkSpec(a=x, b=y, bit_per_s=1e6) for x, y in (("a", "b"), ("b", "c"), ("a", "c")))
    return ClusterSpec(name="triangle", source="a", devices=devices, links=links)


times = st.floats(min_value=0, max_value=100, allow_subnormal=False)


@st.composite
def any_spans(draw: st.DrawFn) -> Span:
    start_s, end_s = sorted((draw(times), draw(times)))
    kind = draw(st.sampled_from(["compute", "send", "recv", "load", "stage", "wait"]))
    return Span(
        draw(st.sampled_from(NAMES)),
        kind,
        "x",
        0,
        start_s,
        end_s,
        bytes=draw(st.integers(0, 10**6)),
        peer=draw(st.sampled_from(NAMES)),
        message=draw(st.integers(-1, 3)),
    )


@given(st.lists(any_spans(), max_size=40), times, times, st.sampled_from([None, 1e5]))
def test_the_parts_add_up_to_the_latency_whatever_the_trace(
    spans: list[Span], one_s: float, other_s: float, staging: float | None
) -> None:
    start_s, end_s = sorted((one_s, other_s))
    parts = attribute(spans, cluster(staging), "a", start_s, end_s)
    values = list(parts.model_dump().values())
    assert sum(values) == pytest.approx(end_s - start_s, abs=1e-9)
    assert min(values) >= 0


@given(st.lists(any_spans(), max_size=40), times, times, st.lists(times, max_size=12, unique=True))
def test_what_is_idle_of_the_waiting_is_what_lies_in_idle_times(
    spans: list[Span], one_s: float, other_s: float, ends_s: list[float]
) -> None:
    """Every waiting segment against every idle time."""
    start_s, end_s = sorted((one_s, other_s))
    ordered = sorted(ends_s)
    idle = list(zip(ordered[::2], ordered[1::2], strict=False))
    parts = attribute(spans, cluster(), "a", start_s, end_s, idle)
    waits = [one for one in critical_path(spans, cluster(), "a", start_s, end_s) if one.span is None]
    expected_s = sum(
        max(0.0, min(wait.end_s, stop) - max(wait.start_s, start)) for wait in waits for start, stop in idle
    )
    assert parts.idle_s == pytest.approx(expected_s, abs=1e-9)
    assert parts.idle_s + parts.wait_s == pytest.approx(sum(wait.end_s - wait.start_s for wait in waits))


steps = st.lists(
    st.tuples(st.sampled_from(["compute", "load", "move"]), st.integers(1, 1000), st.sampled_from(NAMES)),
    min_size=1,
    max_size=30,
)


later = st.tuples(st.sampled_from(NAMES), st.integers(0, 10000), st.integers(1, 50))


@given(steps, st.lists(later, max_size=5))
def test_a_chain_of_work_is_explained_exactly(
    chain: list[tuple[str, int, str]], noise: list[tuple[str, int, int]]
) -> None:
    """One baton goes from device to device and ends at the source: its path is the critical one.

    What a device computes after it gave the baton away for good must not be counted.
    """
    holder, now, spans, numbers = "a", 0, [], {}
    expected = {"compute": 0, "load": 0, "move": 0}
    for what, duration, target in [*chain, ("move", 7, "a")]:
        if what != "move":
            spans.append(Span(holder, what, "x", 0, now, now + duration))  # type: ignore[arg-type]
        elif target == holder:
            continue
        else:
            number = numbers[holder, target] = numbers.get((holder, target), -1) + 1
            spans.append(Span(holder, "send", "x", 0, now, now + duration - 0.5, peer=target, message=number))
            spans.append(Span(target, "recv", "x", 0, now, now + duration, peer=holder, message=number))
            holder = target
        expected[what] += duration
        now += duration
    held = [(span.device, span.end_s) for span in spans if span.kind != "send"]
    for device, start, duration in noise:
        if all(end <= start for name, end in held if name == device):
            spans.append(Span(device, "compute", "noise", 0, start, start + duration))
    parts = attribute(spans, cluster(), "a", 0, now)
    found = {"compute": parts.compute_s, "load": parts.load_s, "move": parts.link_s}
    assert found == expected
    assert parts.wait_s == 0


def test_of_two_inputs_the_later_one_is_on_the_path() -> None:
    spans = [
        Span("b", "compute", "slow", 0, 0.0, 5.0),
        Span("c", "compute", "fast", 0, 0.0, 1.0),
        Span("b", "send", "x", 0, 5.0, 6.0, peer="a", message=0),
        Span("c", "send", "x", 0, 1.0, 3.0, peer="a", message=0),
        Span("a", "recv", "x", 0, 5.0, 6.0, peer="b", message=0),
        Span("a", "recv", "x", 0, 1.0, 3.0, peer="c", message=0),
        Span("a", "compute", "sum", 0, 6.0, 7.0),
    ]
    parts = attribute(spans, cluster(), "a", 0.0, 7.0)
    assert (parts.compute_s, parts.link_s, parts.wait_s) == (6.0, 1.0, 0.0)


def test_work_that_hid_behind_a_message_is_not_counted() -> None:
    spans = [
        Span("b", "compute", "x", 0, 0.0, 1.0),
        Span("b", "send", "x", 0, 1.0, 9.0, peer="a", message=0),
        Span("a", "recv", "x", 0, 1.0, 9.0, peer="b", message=0),
        Span("a", "compute", "hidden", 0, 0.0, 8.0),
    ]
    parts = attribute(spans, cluster(), "a", 0.0, 9.0)
    assert (parts.compute_s, parts.link_s) == (1.0, 8.0)


def test_the_queue_behind_an_earlier_message_counts_as_link_time() -> None:
    """recv begins when the sender began to transmit; the send began when it was asked for."""
    spans = [
        Span("b", "compute", "x", 0, 0.0, 2.0),
        Span("b", "send", "x", 0, 2.0, 9.0, peer="a", message=4),
        Span("a", "recv", "x", 0, 6.0, 9.0, peer="b", message=4),
    ]
    parts = attribute(spans, cluster(), "a", 0.0, 9.0)
    assert (parts.compute_s, parts.link_s, parts.wait_s) == (2.0, 7.0, 0.0)


def test_copies_to_and_from_an_accelerator_are_staging() -> None:
    spans = [
        Span("b", "send", "x", 0, 0.0, 3.0, bytes=100_000, peer="a", message=0),
        Span("a", "recv", "x", 0, 0.0, 4.0, bytes=100_000, peer="b", message=0),
    ]
    parts = attribute(spans, cluster(1e5), "a", 0.0, 4.0)
    assert (parts.staging_s, parts.link_s) == (2.0, 2.0)


def test_a_blocking_send_holds_up_the_sender() -> None:
    spans = [
        Span("a", "compute", "x", 0, 0.0, 1.0),
        Span("a", "send", "x", 0, 1.0, 4.0, peer="b", message=0),
        Span("a", "compute", "x", 0, 4.0, 5.0),
    ]
    parts = attribute(spans, cluster(), "a", 0.0, 5.0)
    assert (parts.compute_s, parts.link_s) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("one", "other", "part"),
    [
        ("compute", "load", "compute_s"),
        ("compute", "store", "compute_s"),
        ("load", "stage", "load_s"),
        ("store", "stage", "load_s"),
        ("stage", "send", "staging_s"),
        ("stage", "recv", "staging_s"),
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_of_two_activities_that_end_together_the_devices_own_work_counts_first(
    one, other, part, first
) -> None:
    kinds = (one, other) if first == 0 else (other, one)
    spans = [Span("a", kind, "x", 0, 0.0, 2.0, peer="b") for kind in kinds]
    parts = attribute(spans, cluster(), "a", 0.0, 2.0)
    assert getattr(parts, part) == 2.0


@pytest.mark.parametrize("order", [1, -1])
def test_a_message_that_came_as_a_sending_ended_is_on_the_path(order) -> None:
    spans = [
        Span("b", "compute", "x", 0, 0.0, 1.0),
        Span("b", "send", "x", 0, 1.0, 2.0, peer="a", message=0),
        Span("a", "recv", "x", 0, 1.0, 2.0, peer="b", message=0),
        Span("a", "send", "x", 0, 0.0, 2.0, peer="b", message=0),
    ]
    parts = attribute(spans[::order], cluster(), "a", 0.0, 2.0)
    assert (parts.compute_s, parts.link_s) == (1.0, 1.0)
