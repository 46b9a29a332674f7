"""A native run is predicted for its host, and stands beside that prediction part by part."""

import pytest

from engine.domain.host_times import HostProfile, MeasuredRow, RuntimeCosts
from engine.domain.report import Outcome
from engine.models import catalogue
from engine.runs.conclude import RealResult, report_of
from engine.runs.native import as_host, native_parts, predict_native
from engine.runs.predict import predict, prepare
from tests.support.small_cases import spec_of, star

MODEL, WEIGHTS = catalogue.resolve("tiny-gpt2", "random")
COSTS = RuntimeCosts(
    dispatch_s=1e-3,
    token_s=5e-3,
    turn_frac=0.5,
    send_s=2e-3,
    receive_s=3e-3,
    byte_s=1e-8,
    slowdown=(1.0, 1.25),
)
PROFILE = HostProfile(
    host="made",
    products=(MeasuredRow(rows=1, s_per_flop=1e-8),),
    elementwise_s_per_element=1e-9,
    op_overhead_s=1e-6,
    memory_byte_per_s=1e10,
    runtime=COSTS,
)
SINGLE, PIPELINE = (
    spec_of(strategy, MODEL, star((1e8, 1e8)), new_tokens=3).model_copy(
        update={"weights": WEIGHTS, "dilation": "native", "profile": PROFILE}
    )
    for strategy in ("single", "gpipe")
)


def alone(spec, **costs):
    """The prediction with these costs of the runtime and no others."""
    return predict_native(prepare(spec), PROFILE.model_copy(update={"runtime": RuntimeCosts(**costs)}))


def operations(prediction, device=None):
    spans = [item for item in prediction.trace if getattr(item, "kind", "") == "compute"]
    return [span for span in spans if device in (None, span.device)]


def test_the_cluster_keeps_its_links_and_its_devices_become_processes_of_the_host():
    cluster = as_host(SINGLE.cluster, PROFILE)
    assert cluster.links == SINGLE.cluster.links
    for device in cluster.devices:
        assert (device.compute_model, device.measured_scale) == ("measured", 1.5)
        assert (device.dispatch_s, device.token_s, device.message_overhead_s) == (1e-3, 5e-3, 2e-3)


def test_each_operation_pays_for_its_dispatch_and_each_token_for_being_chosen():
    plain = alone(SINGLE)
    count = len(operations(plain))
    dispatched, chosen = alone(SINGLE, dispatch_s=1e-3), alone(SINGLE, token_s=5e-3)
    assert dispatched.report.latency_s - plain.report.latency_s == pytest.approx(count * 1e-3)
    # three tokens, the last of which nothing follows
    assert chosen.report.latency_s - plain.report.latency_s == pytest.approx(2 * 5e-3)


def test_looking_for_messages_takes_a_part_of_the_computing_time():
    plain, turning = alone(SINGLE), alone(SINGLE, turn_frac=0.5)
    assert turning.report.latency_s == pytest.approx(1.5 * plain.report.latency_s)


def test_operations_take_as_many_times_longer_as_they_do_in_runs_of_this_host():
    plain, slower = alone(SINGLE), alone(SINGLE, in_runs=1.2, turn_frac=0.5)
    assert slower.report.latency_s == pytest.approx(1.2 * 1.5 * plain.report.latency_s)


def test_every_message_costs_at_both_ends():
    plain, costly = alone(PIPELINE), alone(PIPELINE, send_s=2e-3, receive_s=3e-3)
    arrived = [item for item in plain.trace if getattr(item, "kind", "") == "recv"]
    longer_s = costly.report.latency_s - plain.report.latency_s
    assert longer_s == pytest.approx(len(arrived) * 5e-3)


def concluded(profile):
    """The report of a native run that went exactly as predicted for `PROFILE`."""
    played = predict_native(prepare(PIPELINE), PROFILE)
    result = RealResult(played.trace, Outcome(), (), {}, 0.1)
    spec = PIPELINE.model_copy(update={"profile": profile})
    return report_of(prepare(spec), result, 1.0, [], "loopback")


def test_the_report_of_a_native_run_has_the_prediction_for_its_host():
    report = concluded(PROFILE)
    assert report.predictions.with_all_changes_known.latency_s == pytest.approx(report.latency_s)
    assert report.predictions.with_all_changes_known.latency_s != pytest.approx(predict(PIPELINE).latency_s)
    assert report.fidelity.latency_error == pytest.approx(0.0)
    assert report.fidelity.valid is True


def test_without_a_calibration_a_native_run_is_not_compared_and_says_what_to_do():
    report = concluded(None)
    assert report.predictions.with_all_changes_known is None and report.fidelity.native == ()
    assert "./loom calibrate" in report.fidelity.notes[0]


def test_the_parts_of_the_path_add_up_to_the_latency_in_both_columns():
    report = concluded(PROFILE)
    path = [part for part in report.fidelity.native if part.name != "wait"]
    assert sum(part.predicted_s for part in path) == pytest.approx(
        report.predictions.with_all_changes_known.latency_s
    )
    assert sum(part.measured_s for part in path) == pytest.approx(report.latency_s)


def test_dispatch_and_tokens_are_the_runtimes_part_and_not_computing():
    plain, costly = alone(SINGLE), alone(SINGLE, dispatch_s=1e-3, token_s=5e-3)
    parts = {part.name: part for part in native_parts(plain.report, plain.trace, costly)}
    count = len(operations(plain))
    assert parts["compute"].predicted_s == pytest.approx(parts["compute"].measured_s)
    assert parts["runtime"].predicted_s == pytest.approx(count * 1e-3 + 2 * 5e-3)
    assert parts["runtime"].measured_s == pytest.approx(0.0, abs=1e-12)
