"""How a run continues after a failure: the messages to each device, and when the run ends. D = 2."""

import pytest

from engine.domain.trace import Mark
from engine.domain.workload import Request, Workload
from engine.runs.failover import RESTART_LEAD_S, Failover, first_tokens
from engine.runs.failures import FailureDetector
from engine.runs.predict import prepare
from tests.support.fake_devices import FakeClock, active_run, running_pool
from tests.support.recovery_cases import emitted, spec_of


class Case:
    """A run that goes on. `answers` are what `collect` says, by state; True if there is nothing."""

    def __init__(self, **more):
        self.clock = FakeClock()
        self.run = active_run(self.clock, **more)
        self.pool = running_pool(self.clock, self.run)
        self.failures = FailureDetector(self.run, self.pool)
        self.failover = Failover(self.run, self.pool, self.failures, self.collect)
        self.collected, self.answers = [], {}

    def collect(self, state, ranks=None):
        self.collected.append((state, None if ranks is None else set(ranks)))
        answers = self.answers.get(state, [])
        answer = answers.pop(0) if answers else True
        return answer() if callable(answer) else answer

    def fail(self, rank):
        """Let a device end; the programs of the others do not cope with it."""
        self.pool.devices[rank].sock.close()
        ((child, _),) = [found for found in self.pool.read(1.0) if found[1] is None]
        self.failures.handle_end(child)
        for other in self.pool.children.values():
            other.state = "stuck"

    def marks(self, name):
        return [item for item in self.run.trace if isinstance(item, Mark) and item.name == name]


@pytest.fixture
def make():
    cases = []

    def make_case(**more):
        cases.append(Case(**more))
        return cases[-1]

    yield make_case
    for case in cases:
        case.pool.close(at_once=True)


@pytest.fixture
def case(make):
    return make()


def test_as_long_as_all_programs_run_nothing_happens(case):
    case.failover.act()
    assert case.collected == []
    assert case.pool.got(1) == []


def test_after_a_failure_all_halt_and_start_again_with_a_plan_for_the_others(case):
    case.run.record(Mark(0.1, "token_emitted", "d0", {"request": 0, "index": 0, "token": 17}))
    case.clock.now_s = 103.0
    case.fail(2)
    case.failover.act()
    assert [state for state, _ in case.collected] == ["halted", "listening", "ready"]
    lost, halt, resume, start = case.pool.got(1)
    assert (lost["type"], halt["type"]) == ("lost", "halt")
    assert (resume["type"], resume["epoch"], resume["lost"]) == ("resume", 1, [2])
    ((request,), prompt) = resume["requests"], case.run.requests[0].tokens
    assert request["tokens"] == [*prompt, 17]  # the token that was emitted is kept
    assert request["emitted"] == 1
    assert {work["device"] for work in resume["plan"]["work"]} == {0, 1}
    assert start == {
        "type": "start",
        "start_s": 100.0,
        "dilation": 2.0,
        "begin_s": 103.0 + RESTART_LEAD_S,
    }
    assert case.run.plan.version == 1
    (replanned,) = case.marks("replanned")
    assert replanned.facts["reason"] == "d2 failed at 1.500 s."
    assert replanned.facts["plan"] == resume["plan"]
    assert all(2 not in pair for pair in case.run.pairs)
    assert case.run.outcome is None


def test_if_all_requests_were_finished_there_is_nothing_left_to_do(case):
    case.run.record(Mark(0.1, "request_finished", "d0", {"request": 0}))
    case.fail(2)
    case.failover.act()
    assert case.pool.with_state("finished") == {0, 1}
    assert case.marks("replanned") == []
    assert case.run.plan.version == 0


def test_a_run_that_serves_goes_on_with_the_others_if_a_device_fails_while_nobody_asks(make):
    case = make(workload=Workload(pattern="serve", prompt_tokens=11, new_tokens=3))
    case.run.requests = ()  # what people ask comes while it runs
    case.fail(2)
    case.failover.act()
    _, halt, resume, start = case.pool.got(1)
    assert (halt["type"], resume["type"], start["type"]) == ("halt", "resume", "start")
    assert resume["requests"] == []
    assert {work["device"] for work in resume["plan"]["work"]} == {0, 1}
    assert case.run.outcome is None


def test_without_a_plan_for_the_others_the_run_ends_with_both_reasons(case):
    cluster = case.run.conditions.cluster
    poor = tuple(device.model_copy(update={"memory_bytes": 1000.0}) for device in cluster.devices)
    case.run.conditions.cluster = cluster.model_copy(update={"devices": poor})
    case.fail(2)
    case.failover.act()
    assert case.run.outcome.kind == "peer_lost"
    assert case.run.outcome.sentence.startswith("d2 failed at 0.000 s. The others cannot go on: ")
    assert "start" not in [message["type"] for message in case.pool.got(1)]


@pytest.mark.parametrize("state", ["listening", "ready"])
def test_a_further_failure_meanwhile_begins_it_again(case, state):
    case.fail(2)
    case.answers[state] = [False]
    case.failover.act()
    sent = [message["type"] for message in case.pool.got(1)]
    assert sent.count("halt") == 2
    assert sent[-2:] == ["resume", "start"]
    assert case.run.plan.version == 2
    assert case.failover.epoch == 2


def test_a_further_failure_while_all_halt_is_waited_out_without_halting_again(case):
    case.fail(2)
    case.answers["halted"] = [False, False]
    case.failover.act()
    sent = [message["type"] for message in case.pool.got(1)]
    assert sent == ["lost", "halt", "resume", "start"]


def test_a_run_that_ends_meanwhile_does_not_start_again(case):
    def stop():
        case.run.end("cancelled", "Stopped on request.")
        return False

    case.fail(2)
    case.answers["halted"] = [stop]
    case.failover.act()
    assert case.run.outcome.kind == "cancelled"
    assert [message["type"] for message in case.pool.got(1)] == ["lost", "halt"]


@pytest.mark.parametrize("state", ["listening", "finished"])  # finished: the others went on meanwhile
def test_a_device_that_joins_gets_a_part_once_its_process_is_there(case, state):
    case.fail(2)
    case.failover.act()
    case.pool.fork_empty(2, case.run.plan, [])
    case.run.joining.add(2)
    case.failover.act()
    assert case.run.plan.version == 1  # its process is not there yet
    case.pool.children[2].state = state
    case.clock.now_s = 104.0
    case.failover.act()
    assert case.run.plan.version == 2
    assert {work.device for work in case.run.plan.work} == {0, 1, 2}
    assert case.run.joining == set()
    assert case.run.conditions.failed == frozenset()
    assert case.marks("replanned")[-1].facts["reason"] == "d2 joined at 2.000 s."
    assert [message["type"] for message in case.pool.got(2)] == ["halt", "resume", "start"]


def test_a_device_that_no_plan_has_used_so_far_is_started_when_one_does():
    case = Case(strategy="gpipe")
    case.pool.devices[2].sock.close()
    case.pool.read(1.0)  # d2 has no process, and the run does not miss it
    case.fail(1)
    case.failover.act()
    assert ("listening", {2}) in case.collected
    assert not case.pool.plans[2].held_by(2)
    assert [message["type"] for message in case.pool.got(2)][-2:] == ["resume", "start"]
    case.pool.close(at_once=True)


def test_who_talks_to_whom_is_read_from_the_next_two_tokens():
    spec = spec_of("gpipe")  # six new tokens, of which three were emitted
    trace = first_tokens(spec, prepare(spec).plan, (Request(index=0, tokens=(1,) * 15, emitted=3),))
    assert emitted(trace) == [(0, 3), (0, 4)]
