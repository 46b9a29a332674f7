"""Which devices are declared failed, and whether the run ends or continues. D = 2, and d0 is the source."""

import pytest

from engine.domain.scenario import LinkDown, LinkUp
from engine.domain.trace import Mark
from engine.runs.failures import ASK_AGAIN_S, HUNG_S, NO_ANSWER_S, FailureDetector, fault_of
from engine.worlds.real.watchdog import LEAST_SILENCE_S, PING_AFTER_S
from tests.support.fake_devices import FakeClock, active_run, running_pool


class Case:
    def __init__(self, **more):
        self.clock = FakeClock()
        self.run = active_run(self.clock, **more)
        self.pool = running_pool(self.clock, self.run)
        self.failures = FailureDetector(self.run, self.pool)

    def end(self, rank):
        """Let the process of a device end."""
        self.pool.devices[rank].sock.close()
        ((child, _),) = [found for found in self.pool.read(1.0) if found[1] is None]
        self.failures.handle_end(child)

    def marks(self):
        return [(item.name, item.device, item.facts) for item in self.run.trace]


@pytest.fixture
def case():
    case = Case()
    yield case
    case.pool.close(at_once=True)


def test_a_device_whose_connection_is_closed_is_killed(case):
    case.failures.suspect(0, 2)
    assert case.pool.killed == [2]


@pytest.mark.parametrize("rank", [0, 2])
def test_a_silent_device_that_is_stopped_is_killed_at_once(case, rank):
    case.pool.stopped.add(rank)
    case.failures.suspect(1, rank, last_byte_s=98.0)
    assert case.pool.killed == [rank]


def test_a_silent_device_behind_a_link_that_is_down_is_killed_at_once(case):
    cut_off(case, "d2")
    case.failures.suspect(0, 2, last_byte_s=98.0)
    assert case.pool.killed == [2]


@pytest.mark.parametrize("rank", [0, 2])
def test_a_silent_device_that_then_serves_its_connections_is_waited_for(case, rank):
    """It had waited for a processor, or whoever suspects it had. Its pong alone says nothing: another thread
    sends it.
    """
    case.failures.suspect(1, rank, last_byte_s=98.0)
    asked_s = case.clock.now_s
    for served_s in (97.0, asked_s):  # its main thread has not run since
        case.pool.children[rank].last_message_s = case.clock.now_s = case.clock.now_s + ASK_AGAIN_S * 1.1
        case.failures.handle_pong(case.pool.children[rank], served_s)
        case.failures.check_running()
    case.failures.handle_pong(case.pool.children[rank], asked_s + 0.01)
    assert case.pool.got(1, "trust") == [{"type": "trust", "peer": rank}]
    assert len(case.pool.got(rank, "ping")) >= 2
    case.clock.now_s += 1000.0
    case.failures.check_running()
    assert 2 not in case.pool.killed and 1 not in case.pool.killed


@pytest.mark.parametrize(("rank", "killed"), [(2, 2), (0, 1)])
def test_a_device_that_serves_its_connections_and_stays_silent_is_cut_off(case, rank, killed):
    """The source is never the one that is cut off."""
    for last_byte_s in (98.0, 99.0, 99.0):
        assert case.pool.killed == []
        case.failures.suspect(1, rank, last_byte_s=last_byte_s)
        case.failures.handle_pong(case.pool.children[rank], case.clock.now_s + 0.01)
        case.clock.now_s += 5.0
    assert case.pool.killed == [killed]


def test_a_silent_device_that_never_serves_its_connections_hangs(case):
    case.failures.suspect(0, 2, last_byte_s=98.0)
    case.clock.now_s += HUNG_S - 0.01
    case.failures.check_running()
    assert case.pool.killed == []
    case.clock.now_s += 0.02
    case.failures.check_running()
    assert case.pool.killed == [2]


def test_doubts_end_with_the_device(case):
    """What was known of it does not count for a process that takes its place."""
    case.failures.suspect(0, 2, last_byte_s=98.0)
    case.failures.handle_pong(case.pool.children[2], case.clock.now_s + 0.01)
    case.failures.suspect(0, 2, last_byte_s=98.0)
    case.failures.lose(2)
    case.failures.suspect(0, 2, last_byte_s=98.0)
    case.failures.handle_pong(case.pool.children[2], case.clock.now_s + 0.01)
    assert case.pool.killed == []


