"""AdaptLink's and Voltage's own reports: coverage over time, positions per layer and device."""

import pytest

from engine.domain.report import RunReport
from engine.domain.scenario import DropDevice, Scenario, SlowDevice
from engine.runs.predict import predict
from tests.support.adaptlink_cases import tight
from tests.support.small_cases import BERT, GPT2, spec_of, star


def with_changes(spec, *changes):
    return spec.model_copy(update={"scenario": Scenario(changes=changes)})


def test_coverage_over_time_ends_with_the_new_copy_and_says_how_long_there_was_none():
    spec = tight(GPT2, 0.3, new_tokens=40)
    calm = predict(spec)
    assert [one.event for one in calm.method.coverage] == ["planned"]
    assert calm.method.coverage[0].coverage == 1.0 and calm.method.uncovered_s == 0.0
    report = predict(with_changes(spec, DropDevice(at_s=calm.latency_s / 2, device="d2")))
    planned, promoted, copied = report.method.coverage
    assert (planned.event, promoted.event, copied.event) == ("planned", "promoted", "copied")
    assert [one.device for one in promoted.serving] == ["d1"] and promoted.copies == ()
    assert [one.device for one in copied.copies] == ["d3"] and copied.uncovered == ()
    assert promoted.uncovered == tuple((one.start, one.stop) for one in planned.serving)
    assert report.method.uncovered_s == pytest.approx(copied.time_s - promoted.time_s)
    assert RunReport.parse(report.model_dump(mode="json"), "report").method == report.method


def test_the_rule_that_chose_the_split_is_said():
    for mode, words in (("eq5", "equation 5"), ("exact", "predicted request")):
        lines = predict(tight(GPT2, 0.3, comm_mode=mode)).method.lines()
        assert words in lines[0] and lines[0].startswith("d0 shares")
        assert lines[1].startswith("Backups: 100.0%")
    (line,) = predict(spec_of("adaptlink", GPT2, star([1e10]))).method.lines()
    assert line == "d0 computes all 3 layers (chosen by the predicted request)."


def test_every_layer_has_its_positions_products_and_bytes():
    spec = spec_of("voltage", BERT, star([1e10] * 3, terminal=True), rows=12)
    report = predict(spec).method
    assert [layer.layer for layer in report.layers] == [0, 1, 2] and report.num_positions == 12
    row_bytes = BERT.hidden_size * 4
    for layer in report.layers:
        assert [(one.device, one.start, one.stop) for one in layer.devices] == [
            ("d0", 0, 4),
            ("d1", 4, 8),
            ("d2", 8, 12),
        ]
        messages = 1 if layer.layer == 2 else 2  # the last layer's rows go to the terminal
        assert [one.sent_bytes for one in layer.devices] == [messages * 4 * row_bytes] * 3
        assert all(one.compute_s > 0 and one.flops > 0 for one in layer.devices) and layer.gather_s > 0
    assert report.lines()[0] == "Positions of 12: d0 0 to 3, d1 4 to 7, d2 8 to 11; gather direct."


def test_after_a_new_partition_later_layers_have_the_new_positions():
    model = BERT.model_copy(update={"num_layers": 12})
    cluster = star([1e8] * 3, terminal=True, op_overhead_s=0.0)
    spec = spec_of("voltage", model, cluster, rows=48, repartition=True)
    at_s = predict(spec).latency_s / 4
    report = predict(with_changes(spec, SlowDevice(at_s=at_s, device="d1", factor=10.0))).method
    first, last = report.layers[0].devices[1], report.layers[-1].devices[1]
    assert (first.start, first.stop) == (16, 32) and last.stop - last.start < 5
    assert report.repartitions == 1
