"""Changes that come after the end of a run, and whether the run shows anything of what it was to show."""

import pytest

from engine.domain.scenario import Scenario, SetRate, SlowDevice
from engine.experiments.results.rows import result_of
from engine.models import catalogue
from engine.runs.predict import predict
from tests.support.small_cases import spec_of, star

MODEL, _ = catalogue.resolve("tiny-gpt2", "random")
SPEC = spec_of("gpipe", MODEL, star((1e8, 1e8)), new_tokens=3)


def rate(at_s, link="d1--s1"):
    return SetRate(at_s=at_s, link=link, bit_per_s=5e7)


def outcome(*changes):
    report = predict(SPEC.model_copy(update={"scenario": Scenario(changes=changes)}))
    result = result_of(report, "digest", "predicted")
    return result.outcome, result.sentence


def test_a_run_that_ended_before_its_only_change_is_an_error_of_the_point():
    kind, sentence = outcome(SlowDevice(at_s=1e3, device="d1", factor=2.0))
    assert kind == "undisturbed"
    assert sentence.startswith("Never took place, since the run had ended after")


def test_a_curve_of_rates_may_go_on_after_the_run_and_one_that_never_begins_may_not():
    assert outcome(rate(0.0), rate(1e3))[0] == "finished"
    assert outcome(rate(0.0), rate(1e3, link="d0--s1"))[0] == "undisturbed"


@pytest.mark.parametrize("changes", [(), (rate(0.0),)])
def test_a_run_whose_changes_all_came_is_finished(changes):
    assert outcome(*changes) == ("finished", "")
