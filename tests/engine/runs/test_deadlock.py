"""When a real run counts as a deadlock: who must wait, what must have arrived, and how long. D = 2."""

import json

import pytest

from engine.runs.deadlock import AGAIN_S, QUIET_S, DeadlockDetector, Status, is_stuck
from tests.support.fake_devices import FakeClock, active_run, running_pool

MARGIN_S = 1e-3


class Case:
    def __init__(self):
        self.clock = FakeClock()
        self.run = active_run(self.clock)
        self.pool = running_pool(self.clock, self.run)
        self.deadlocks = DeadlockDetector(self.run, self.pool)

    def asked(self):
        """The devices that were asked since the last call, with the number of the question."""
        found = {rank: self.pool.got(rank, "status") for rank in self.pool.children}
        return {rank: messages[-1]["question"] for rank, messages in found.items() if messages}

    def ask(self, wait_s):
        self.clock.now_s += wait_s + MARGIN_S
        self.deadlocks.check()
        return self.asked()

    def answer(self, questions, **changed):
        """All devices wait for their predecessor; `changed` replaces what d1 says."""
        for rank, question in questions.items():
            said = {
                "waits": True,
                "waiting_for": [f"recv x from d{(rank - 1) % 3}"],
                "sent": {},
                "received": {},
            }
            more = changed if rank == 1 else {}
            self.deadlocks.handle_status(rank, {"question": question} | said | more)


@pytest.fixture
def case():
    case = Case()
    yield case
    case.pool.close(at_once=True)


def test_devices_that_wait_for_each_other_and_have_nothing_under_way_are_a_deadlock_within_two_seconds(case):
    began_s = case.clock.now_s
    case.answer(case.ask(QUIET_S))
    assert case.run.outcome is None  # one answer of each might be of different moments
    case.answer(case.ask(AGAIN_S))
    outcome = case.run.outcome
    assert outcome.kind == "deadlock"
    assert outcome.time_s == pytest.approx((QUIET_S + AGAIN_S) / 2, abs=2 * MARGIN_S)
    assert outcome.sentence == (
        f"Deadlock at {outcome.time_s:.6f} s: every device waits "
        "(d0 for recv x from d2, d1 for recv x from d0, d2 for recv x from d1)."
    )
    assert case.clock.now_s - began_s < 2.0


def test_while_devices_trace_something_they_are_not_asked(case):
    assert case.ask(QUIET_S - 0.02) == {}
    case.deadlocks.note_progress()
    assert case.ask(QUIET_S - 0.02) == {}
    assert len(case.ask(0.03)) == 3
    assert case.ask(AGAIN_S / 2) == {}


def test_what_was_traced_between_two_answers_makes_the_first_void(case):
    case.answer(case.ask(QUIET_S))
    case.deadlocks.note_progress()
    case.answer(case.ask(QUIET_S))
    assert case.run.outcome is None


def test_a_device_that_does_not_answer_may_still_do_something(case):
    for wait_s in (QUIET_S, AGAIN_S, AGAIN_S):
        questions = case.ask(wait_s)
        questions.pop(2)
        case.answer(questions)
    assert case.run.outcome is None


def test_answers_to_an_older_question_do_not_count(case):
    old = case.ask(QUIET_S)
    new = case.ask(AGAIN_S)
    case.answer(old)
    case.answer(old)
    assert case.run.outcome is None
    case.answer(new)
    case.answer(case.ask(AGAIN_S))
    assert case.run.outcome.kind == "deadlock"


@pytest.mark.parametrize(
    "of_d1", [{"waits": False}, {"sent": {"2": 1}}, {"received": {"2": 1}, "sent": {"0": 1}}]
)
def test_a_device_that_computes_or_a_message_under_way_is_no_deadlock(case, of_d1):
    for wait_s in (QUIET_S, AGAIN_S, AGAIN_S):
        case.answer(case.ask(wait_s), **of_d1)
    assert case.run.outcome is None


@pytest.mark.parametrize("state", ["halting", "halted", "ready", "stuck"])
def test_while_programs_are_not_running_nobody_is_asked(case, state):
    case.pool.children[1].state = state
    assert case.ask(10 * QUIET_S) == {}


def test_a_message_that_was_sent_after_its_sender_had_answered_is_no_deadlock():
    sender = Status(True, ("recv x from d1",), {1: 3}, {})
    receiver = Status(True, ("recv x from d0",), {}, {0: 4})
    assert not is_stuck({0: sender, 1: receiver})


def test_devices_that_have_finished_count_as_waiting_for_nothing():
    finished = Status(True, (), {1: 3}, {})
    waiting = Status(True, ("recv x from d0",), {}, {0: 3})
    assert is_stuck({0: finished, 1: waiting})
    assert not is_stuck({0: finished, 1: waiting._replace(received={0: 2})})
    assert not is_stuck({0: finished, 1: Status(True, (), {}, {0: 3})})  # all have finished


def test_real_processes_that_wait_for_each_other_end_as_their_prediction_does(tmp_path, in_a_copy):
    result = tmp_path / "result.json"
    in_a_copy("deadlocked_run", result)
    real, predicted = json.loads(result.read_text())
    assert real["kind"] == predicted["kind"] == "deadlock"
    waits = predicted["sentence"].partition(": ")[2]
    assert "d1 for recv never from d0" in waits and "d0 for recv never from d1" in waits
    assert real["sentence"].partition(": ")[2] == waits