def test_a_suspected_source_is_pinged_once_and_lives(case):
    case.failures.suspect(1, 0)
    case.failures.suspect(2, 0)
    assert case.pool.killed == []
    assert case.pool.got(0) == [{"type": "ping"}]


def test_if_the_source_answers_those_who_suspect_it_are_killed(case):
    case.failures.suspect(1, 0)
    case.failures.handle_pong(case.pool.children[2], 0.0)
    assert case.pool.killed == []
    case.failures.handle_pong(case.pool.children[0], 0.0)
    assert case.pool.killed == [1]
    case.failures.handle_pong(case.pool.children[0], 0.0)
    assert case.pool.killed == [1]


@pytest.mark.parametrize(("stopped", "limit_s"), [({0}, LEAST_SILENCE_S), (set(), HUNG_S)])
def test_a_source_that_does_not_answer_is_killed(case, stopped, limit_s):
    """Soon if it is stopped; otherwise it may wait for a processor."""
    case.pool.stopped = stopped
    case.failures.suspect(1, 0)
    case.clock.now_s += limit_s - 0.01
    case.failures.check_running()
    assert case.pool.killed == []
    case.clock.now_s += 0.02
    case.failures.check_running()
    assert case.pool.killed == [0]


def test_a_source_may_be_silent_for_as_long_as_the_dilated_limit():
    case = Case(silence_s=3.0)  # virtual: 6 s of wall time at D = 2
    case.clock.now_s += 5.9
    case.failures.check_running()
    assert case.pool.got(0) == []
    case.clock.now_s += 0.2
    case.failures.check_running()
    assert case.pool.got(0) == [{"type": "ping"}]
    assert case.pool.killed == []
    case.pool.close(at_once=True)


def test_a_source_that_does_not_run_is_not_watched(case):
    case.pool.children[0].state = "ready"
    case.clock.now_s += 1000.0
    case.failures.check_running()
    assert (case.pool.got(0), case.pool.killed) == ([], [])


@pytest.mark.parametrize(("stopped", "limit_s"), [({1}, NO_ANSWER_S), (set(), HUNG_S)])
def test_a_process_that_is_waited_for_is_pinged_and_then_killed(case, stopped, limit_s):
    child, case.pool.stopped = case.pool.children[1], stopped
    case.clock.now_s += PING_AFTER_S + 0.01
    case.failures.check_waiting([child])
    assert case.pool.got(1) == [{"type": "ping"}]
    case.clock.now_s += limit_s - 0.01
    case.failures.check_waiting([child])
    assert case.pool.killed == []
    case.clock.now_s += 0.02
    case.failures.check_waiting([child])
    assert case.pool.killed == [1]


def test_a_process_that_answers_lives(case):
    child = case.pool.children[1]
    case.clock.now_s += PING_AFTER_S + 0.01
    case.failures.check_waiting([child])
    child.last_message_s = case.clock.now_s + 0.1
    case.clock.now_s += HUNG_S + 1.0
    case.failures.check_waiting([child])
    assert case.pool.killed == []


def test_before_the_start_no_silent_process_is_pinged():
    case = Case(started=False)
    case.clock.now_s += 1000.0
    case.failures.check_waiting(case.pool.children.values())
    assert (case.pool.got(1), case.pool.killed) == ([], [])
    case.pool.close(at_once=True)


def test_a_failed_device_is_recorded_and_sent_to_the_others(case):
    case.clock.now_s += 1.0  # half a virtual second
    case.end(1)
    assert case.marks() == [
        ("device_lost", "d1", {}),
        ("loss_detected", "d1", {"how": "killed", "since_s": 0.5}),
    ]
    assert case.pool.got(0) == case.pool.got(2) == [{"type": "lost", "rank": 1, "killed_s": 0.5}]
    assert case.run.conditions.failed == {1}
    assert case.run.outcome is None
    assert case.failures.reason == "d1 failed at 0.500 s."


