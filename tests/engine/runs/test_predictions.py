"""The three predictions of a real run: before the start, from here on, with all changes known."""

import os
import signal
import time

import pytest

from engine.domain.events import Logged, RestPredicted
from engine.domain.report import Outcome
from engine.domain.scenario import DropDevice, Scenario, SlowDevice
from engine.domain.trace import Mark
from engine.runs.active_run import ActiveRun
from engine.runs.conclude import RealResult, report_of
from engine.runs.foresight import Foresight
from engine.runs.predict import predict, prepare, simulate
from engine.runs.predictions import before_the_start, from_here_on, played_again, token_times
from tests.support.fake_devices import small_spec

SPEC = small_spec().model_copy(update={"strategy": "gpipe"})
PREPARED = prepare(SPEC)
UNDISTURBED = predict(SPEC)
HALF_S = UNDISTURBED.latency_s / 2
SLOWED = SlowDevice(at_s=HALF_S, device="d1", factor=8.0)
SLOWER = predict(SPEC.model_copy(update={"scenario": Scenario(changes=(SLOWED,))}))


class Case:
    """A run at virtual time `HALF_S`, as the simulated world has it there; one wall second is one virtual."""

    def __init__(self, planned=(), waiting=()):
        spec = SPEC.model_copy(update={"scenario": Scenario(changes=planned)})
        prepared = prepare(spec)
        self.events = []
        self.run = ActiveRun(
            spec, prepared.plan, prepared.requests, 1.0, frozenset(), self.events.append, clock=lambda: HALF_S
        )
        self.run.start_wall_s = 0.0
        trace, _ = simulate(PREPARED)
        self.run.trace = [item for item in trace if _end_s(item) <= HALF_S]
        self.foresight = Foresight(self.run, lambda: waiting)

    def settle(self):
        """Wait for the process that computes, if there is one."""
        self.foresight.check()
        deadline_s = time.monotonic() + 60
        while self.foresight._process is not None:
            assert time.monotonic() < deadline_s
            os.waitid(os.P_PID, self.foresight._process.pid, os.WEXITED | os.WNOWAIT)
            self.foresight.check()
        return [event for event in self.events if isinstance(event, RestPredicted)]


def _end_s(item):
    return item.time_s if isinstance(item, Mark) else item.end_s


def test_what_was_predicted_before_the_start_knows_no_later_change():
    undisturbed, outcome = simulate(PREPARED)
    before = before_the_start(PREPARED, undisturbed, outcome)
    disturbed, _ = simulate(PREPARED._replace(spec=SPEC.model_copy(update={"scenario": SLOWER.scenario})))
    result = RealResult(disturbed, Outcome(), (SLOWED,), {}, 0.1)
    report = report_of(PREPARED, result, 2.0, [], "loopback", before)
    assert report.predictions.before_the_start.latency_s == UNDISTURBED.latency_s
    assert (
        report.predictions.with_all_changes_known.latency_s == SLOWER.latency_s > 1.5 * UNDISTURBED.latency_s
    )


def test_what_was_predicted_before_the_start_knows_the_scenario():
    prepared = prepare(SPEC.model_copy(update={"scenario": SLOWER.scenario}))
    before = before_the_start(prepared, *simulate(PREPARED))
    assert before.report.latency_s == SLOWER.latency_s


def test_nothing_is_predicted_of_a_run_that_was_stopped_meanwhile_or_that_would_not_finish():
    assert before_the_start(PREPARED, [], Outcome(kind="cancelled")) is None
    lost = Scenario(changes=(DropDevice(at_s=HALF_S, device="d1"),))
    stopping = prepare(SPEC.model_copy(update={"scenario": lost, "failover": "stop"}))
    assert before_the_start(stopping, *simulate(PREPARED)) is None


def test_the_rest_is_predicted_once_a_change_comes_that_was_not_known():
    case = Case()
    assert case.settle() == []
    case.run.applied.append(SLOWED)
    (event,) = case.settle()
    assert (event.at_s, event.changes) == (HALF_S, 1)
    assert event.latency_s == pytest.approx(SLOWER.latency_s)
    assert event.left_s == pytest.approx(SLOWER.latency_s - HALF_S)
    assert event.requests == SLOWER.requests
    assert case.foresight.made == [event.prediction]
    assert len(case.settle()) == 1  # the same change is not predicted again


def test_a_change_of_the_scenario_is_known_before_and_one_that_is_due_later_stays():
    case = Case(planned=(SLOWED,))
    case.run.applied.append(SLOWED)
    assert case.settle() == []
    later = SlowDevice(at_s=1.5 * HALF_S, device="d2", factor=8.0)
    case = Case(planned=(later,), waiting=(later,))
    case.run.applied.append(SLOWED)
    (event,) = case.settle()
    both = predict(SPEC.model_copy(update={"scenario": Scenario(changes=(SLOWED, later))}))
    assert event.latency_s == pytest.approx(both.latency_s) != pytest.approx(SLOWER.latency_s)


def test_a_run_that_would_not_go_on_has_no_rest_and_says_why():
    case = Case()
    case.run.spec = SPEC.model_copy(update={"failover": "stop"})
    case.foresight.prepared = prepare(case.run.spec)
    case.run.applied.append(DropDevice(at_s=HALF_S, device="d1"))
    assert case.settle() == [] and case.foresight.made == []
    (said,) = case.events
    assert isinstance(said, Logged) and "not predicted from here on: d1 failed" in said.text


def test_the_process_that_predicts_ends_with_the_run():
    case = Case()
    case.foresight._computed = lambda: time.sleep(600)
    case.run.applied.append(SLOWED)
    case.foresight.check()
    pid = case.foresight._process.pid
    case.foresight.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)


def test_the_rest_begins_at_the_newest_token_of_the_run():
    """A run whose second token came 5 s late: from there on it takes what the simulation takes."""
    simulated = played_again(PREPARED, Scenario())
    first_s, second_s, *_ = token_times(simulated.trace)
    real = [Mark(first_s, "token_emitted", "d0", {}), Mark(second_s + 5.0, "token_emitted", "d0", {})]
    rest = from_here_on(simulated, real, second_s + 5.0, changes=2)
    end_s = UNDISTURBED.latency_s
    assert rest.left_s == pytest.approx(end_s - second_s)
    assert rest.latency_s == pytest.approx(end_s + 5.0)
    assert from_here_on(simulated, [], 0.0, changes=0).left_s == end_s
