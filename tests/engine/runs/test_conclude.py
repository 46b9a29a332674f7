"""From a real run's trace to its report. Its trace comes from the simulated world."""

from dataclasses import replace

import pytest

from engine.domain.report import Outcome
from engine.domain.scenario import DropDevice, Scenario, SetRate, SlowDevice
from engine.domain.trace import Mark, Span
from engine.models import catalogue
from engine.runs import predictions
from engine.runs.conclude import RealResult, report_of
from engine.runs.predict import predict, prepare, simulate
from tests.support.small_cases import spec_of, star

MODEL, WEIGHTS = catalogue.resolve("tiny-gpt2", "random")
SPEC = spec_of("gpipe", MODEL, star((1e8, 1e8)), new_tokens=3).model_copy(
    update={"weights": WEIGHTS, "dilation": 2.0}
)
LATENCY_S = predict(SPEC).latency_s
SLOWED = SlowDevice(at_s=LATENCY_S / 3, device="d1", factor=5.0)
THINNED = SetRate(at_s=LATENCY_S / 4, link=SPEC.cluster.links[0].name, bit_per_s=1e6)
STATS = {"operations": 9, "late": 0, "errors": (0.0,), "used": (0.1,), "target_s": 1.0}


def concluded(changes=(), stretch=1.0, spec=SPEC):
    """The report of a run with `changes`, all of whose operations took `stretch` times too long."""
    changed = spec.model_copy(update={"scenario": Scenario(changes=changes)})
    trace, _ = simulate(prepare(changed))
    trace = [
        replace(item, end_s=item.start_s + (item.end_s - item.start_s) * stretch)
        if isinstance(item, Span) and item.kind == "compute"
        else item
        for item in trace
    ]
    result = RealResult(trace, Outcome(), changes, {"d0": STATS}, 0.1)
    return report_of(prepare(spec), result, 2.0, [], "loopback")


def test_a_paced_run_is_emulated_and_one_without_pacing_native():
    assert concluded().world == "emulated"
    assert concluded(spec=SPEC.model_copy(update={"dilation": "native"})).world == "native"


def test_an_undisturbed_run_is_predicted_undisturbed():
    report = concluded()
    assert report.predictions.with_all_changes_known.latency_s == LATENCY_S
    assert report.fidelity.valid is True
    assert report.scenario.changes == ()


@pytest.mark.parametrize("change", [SLOWED, THINNED], ids=lambda change: change.kind)
def test_a_disturbed_run_is_predicted_with_the_same_disturbance(change):
    report = concluded((change,))
    disturbed = predict(SPEC.model_copy(update={"scenario": Scenario(changes=(change,))}))
    assert report.predictions.with_all_changes_known.latency_s == disturbed.latency_s > LATENCY_S * 1.1
    assert report.predictions.with_all_changes_known.attribution == disturbed.attribution
    assert report.fidelity.valid is True, report.fidelity.why
    assert report.scenario.changes == (change,)


def test_operations_half_as_long_again_are_seen_though_the_pacer_is_content():
    report = concluded(stretch=1.5)
    assert report.fidelity.valid is False
    assert report.fidelity.model_error_mean == pytest.approx(0.5)


def test_an_emulated_run_over_a_long_path_says_what_a_fresh_connection_would_take():
    links = tuple(link.model_copy(update={"delay_s": 0.05}) for link in SPEC.cluster.links)
    far = SPEC.model_copy(
        update={
            "cluster": SPEC.cluster.model_copy(update={"links": links}),
            "model": MODEL.model_copy(update={"max_positions": 512}),
            "workload": SPEC.workload.model_copy(update={"prompt_tokens": 400}),
        }
    )
    (note,) = [one for one in concluded(spec=far).fidelity.notes if "slow start" in one]
    assert note.startswith("The first message from d0 to d1, ")


def test_the_report_keeps_the_figures_of_the_prediction():
    report, expected = concluded(), predict(SPEC)
    for figure in ("latency_s", "ttft_s", "tpot_s", "tokens_per_s", "attribution"):
        assert getattr(report.predictions.with_all_changes_known, figure) == getattr(expected, figure)
    peaks = {device.name: device.peak_memory_bytes for device in expected.devices}
    assert report.predictions.with_all_changes_known.peak_memory_bytes == peaks


def test_the_prediction_takes_the_decisions_that_the_real_run_took(monkeypatch):
    trace, _ = simulate(prepare(SPEC))
    trace = [*trace, Mark(0.0, "decided", "d1", {"decision": "heads of 3", "answer": [0, 2]})]
    seen = []

    def spy(prepared, **more):
        seen.append(more["decisions"])
        return simulate(prepared, **more)

    monkeypatch.setattr(predictions, "simulate", spy)
    report_of(prepare(SPEC), RealResult(trace, Outcome(), (), {}, 0.1), 2.0, [], "x")
    own, *_best_plan = seen
    assert own == {("d1", "heads of 3"): [0, 2]}


def test_after_a_recovery_the_report_says_how_the_run_would_have_ended_without_it():
    lost = (DropDevice(at_s=LATENCY_S / 2, device="d1"),)
    report = concluded(lost)
    assert report.outcome.kind == "finished"
    assert report.without_replan.kind == "peer_lost"
    assert concluded().without_replan is None