def test_the_cause_of_a_failure_is_the_change_that_made_it(case):
    case.run.record(Mark(0.25, "device_frozen", "d1"))
    case.clock.now_s += 1.0
    case.end(1)
    assert case.marks()[1:] == [("loss_detected", "d1", {"how": "frozen", "since_s": 0.25})]


def test_without_the_source_the_run_ends(case):
    case.end(0)
    assert case.run.outcome.kind == "peer_lost"
    assert case.run.outcome.device == "d0"
    assert "it is the source" in case.run.outcome.sentence


def test_a_run_that_must_stop_at_a_failure_ends():
    case = Case(failover="stop")
    case.end(2)
    assert case.run.outcome.sentence == "d2 failed at 0.000 s and has a part in the plan."
    case.pool.close(at_once=True)


@pytest.mark.parametrize(("killed", "why"), [(False, " (its process ended with status 3)"), (True, "")])
def test_a_run_says_how_a_process_ended_that_nobody_killed(monkeypatch, killed, why):
    monkeypatch.setattr("engine.runs.children.ending_of", lambda pid: "its process ended with status 3")
    case = Case(failover="stop")
    if killed:
        case.pool.kill(2)
    case.end(2)
    assert case.run.outcome.sentence == f"d2 failed at 0.000 s{why} and has a part in the plan."
    case.pool.close(at_once=True)


def test_a_failure_before_the_start_ends_the_run():
    case = Case(started=False)
    case.end(2)
    assert case.run.outcome.kind == "peer_lost"
    case.pool.close(at_once=True)


def test_a_device_that_the_plan_does_not_use_may_fail():
    case = Case(strategy="single")
    case.end(2)
    assert case.run.outcome is None
    assert case.pool.got(0) == []
    assert case.run.conditions.failed == {2}
    case.pool.close(at_once=True)


def test_a_device_without_weights_that_talks_is_needed():
    case = Case(strategy="single", pairs=frozenset({(0, 2)}))
    case.end(2)
    assert case.pool.got(0) == [{"type": "lost", "rank": 2, "killed_s": 0.0}]
    case.pool.close(at_once=True)


def cut_off(case, device, at_s=0.25):
    case.run.conditions.apply(LinkDown(at_s=at_s, link=f"{device}--s1"))


def test_a_device_that_is_cut_off_and_suspects_others_is_the_one_that_has_failed(case):
    cut_off(case, "d1")
    case.failures.suspect(1, 2)
    case.failures.suspect(1, 0)
    case.failures.suspect(2, 1)
    assert set(case.pool.killed) == {1}
    assert case.pool.got(0) == []  # the source is not even pinged


def test_what_a_killed_device_reported_before_its_end_is_ignored(case):
    case.pool.children[1].killed = True
    case.failures.suspect(1, 2)
    assert case.pool.killed == []


def test_a_device_behind_links_that_are_down_is_unreachable_since_they_went_down(case):
    cut_off(case, "d1")
    case.clock.now_s += 1.0
    case.end(1)
    assert case.marks() == [("loss_detected", "d1", {"how": "unreachable", "since_s": 0.25})]


def test_a_link_that_is_up_again_explains_no_failure(case):
    cut_off(case, "d1")
    case.run.conditions.apply(LinkUp(at_s=0.3, link="d1--s1"))
    case.clock.now_s += 1.0
    case.end(1)
    assert case.marks()[-1] == ("loss_detected", "d1", {"how": "killed", "since_s": 0.5})


def test_the_last_fault_that_is_not_over_is_the_cause():
    froze, lost = Mark(1.0, "device_frozen", "d1"), Mark(2.0, "device_lost", "d1")
    assert fault_of([], "d1") is None
    assert fault_of([froze], "d1") is froze
    assert fault_of([froze, lost], "d1") is lost
    assert fault_of([froze, Mark(3.0, "device_joined", "d1")], "d1") is None
    assert fault_of([froze, Mark(3.0, "loss_detected", "d1")], "d1") is None


def test_what_happens_to_others_is_not_the_cause():
    other = Mark(1.0, "device_frozen", "d2")
    assert fault_of([other, Mark(3.0, "token_emitted", "d1")], "d1") is None


def test_a_device_that_has_failed_is_away_so_that_it_may_join_again(case):
    case.end(2)
    assert case.run.away == {2}
