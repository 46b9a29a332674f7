"""LIME's own report: stages, loading, thresholds and parked rows, from plan and trace alone."""

import json

import pytest
from test_lime_memory import growing
from test_lime_run import case, marks, spans

from engine.domain.report import RunReport
from engine.runs.predict import predict
from engine.strategies.lime.report import LimeReport, covered_s
from tests.support.small_cases import plan_of, play, star


def test_every_layer_of_every_stage_is_resident_or_streamed_as_the_plan_says():
    spec = case(num_segments=2)
    plan, report = plan_of(spec), predict(spec).method
    assert isinstance(report, LimeReport)
    assert report.mode == "joint" and report.num_segments == 2
    assert report.planned_step_s == plan.layout.planned_step_s
    layers = []
    for device in report.devices:
        rank = spec.cluster.rank(device.name)
        held = set(plan.held_by(rank))
        for number, stage in enumerate(device.stages):
            everything = stage.resident + stage.streamed + stage.attention_streamed + stage.ffn_streamed
            layers += everything
            away = {
                (holding.slice.layer, holding.slice.part)
                for holding in plan.holdings
                if holding.device == rank and holding.home == "offloaded"
            }
            if number:  # the first segment's streamed blocks are in memory when the run starts
                assert {layer for layer, _ in away} >= set(stage.streamed)
                assert {(layer, "attention") for layer in stage.attention_streamed} <= away
                assert {(layer, "ffn") for layer in stage.ffn_streamed} <= away
                assert not {layer for layer, _ in away} & set(stage.resident)
        assert sum(len(stage.streamed) for stage in device.stages) <= 2 * device.slots
        assert held
    assert sorted(layers) == list(range(spec.model.num_layers))


def test_the_loader_is_busy_idle_or_waited_for():
    spec = case(cluster=None, num_segments=2, kv_transfer=False)
    report, trace = predict(spec).method, play(spec)
    end_s = max(span.end_s for span in spans(trace, "compute") + spans(trace, "load") + spans(trace, "recv"))
    streaming = [device for device in report.devices if device.loaded_bytes]
    assert streaming
    for device in report.devices:
        loads = spans(trace, "load", device.name)
        assert device.loaded_bytes == sum(span.bytes for span in loads)
        assert device.loader_busy_s == pytest.approx(
            device.loaded_bytes / spec.cluster.devices[0].disk_byte_per_s
        )
        assert device.loader_busy_s + device.loader_idle_s == pytest.approx(end_s)
        assert 0 <= device.uncovered_s <= device.loader_busy_s


def test_uncovered_time_is_what_a_slower_disk_adds_to_the_run():
    """One device: it computes, and waits for whatever its own computing does not cover."""
    from test_lime_run import GPT, tight

    def of(disk_byte_per_s):
        spec = case(
            cluster=tight(GPT, (1e9,), 5.5, disk_byte_per_s=disk_byte_per_s), new_tokens=4, num_segments=2
        )
        report = predict(spec)
        return report.latency_s, report.method.devices[0].uncovered_s

    (fast_s, covered), (slow_s, uncovered) = of(1e12), of(1e5)
    assert covered < 1e-6
    assert uncovered == pytest.approx(slow_s - fast_s, rel=1e-6)


def test_thresholds_and_parked_rows_are_those_of_the_trace():
    spec = growing(fluctuation_rows=1)
    report, trace = predict(spec), play(spec)
    thresholds = [
        (device.name, one.time_s, one.tokens) for device in report.method.devices for one in device.thresholds
    ]
    assert sorted(thresholds) == sorted(
        (mark.device, mark.time_s, mark.facts["tokens"]) for mark in marks(trace, "threshold")
    )
    parked = [(d.name, one.target, one.rows) for d in report.method.devices for one in d.rows_parked]
    assert parked == [
        (mark.device, mark.facts["target"], mark.facts["rows"]) for mark in marks(trace, "kv_transfer")
    ]
    assert parked and thresholds
    text = "\n".join(report.method.lines())
    assert f"up to {max(rows for *_, rows in parked)} rows parked on" in text
    assert all(str(tokens) in text for *_, tokens in thresholds)
    assert RunReport.model_validate(json.loads(report.model_dump_json())) == report


def test_without_streaming_the_lines_name_the_ring_and_who_is_left_out():
    spec = case(cluster=star((1e9, 1e8)), reserve_frac=0.0)
    report = predict(spec).method
    assert report.left_out == ("d1",)
    first, second = report.lines()
    assert first.startswith("LIME (joint): 1 segment, ") and first.endswith("; without layers: d1.")
    assert second == "d0: 8 layers, no slots."


@pytest.mark.parametrize(
    ("intervals", "seconds"),
    [([], 0), ([(0, 2), (1, 3)], 3), ([(4, 5), (0, 1)], 2), ([(0, 9), (2, 3)], 9)],
)
def test_overlapping_loads_count_once(intervals, seconds):
    assert covered_s(intervals) == seconds
