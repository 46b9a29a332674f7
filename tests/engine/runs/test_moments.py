"""Changes come after a part of the run, or after a token, of the run without changes."""

import pytest
from pydantic import ValidationError

from engine.domain.errors import SpecError
from engine.domain.scenario import DropDevice, Scenario, SlowDevice
from engine.domain.spec import spec_digest
from engine.domain.trace import Mark
from engine.models import catalogue
from engine.runs.moments import timed
from engine.runs.predict import predict, prepare, simulate
from tests.support.small_cases import spec_of, star

MODEL, _ = catalogue.resolve("tiny-gpt2", "random")
SPEC = spec_of("gpipe", MODEL, star((1e8, 1e8)), new_tokens=4)
TRACE = [Mark(seconds, "token_emitted") for seconds in (2.0, 3.0, 4.0, 10.0)]


def slow(**when):
    return SlowDevice.model_validate({"device": "d1", "factor": 5.0, **when})


def with_changes(*changes):
    return SPEC.model_copy(update={"scenario": Scenario(changes=changes)})


@pytest.mark.parametrize(
    ("when", "at_s"),
    [({"at_s": 7.0}, 7.0), ({"at_frac": 0.25}, 2.5), ({"after_token": 1}, 2.5), ({"after_token": 3}, 7.0)],
)
def test_a_time_is_the_part_of_the_run_or_lies_between_two_tokens(when, at_s):
    (change,) = timed(Scenario(changes=(slow(**when),)), TRACE).changes
    assert change == slow(at_s=at_s)


def test_changes_stand_in_the_order_of_their_times():
    found = timed(Scenario(changes=(slow(after_token=3), slow(at_frac=0.1))), TRACE)
    assert [change.at_s for change in found.changes] == [1.0, 7.0]


def test_after_the_last_token_nothing_can_change():
    with pytest.raises(SpecError, match=r"changes\[0\]\.after_token: is 4, and the run has 4 tokens"):
        timed(Scenario(changes=(slow(after_token=4),)), TRACE)


@pytest.mark.parametrize("when", [{}, {"at_s": 1.0, "at_frac": 0.5}, {"at_frac": 0.5, "after_token": 2}])
def test_a_change_has_exactly_one_time(when):
    with pytest.raises(ValidationError):
        slow(**when)


def test_a_relative_change_survives_json_and_an_absolute_one_has_no_more_fields_than_before():
    scenario = Scenario(changes=(slow(at_frac=0.5), slow(at_s=1.0)))
    assert Scenario.model_validate_json(scenario.model_dump_json()) == scenario
    assert set(scenario.model_dump()["changes"][1]) == {"kind", "at_s", "device", "factor"}


def test_a_prediction_slows_the_device_after_half_of_the_undisturbed_run():
    calm = predict(SPEC)
    report = predict(with_changes(slow(at_frac=0.5)))
    assert report.spec.scenario.changes == (slow(at_s=calm.latency_s / 2),)
    assert report.scenario == report.spec.scenario
    assert report.latency_s > 1.1 * calm.latency_s


def test_tokens_before_a_change_after_a_token_come_as_without_it():
    calm, _ = simulate(prepare(SPEC))
    slowed, _ = simulate(prepare(with_changes(slow(after_token=2))))
    times = [[item.time_s for item in trace if item.name == "token_emitted"] for trace in (calm, slowed)]
    assert times[0][:2] == times[1][:2]
    assert times[0][3] < times[1][3]


def test_another_part_of_the_run_is_another_run():
    digests = {
        spec_digest(with_changes(slow(**when)))
        for when in ({"at_frac": 0.2}, {"at_frac": 0.4}, {"at_s": 0.0})
    }
    assert len(digests) == 3


def test_a_run_that_does_not_end_without_changes_is_refused():
    served = SPEC.model_copy(
        update={
            "workload": SPEC.workload.model_copy(update={"pattern": "serve"}),
            "scenario": Scenario(changes=(DropDevice.model_validate({"device": "d1", "at_frac": 0.5}),)),
        }
    )
    with pytest.raises(SpecError, match="give at_s"):
        prepare(served)
