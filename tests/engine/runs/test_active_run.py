"""The state of a running run: its clock, its trace, its end, and which devices it needs."""

import pytest

from engine.domain.scenario import JoinDevice, Scenario
from engine.domain.trace import Mark
from tests.support.fake_devices import FakeClock, active_run


def test_virtual_time_is_wall_time_since_the_start_over_the_dilation():
    clock = FakeClock(100.0)
    run = active_run(clock)
    clock.now_s = 103.0
    assert run.now_s == pytest.approx(1.5)
    assert run.wall_of(1.5) == pytest.approx(103.0)


def test_before_the_start_it_is_time_zero():
    clock = FakeClock(100.0)
    run = active_run(clock, started=False)
    clock.now_s = 103.0
    assert (run.now_s, run.started) == (0.0, False)
    run.start_wall_s = 104.0
    assert (run.now_s, run.started) == (0.0, True)


def test_the_first_outcome_stays():
    run = active_run(FakeClock())
    run.end("cancelled", "Stopped.")
    run.end("failed", "Broken.", "d1", 3.0)
    assert (run.outcome.kind, run.outcome.sentence) == ("cancelled", "Stopped.")


def test_an_outcome_has_the_time_at_which_it_came_unless_another_is_given():
    clock = FakeClock(100.0)
    run = active_run(clock)
    clock.now_s = 101.0
    run.end("failed", "Broken.", "d1")
    assert (run.outcome.time_s, run.outcome.device) == (0.5, "d1")
    other = active_run(clock)
    other.end("failed", "Broken.", "d1", 0.25)
    assert other.outcome.time_s == 0.25


def test_what_is_recorded_is_annotated_kept_and_emitted():
    run = active_run(FakeClock())
    run.annotate = lambda mark: Mark(mark.time_s, mark.name, "annotated")
    run.record(Mark(1.0, "token_emitted"))
    assert run.trace == run.events == [Mark(1.0, "token_emitted", "annotated")]


def test_devices_with_work_and_devices_that_talk_are_needed():
    run = active_run(FakeClock(), strategy="single", pairs=frozenset({(0, 2)}))
    assert run.needed_ranks() == {0, 2}
    run.conditions.mark_failed(2)
    assert run.needed_ranks() == {0}


def test_a_device_that_joins_later_is_absent_at_first():
    joins = Scenario(changes=(JoinDevice(at_s=1.0, device="d1"),))
    run = active_run(FakeClock(), scenario=joins)
    assert run.conditions.failed == {1}
    assert 1 not in run.needed_ranks()
