"""How many times as long operations take in runs as the tables say, from traces made by hand."""

import pytest

from emulator.calibration import in_runs as module
from emulator.calibration.in_runs import MODELS, MOST, in_runs, run_alone, work_s
from emulator.calibration.runtime import Run, spec_of
from engine.domain.trace import Span
from engine.runs.native import predict_native
from engine.runs.predict import prepare
from tests.support.host_profiles import a_profile

PROFILE = a_profile("made")
PREPARED = prepare(spec_of(("gpt2", 128, 2), 1, "single", 8, requests=3))


def run(prompts, tokens, first_request=5.0):
    """A run whose operations took so many times as long as by the tables."""
    trace = []
    for item in predict_native(PREPARED, PROFILE).trace:
        if isinstance(item, Span) and item.kind == "compute":
            times = first_request if not item.request else tokens if item.token else prompts
            item.end_s = item.start_s + times * (item.end_s - item.start_s)
        trace.append(item)
    return Run(PREPARED, trace)


def test_prompts_and_later_tokens_count_alike_and_the_first_request_does_not():
    assert in_runs([run(1.1, 1.3), run(1.1, 1.3)], PROFILE) == pytest.approx(1.2)


def test_one_run_in_a_slow_minute_changes_little():
    calm = [run(1.1, 1.1), run(1.1, 1.12)]
    assert in_runs([*calm, run(2.0, 2.0)], PROFILE) == pytest.approx(1.11, abs=0.011)


def test_runs_beside_other_work_of_the_machine_make_no_prediction_many_times_as_long():
    assert in_runs([run(70.0, 90.0)] * 2, PROFILE) == MOST


def test_only_operations_are_work_and_prompts_are_apart_from_later_tokens():
    spans = [
        Span("d0", kind, kind, 0, 0.0, seconds, request=request, token=token)
        for kind, seconds, request, token in (
            ("compute", 1.0, 1, 0),
            ("compute", 2.0, 2, 0),
            ("compute", 0.25, 1, 1),
            ("compute", 0.5, 2, 3),
            ("recv", 64.0, 1, 0),
            ("compute", 32.0, 0, 0),
        )
    ]
    assert work_s(spans) == (3.0, 0.75)


def test_models_take_turns_by_the_round(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "run_native", lambda spec, drawn: spec.model.name)
    names = [f"{family}-{hidden}" for family, hidden, _ in MODELS]
    assert [run_alone(turn, tmp_path) for turn in range(4)] == names * 2
