"""The real world on loopback: paced time, failed devices, what a report of it contains."""

from itertools import pairwise

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.events import to_json
from engine.domain.report import RunReport
from engine.domain.scenario import DropDevice, FreezeDevice, JoinDevice, Scenario, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.registry import by_rule
from tests.support.disturbed_runs import played_in_time

DEVICE = {"memory_bytes": 4e8, "memory_byte_per_s": 5e8, "flop_per_s": 2e9}
CLUSTER = ClusterSpec(
    name="three",
    source="a",
    devices=[{"name": name, **DEVICE} for name in "abc"],
    switches=[{"name": "s1"}],
    links=[{"a": name, "b": "s1", "bit_per_s": 2e7, "delay_s": 0.001} for name in "abc"],
)


def spec_of(strategy, changes=(), **more):
    model, weights = catalogue.resolve("demo-lm", None)
    return RunSpec(
        cluster=CLUSTER,
        model=model,
        weights=weights,
        strategy=strategy,
        params=more.pop("params", by_rule(strategy)),
        dilation=more.pop("dilation", 2.0),
        workload=Workload(
            prompt="The import statement", new_tokens=6, token_limit_s=more.pop("limit_s", None)
        ),
        scenario=Scenario(changes=changes),
        **more,
    )


SPECS = {
    "single": spec_of("single"),
    "gpipe": spec_of("gpipe"),
    "voltage": spec_of("voltage"),
    "lost": spec_of("gpipe", [DropDevice(at_s=0.05, device="b")], failover="stop", dilation=4.0),
    "pipeline goes on": spec_of("gpipe", [DropDevice(at_s=0.05, device="b")], dilation=4.0),
    "tensor parallel goes on": spec_of("megatron", [DropDevice(at_s=0.05, device="c")], dilation=4.0),
    "frozen": spec_of("megatron", [FreezeDevice(at_s=0.05, device="b")], silence_s=1.0, dilation=4.0),
    "comes back": spec_of(  # slow enough for a new process to be there before the last token
        "voltage", [DropDevice(at_s=0.05, device="b"), JoinDevice(at_s=0.1, device="b")], dilation=8.0
    ),
    "divided anew": spec_of(
        "voltage",
        [SlowDevice(at_s=0.1, device="b", factor=20)],
        params={"decode": "recompute", "repartition": True},
        dilation=8.0,  # so slow that a busy host makes no other device seem slow
    ),
    "out of time": spec_of("gpipe", limit_s=0.02),
    "source lost": spec_of("megatron", [DropDevice(at_s=0.05, device="a")], dilation=4.0),
}


@pytest.fixture(scope="module")
def runs(play_for_real):
    """Reports and traces by name."""
    return {
        name: (RunReport.parse(answer["report"], name), answer["trace"])
        for name, answer in played_in_time(play_for_real, SPECS).items()
    }


@pytest.mark.parametrize("name", ["single", "gpipe"])  # no two messages share a link, which loopback lacks
def test_a_paced_run_is_never_faster_than_its_devices_and_links_allow(name, runs):
    report, _ = runs[name]
    assert report.outcome.kind == "finished"
    assert report.latency_s >= predict(SPECS[name]).latency_s * (1 - 1e-6)


@pytest.mark.parametrize("name", ["single", "gpipe", "voltage"])
def test_the_parts_of_the_latency_add_up(name, runs):
    report, _ = runs[name]
    assert sum(report.attribution.model_dump().values()) == pytest.approx(report.latency_s, rel=1e-9)


def test_the_text_of_a_run_is_its_tokens_decoded(runs):
    from engine.models.inputs.text import decode

    report, _ = runs["gpipe"]
    spec = SPECS["gpipe"]
    assert report.text == decode(spec.model, spec.weights, report.output_tokens)
    assert len(report.output_tokens) == 6
    assert report.correctness.prompt_identical is True


def test_every_operation_lasts_at_least_what_its_device_model_says(runs):
    _, real = runs["gpipe"]
    events = []
    predict(SPECS["gpipe"], events.append)
    expected = {_key(e): e["end_s"] - e["start_s"] for e in to_json(events) if e.get("kind") == "compute"}
    spans = [e for e in real if e.get("kind") == "compute"]
    assert len(spans) == len(expected) > 0
    for span in spans:
        assert span["end_s"] - span["start_s"] >= expected[_key(span)] * (1 - 1e-6)


def test_a_failed_device_ends_the_run_with_its_name_its_time_and_a_report(runs):
    report, trace = runs["lost"]
    assert report.outcome.kind == "peer_lost"
    assert report.outcome.device == "b"
    assert report.outcome.time_s >= 0.05
    assert "b failed" in report.outcome.sentence
    assert [mark["device"] for mark in trace if mark.get("name") == "device_lost"] == ["b"]
    assert [change.kind for change in report.scenario.changes] == ["drop_device"]
    assert not report.correctness.checked


GOES_ON = ["pipeline goes on", "tensor parallel goes on", "frozen", "comes back"]


@pytest.mark.parametrize("name", GOES_ON)
def test_after_a_failure_the_text_is_finished_with_the_same_tokens(name, runs):
    report, trace = runs[name]
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert report.correctness.ok, report.correctness.why
    assert report.correctness.token_identical
    assert report.output_tokens == runs["single"][0].output_tokens
    assert [mark for mark in trace if mark.get("name") == "loss_detected"]
    assert [mark for mark in trace if mark.get("name") == "replanned"]


def test_a_frozen_device_is_detected_by_its_silence_not_before(runs):
    _, trace = runs["frozen"]
    (detected,) = [mark for mark in trace if mark.get("name") == "loss_detected"]
    assert detected["facts"]["how"] == "frozen"
    assert detected["time_s"] - detected["facts"]["since_s"] >= 0.9


def test_a_run_that_is_too_slow_ends_as_its_prediction_does(runs):
    report, _ = runs["out of time"]
    predicted = predict(SPECS["out of time"])
    assert report.outcome.kind == predicted.outcome.kind == "out_of_time"
    assert report.outcome.time_s == pytest.approx(predicted.outcome.time_s)
    assert report.outcome.sentence == predicted.outcome.sentence


def test_a_failed_source_ends_the_run_and_the_outcome_names_it(runs):
    report, _ = runs["source lost"]
    assert report.outcome.kind == "peer_lost"
    assert "it is the source" in report.outcome.sentence


def _key(span):
    return span["device"], span["name"], span["layer"], span["request"], span["token"]


def test_positions_divided_anew_in_the_middle_of_a_run_change_no_token(runs):
    report, trace = runs["divided anew"]
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert report.correctness.ok, report.correctness.why
    moved = [item["facts"] for item in trace if item.get("name") == "repartitioned"]
    assert moved
    for facts in moved:
        positions = [stop - start for start, stop in pairwise(facts["bounds"])]
        assert positions[1] < min(positions[0], positions[2])
