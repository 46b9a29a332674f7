"""The fold on small traces whose report can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.network import LinkMeasurement
from engine.domain.report import Outcome, RunReport
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.reports.fold import covered_s, fold, idle_times
from tests.support.tiny_run import MODEL


def device(name: str, **more: object) -> DeviceSpec:
    return DeviceSpec.model_validate(
        {"name": name, "flop_per_s": 1e9, "memory_bytes": 1e6, "memory_byte_per_s": 1e9} | more
    )


CLUSTER = ClusterSpec(
    name="pair",
    source="a",
    devices=(device("a"), device("b")),
    switches=(SwitchSpec(name="s"),),
    links=(
        LinkSpec(a="a", b="s", bit_per_s=8e6),
        LinkSpec(a="s", b="b", bit_per_s=8e6, reverse_bit_per_s=4e6),
    ),
)
SPEC = RunSpec(cluster=CLUSTER, model=MODEL, strategy="gpipe", seed=7)

# a computes 0-1, sends 1-1.5, b computes 1.5-3, sends back 3-3.5, a emits at 3.5; then once more, faster.
TRACE: list[Span | Mark] = [
    Mark(0.0, "request_arrived", "a", {"request": 0}),
    Span("a", "compute", "block", 0, 0.0, 1.0, bytes=10, flops=100, request=0, token=0),
    Span("a", "send", "L1", 1, 1.0, 1.5, bytes=1000, payload_bytes=900, peer="b", message=0),
    Span("b", "recv", "L1", 1, 1.0, 1.5, bytes=1000, payload_bytes=900, peer="a", message=0),
    Span("b", "wait", "recv L1 from a", -1, 0.0, 1.5),
    Span("b", "compute", "block", 1, 1.5, 3.0, flops=150, request=0, token=0),
    Span("b", "send", "out", -1, 3.0, 3.5, bytes=500, payload_bytes=400, peer="a", message=0),
    Span("a", "recv", "out", -1, 3.0, 3.5, bytes=500, payload_bytes=400, peer="b", message=0),
    Span("a", "wait", "recv out from b", -1, 1.5, 3.5),
    Mark(3.5, "token_emitted", "a", {"request": 0, "index": 0, "token": 5, "text": "Hel"}),
    Span("a", "compute", "block", 0, 3.5, 4.0, flops=10, request=0, token=1),
    Mark(4.0, "token_emitted", "a", {"request": 0, "index": 1, "token": 6, "text": "lo"}),
    Mark(4.0, "memory", "a", {"resident_bytes": 10, "peak_bytes": 30}),
    Mark(4.1, "memory", "a", {"resident_bytes": 10, "peak_bytes": 20}),
    Mark(4.0, "request_finished", "a", {"request": 0}),
]


@pytest.fixture
def report() -> RunReport:
    return fold(SPEC, None, TRACE, world="predicted")


def test_latencies_count_from_the_arrival(report: RunReport) -> None:
    assert report.latency_s == 4.0
    assert report.ttft_s == 3.5
    assert report.tpot_s == 0.5
    assert report.tokens_per_s == 0.5
    assert report.requests[0].token_s == (3.5, 4.0)


def test_tokens_and_text_are_those_of_the_first_request(report: RunReport) -> None:
    assert report.output_tokens == (5, 6)
    assert report.text == "Hello"


def test_devices_know_their_work_waiting_and_peak(report: RunReport) -> None:
    a, b = report.devices
    assert (a.busy_s, a.wait_s, a.flops, a.peak_memory_bytes, a.memory_bytes) == (1.5, 2.0, 110, 30, 1e6)
    assert (b.busy_s, b.wait_s, b.flops, b.peak_memory_bytes) == (1.5, 1.5, 150, 0)


def test_operations_one_after_the_other_and_at_once_count_the_time_that_any_of_them_took() -> None:
    computed = [
        Span("a", "compute", "block", 0, start_s, end_s)
        for start_s, end_s in ((0.0, 1.0), (1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (7.0, 8.0), (6.0, 7.0))
    ]
    report = fold(SPEC, None, computed, world="predicted")
    assert report.devices[0].busy_s == 7.0


def test_links_count_every_hop_in_its_direction(report: RunReport) -> None:
    figures = {
        (link.a, link.b, link.direction): (link.bytes, link.payload_bytes, link.busy_s, link.rate_bit_per_s)
        for link in report.links
    }
    assert figures == {
        ("a", "s", "forward"): (1000, 900, 1e-3, 8e6),
        ("a", "s", "backward"): (500, 400, 5e-4, 8e6),
        ("s", "b", "forward"): (1000, 900, 1e-3, 8e6),
        ("s", "b", "backward"): (500, 400, 1e-3, 4e6),
    }


def test_of_parallel_links_the_fastest_carries_a_direction_and_is_named_by_its_number() -> None:
    second = CLUSTER.links[0].model_copy(update={"parallel": 2, "bit_per_s": 16e6, "reverse_bit_per_s": 1e6})
    cluster = ClusterSpec.model_validate(CLUSTER.model_dump() | {"links": (*CLUSTER.links, second)})
    report = fold(SPEC.model_copy(update={"cluster": cluster}), None, TRACE, world="predicted")
    carried = {link.words: link.bytes for link in report.links if "a" in link.words}
    assert carried == {"a → s": 0, "s → a": 500, "a → s (2)": 1000, "s → a (2)": 0}


def test_energy_is_that_of_computing_of_bytes_moved_and_of_bytes_on_links() -> None:
    """a computes 1.5 s and moves 10 B, b 1.5 s and loads 40 B; 1500 B cross either link."""
    watt = {"watts": 2.0, "j_per_memory_byte": 0.1, "j_per_disk_byte": 0.5}
    cluster = CLUSTER.model_copy(
        update={
            "devices": (device("a", **watt), device("b", **watt)),
            "links": (CLUSTER.links[0].model_copy(update={"j_per_byte": 0.01}), CLUSTER.links[1]),
        }
    )
    trace = [*TRACE, Span("b", "load", "ffn", 1, 0.0, 0.5, bytes=40)]
    report = fold(SPEC.model_copy(update={"cluster": cluster}), None, trace, world="predicted")
    assert [device.energy_j for device in report.devices] == [4.0, 23.0]
    assert [link.energy_j for link in report.links] == [10.0, 5.0, 0.0, 0.0]
    assert report.energy_j == 42.0 and report.edp_j_s == 42.0 * report.latency_s


def test_a_cluster_that_does_not_say_what_things_take_has_no_energy(report: RunReport) -> None:
    assert report.energy_j == report.edp_j_s == 0.0


def test_a_changed_rate_counts_from_its_time_and_direction() -> None:
    change = {"link": "b--s", "bit_per_s": 1e6, "direction": "backward"}
    report = fold(SPEC, None, [*TRACE, Mark(2.0, "link_changed", facts=change)], world="predicted")
    busy_s = {(link.a, link.direction): link.busy_s for link in report.links}
    assert busy_s["s", "backward"] == 4e-3
    assert busy_s["s", "forward"] == 1e-3


def test_a_rate_that_is_changed_in_one_direction_stays_in_the_other() -> None:
    # the message forward begins at 1.0, after the change: still 1000 bytes at 1 MB/s
    change = {"link": "b--s", "bit_per_s": 1e6, "direction": "backward"}
    report = fold(SPEC, None, [*TRACE, Mark(0.5, "link_changed", facts=change)], world="predicted")
    busy_s = {link.direction: link.busy_s for link in report.links if link.a == "s"}
    assert busy_s == {"forward": 1e-3, "backward": 4e-3}


def test_measured_rates_land_on_their_link_and_direction() -> None:
    measured = [LinkMeasurement(1, False, 4e6, 3.9e6, "tbf")]
    report = fold(SPEC, None, TRACE, world="emulated", measured=measured, dilation=2.0)
    assert [link.achieved_bit_per_s for link in report.links] == [None, None, None, 3.9e6]
    assert report.world == "emulated" and report.dilation == 2.0


def test_layers_are_those_of_the_first_forward_pass(report: RunReport) -> None:
    assert [(row.layer, row.device, row.start_s, row.end_s) for row in report.layers] == [
        (0, "a", 0.0, 1.0),
        (1, "b", 1.5, 3.0),
    ]


def test_what_belongs_to_no_layer_is_in_none() -> None:
    outside = [Span("a", "compute", name, -1, 0.0, 0.5, request=0, token=0) for name in ("embed", "head")]
    assert [row.layer for row in fold(SPEC, None, [*outside, *TRACE], world="predicted").layers] == [0, 1]


def test_the_latency_is_attributed_along_the_critical_path(report: RunReport) -> None:
    parts = report.attribution
    assert (parts.compute_s, parts.link_s, parts.wait_s) == (3.0, 1.0, 0.0)


def test_time_in_which_nothing_ended_is_waiting() -> None:
    late = [
        replace(item, time_s=item.time_s + 2) if isinstance(item, Mark) and item.time_s == 4.0 else item
        for item in TRACE
    ]
    report = fold(SPEC, None, late, world="predicted")
    assert report.latency_s == 6.0
    assert report.attribution.wait_s == 2.0


def test_a_burst_counts_each_request_from_its_own_arrival() -> None:
    trace: list[Span | Mark] = [
        Mark(1.0, "request_arrived", "a", {"request": 0}),
        Mark(2.0, "request_arrived", "a", {"request": 1}),
        *(
            Mark(time_s, "token_emitted", "a", {"request": request, "index": index, "token": 1})
            for time_s, request, index in ((2.0, 0, 0), (3.0, 0, 1), (5.0, 1, 0), (8.0, 1, 1))
        ),
        Mark(3.0, "request_finished", "a", {"request": 0}),
        Mark(8.0, "request_finished", "a", {"request": 1}),
    ]
    report = fold(SPEC, None, trace, world="predicted")
    assert report.latency_s == 7.0
    assert report.ttft_s == 2.0
    assert report.tpot_s == 2.0
    assert report.tokens_per_s == 4 / 7


def test_the_answer_of_a_run_is_that_of_its_first_request() -> None:
    trace: list[Span | Mark] = [
        mark
        for request, text in ((1, "second"), (0, "first"), (2, "third"))
        for mark in (
            Mark(0.0, "request_arrived", "a", {"request": request}),
            Mark(0.5, "token_emitted", "a", {"request": request, "index": 0, "token": request, "text": text}),
        )
    ]
    report = fold(SPEC, None, trace, world="predicted")
    assert (report.text, report.output_tokens) == ("first", (0,))
    assert report.tokens_per_s == 3 / 0.5


def test_an_encoders_first_output_is_its_answer() -> None:
    trace: list[Span | Mark] = [
        Mark(1.0, "request_arrived", "a", {"request": 0}),
        Mark(3.0, "request_finished", "a", {"request": 0}),
    ]
    report = fold(SPEC, None, trace, world="predicted")
    assert (report.latency_s, report.ttft_s, report.tpot_s, report.output_tokens) == (2.0, 2.0, 0.0, ())


def test_simulated_tokens_have_no_identity() -> None:
    nameless = [
        replace(item, facts=item.facts | {"token": None, "text": None}) if isinstance(item, Mark) else item
        for item in TRACE
    ]
    report = fold(SPEC, None, nameless, world="predicted")
    assert report.output_tokens == () and report.text == ""
    assert report.requests[0].token_s == (3.5, 4.0)


def test_an_unfinished_run_is_reported_up_to_its_last_token() -> None:
    outcome = Outcome(kind="peer_lost", sentence="b failed.", device="b", time_s=3.7)
    report = fold(SPEC, None, TRACE[:10], world="emulated", outcome=outcome)
    assert report.latency_s == 3.5
    assert report.outcome == outcome
    assert report.attribution.compute_s == 2.5


def test_a_run_that_never_began_is_all_zeros() -> None:
    report = fold(SPEC, None, [], world="emulated", outcome=Outcome(kind="out_of_memory"))
    assert report.latency_s == report.ttft_s == report.tokens_per_s == 0
    assert [row.name for row in report.devices] == ["a", "b"]
    assert len(report.links) == 4


def test_a_report_survives_json(report: RunReport) -> None:
    assert RunReport.model_validate_json(report.model_dump_json()) == report


def test_the_order_of_the_trace_does_not_matter(report: RunReport) -> None:
    assert fold(SPEC, None, TRACE[::-1], world="predicted") == report


def test_overlapping_intervals_are_covered_once() -> None:
    assert covered_s([(5, 6), (0, 2), (1, 3), (1, 2)]) == 4
    assert covered_s([]) == 0


def test_rows_that_the_disk_writes_take_energy_like_those_that_it_reads() -> None:
    cluster = CLUSTER.model_copy(update={"devices": (device("a", j_per_disk_byte=0.5), device("b"))})
    trace = [*TRACE, Span("a", "store", "kv_rows", 1, 0.0, 0.5, bytes=40)]
    report = fold(SPEC.model_copy(update={"cluster": cluster}), None, trace, world="predicted")
    assert report.devices[0].energy_j == 20.0


def test_a_message_counts_at_the_rate_at_which_it_began() -> None:
    # the answer of 500 B is sent from 3 to 3.5; the link changes in between
    change = {"link": "s--b", "bit_per_s": 1e6, "direction": "backward"}
    report = fold(SPEC, None, [*TRACE, Mark(3.25, "link_changed", facts=change)], world="predicted")
    assert {(link.a, link.direction): link.busy_s for link in report.links}["s", "backward"] == 1e-3


def test_a_change_counts_for_a_message_that_begins_with_it() -> None:
    change = {"link": "s--b", "bit_per_s": 1e6, "direction": "backward"}
    report = fold(SPEC, None, [*TRACE, Mark(3.0, "link_changed", facts=change)], world="predicted")
    assert {(link.a, link.direction): link.busy_s for link in report.links}["s", "backward"] == 4e-3


def test_between_the_last_answer_or_cancellation_and_the_next_arrival_a_run_is_idle() -> None:
    trace: list[Span | Mark] = [
        *(Mark(at_s, "request_arrived", "a", {"request": number}) for number, at_s in enumerate((0, 10, 20))),
        Mark(2.0, "request_finished", "a", {"request": 0}),
        Mark(13.0, "request_cancelled", "a", {"request": 1}),
        Mark(25.0, "request_finished", "a", {"request": 2}),
    ]
    report = fold(SPEC, None, trace, world="predicted")
    assert [request.answered_s for request in report.requests] == [2.0, None, 5.0]
    assert [request.cancelled_s for request in report.requests] == [None, 3.0, None]
    assert idle_times(report.requests) == ((2.0, 10.0), (13.0, 20.0))
    assert (report.attribution.idle_s, report.attribution.wait_s) == (15.0, 10.0)


def test_an_unfinished_run_of_two_tokens_ends_with_the_second() -> None:
    trace: list[Span | Mark] = [
        Mark(0.0, "request_arrived", "a", {"request": 0}),
        Mark(2.0, "token_emitted", "a", {"request": 0, "index": 0, "token": 1}),
        Mark(3.0, "token_emitted", "a", {"request": 0, "index": 1, "token": 1}),
    ]
    assert fold(SPEC, None, trace, world="emulated", outcome=Outcome(kind="peer_lost")).latency_s == 3.0
