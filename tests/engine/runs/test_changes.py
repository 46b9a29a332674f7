"""Changes of a running run: when they are applied, to what, and what is recorded and sent. D = 2."""

import signal
from math import inf

import pytest

from engine.domain.report import Outcome
from engine.domain.scenario import (
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
    Scenario,
    SetDelay,
    SetRate,
    SlowDevice,
)
from engine.runs.changes import PRECISE_S, TICK_S, ChangeApplier, poll_timeout_s
from tests.support.fake_devices import FakeClock, Signal, active_run, running_pool

LINK = "d1--s1"


class FakeNetwork:
    """Remembers what was applied and measured; the kernel reads back `in_force`."""

    def __init__(self):
        self.applied, self.measured = [], []

    def apply(self, change):
        self.applied.append(change)
        return {"in_force": 42}

    def measure(self, only=None):
        self.measured.append(only)
        return []


class Case:
    def __init__(self, *changes):
        self.clock = FakeClock()
        self.run = active_run(self.clock, scenario=Scenario(changes=changes))
        self.pool = running_pool(self.clock, self.run)
        self.network, self.samples = FakeNetwork(), 0
        self.changes = ChangeApplier(self.run, self.pool, self.network, self._sample)

    def _sample(self):
        self.samples += 1

    def marks(self):
        return [(item.time_s, item.name, item.device, item.facts) for item in self.run.trace]


@pytest.fixture
def make():
    cases = []

    def make_case(*changes):
        cases.append(Case(*changes))
        return cases[-1]

    yield make_case
    for case in cases:
        case.pool.close(at_once=True)


@pytest.mark.parametrize(
    ("due_in_s", "timeout_s"),
    [
        (inf, TICK_S),
        (1.0, TICK_S),
        (TICK_S, TICK_S - PRECISE_S),
        (0.01, 0.01 - PRECISE_S),
        (PRECISE_S, 0.0),
        (0.0, 0.0),
        (-0.5, 0.0),
    ],
)
def test_waiting_for_messages_ends_before_the_next_timed_change_is_due(due_in_s, timeout_s):
    assert poll_timeout_s(due_in_s) == pytest.approx(timeout_s)


def test_timed_changes_are_applied_when_they_are_due_in_virtual_time(make):
    first, second = (SlowDevice(at_s=at_s, device="d1", factor=2.0) for at_s in (0.5, 0.75))
    case = make(first, second)
    assert case.changes.next_at_s == 0.5
    case.clock.now_s = 100.9  # 0.45 virtual seconds after the start
    case.changes.apply_due()
    assert case.changes.applied == []
    case.clock.now_s = 101.0
    case.changes.apply_due()
    assert case.changes.applied == [first]
    assert case.changes.next_at_s == 0.75
    case.clock.now_s = 200.0
    case.changes.apply_due()
    assert case.changes.applied == [first, second]
    assert case.changes.next_at_s == inf


def test_after_the_end_nothing_is_applied(make):
    case = make(SlowDevice(at_s=0.0, device="d1", factor=2.0))
    case.run.outcome = Outcome()
    case.changes.apply_due()
    assert case.changes.applied == []


def test_a_slower_device_is_sent_to_all_devices_and_recorded(make):
    case = make()
    change = SlowDevice(at_s=0.1, device="d1", factor=2.0)
    case.clock.now_s += 1.0
    case.changes.apply(change)
    assert case.marks() == [(0.5, "device_changed", "d1", {"factor": 2.0})]
    assert case.run.conditions.cluster.devices[1].flop_per_s == case.run.cluster.devices[1].flop_per_s / 2
    told = [{"type": "change", "change": change.model_dump(mode="json")}]
    assert [case.pool.got(rank) for rank in range(3)] == [told, told, told]
    assert case.network.applied == []


def test_a_new_rate_is_recorded_with_what_the_kernel_reads_back(make):
    case = make()
    change = SetRate(at_s=0.1, link=LINK, bit_per_s=5e6)
    case.changes.apply(change)
    ((_, name, device, facts),) = case.marks()
    assert (name, device) == ("link_changed", "")
    assert facts["link"] == LINK and facts["bit_per_s"] == 5e6 and facts["in_force"] == 42
    assert case.network.applied == [change]
    assert case.samples == 1


def test_only_a_rate_that_a_person_changes_is_measured(make):
    case = make()
    case.changes.apply(SetRate(at_s=0.1, link=LINK, bit_per_s=5e6))
    case.changes.apply(SetDelay(at_s=0.1, link=LINK, delay_s=0.1), measured=True)
    assert (case.network.measured, case.changes.live_rate_changes) == ([], 0)
    case.changes.apply(SetRate(at_s=0.1, link=LINK, bit_per_s=6e6), measured=True)
    assert (case.network.measured, case.changes.live_rate_changes) == ([[1]], 1)


def test_a_link_that_goes_down_is_marked_by_its_kind(make):
    case = make()
    case.changes.apply(LinkDown(at_s=0.1, link=LINK))
    assert case.marks()[0][1] == "link_down"


def test_a_dropped_device_is_killed_and_its_links_go_down(make):
    case = make()
    change = DropDevice(at_s=0.1, device="d1")
    case.changes.apply(change)
    assert case.pool.signals == [Signal(1, signal.SIGKILL)]
    assert case.network.applied == [change]
    assert case.marks() == [(0.0, "device_lost", "d1", {})]


def test_a_frozen_device_is_stopped_and_goes_on_when_it_joins(make):
    case = make()
    case.changes.apply(FreezeDevice(at_s=0.1, device="d1"))
    assert case.run.frozen == {1}
    case.changes.apply(JoinDevice(at_s=0.2, device="d1"))
    assert case.pool.signals == [Signal(1, signal.SIGSTOP), Signal(1, signal.SIGCONT)]
    assert (case.run.frozen, case.run.joining) == (set(), set())


def test_a_device_that_has_failed_joins_as_a_new_empty_process(make):
    case = make()
    case.pool.devices[1].sock.close()
    case.pool.read(1.0)
    case.changes.apply(JoinDevice(at_s=0.2, device="d1"))
    assert case.pool.children[1].state == "forked"
    assert not case.pool.plans[1].held_by(1)
    assert case.run.joining == {1}
