"""Changes of a running run: when they are applied, to what, and what is recorded and sent. D = 2."""

import signal
from math import inf

import pytest

from engine.domain.errors import SpecError
from engine.domain.events import Logged
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
from engine.runs.failures import FailureDetector
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
    """A run with these timed changes; the devices `ranks` have a process."""

    def __init__(self, *changes, ranks=(0, 1, 2), **more):
        self.clock = FakeClock()
        self.run = active_run(self.clock, scenario=Scenario(changes=changes), **more)
        self.pool = running_pool(self.clock, self.run, ranks)
        self.network, self.samples = FakeNetwork(), 0
        failures = FailureDetector(self.run, self.pool)
        self.changes = ChangeApplier(self.run, self.pool, self.network, failures, self._sample)

    def _sample(self):
        self.samples += 1

    def marks(self):
        return [(item.time_s, item.name, item.device, item.facts) for item in self.run.trace]


@pytest.fixture
def make():
    cases = []

    def make_case(*changes, **more):
        cases.append(Case(*changes, **more))
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
    assert case.run.applied == []
    case.clock.now_s = 101.0
    case.changes.apply_due()
    assert case.run.applied == [first]
    assert case.changes.next_at_s == 0.75
    case.clock.now_s = 200.0
    case.changes.apply_due()
    assert case.run.applied == [first, second]
    assert case.changes.next_at_s == inf


def test_after_the_end_nothing_is_applied(make):
    case = make(SlowDevice(at_s=0.0, device="d1", factor=2.0))
    case.run.outcome = Outcome()
    case.changes.apply_due()
    assert case.run.applied == []


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
    case.changes.apply_live(SetDelay(at_s=0.1, link=LINK, delay_s=0.1))
    assert (case.network.measured, case.changes.live_rate_changes) == ([], 0)
    case.changes.apply_live(SetRate(at_s=0.1, link=LINK, bit_per_s=6e6))
    assert (case.network.measured, case.changes.live_rate_changes) == ([[1]], 1)


def test_a_live_change_is_marked_with_who_made_it_and_one_of_the_scenario_with_nobody(make):
    case = make()
    case.changes.apply_live(SetDelay(at_s=0.1, link=LINK, delay_s=0.1), "ada")
    case.changes.apply(SetDelay(at_s=0.1, link=LINK, delay_s=0.2))
    assert [facts.get("by") for *_, facts in case.marks()] == ["ada", None]


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


def ended(case, rank):
    """Let the process of a device end, as the supervisor reads it."""
    case.pool.devices[rank].sock.close()
    for child, message in case.pool.read(1.0):
        if message is None:
            case.changes.failures.handle_end(child)


def drop(at_s=0.1):
    return DropDevice(at_s=at_s, device="d1")


def join(at_s=0.2):
    return JoinDevice(at_s=at_s, device="d1")


def test_a_frozen_device_that_is_dropped_joins_as_a_new_process_that_is_not_frozen(make):
    case = make()
    case.changes.apply(FreezeDevice(at_s=0.0, device="d1"))
    case.changes.apply(drop())
    assert case.run.frozen == set(), "at once: the supervisor awaits the end of what is not frozen"
    ended(case, 1)
    case.changes.apply(join())
    assert case.pool.children[1].state == "forked"
    assert (case.run.frozen, case.run.joining) == (set(), {1})
    assert Signal(1, signal.SIGCONT) not in case.pool.signals


def test_a_device_that_has_failed_joins_as_a_new_empty_process_with_its_links(make):
    case = make()
    case.changes.apply(drop())
    ended(case, 1)
    case.changes.apply(join())
    assert case.pool.children[1].state == "forked"
    assert not case.pool.plans[1].held_by(1)
    assert case.run.joining == {1}
    assert case.network.applied == [drop(), join()]


def test_a_device_joins_only_when_its_old_process_has_ended_and_its_later_changes_wait_too(make):
    case = make(drop(), join(), drop(0.3), SlowDevice(at_s=0.3, device="d2", factor=2.0))
    case.clock.now_s += 10.0
    case.changes.apply_due()
    assert case.run.applied == [drop(), SlowDevice(at_s=0.3, device="d2", factor=2.0)]
    assert case.changes.next_at_s == 0.3  # the second drop, once the join has its turn
    ended(case, 1)
    case.changes.apply_due()
    assert [change.kind for change in case.run.applied[2:]] == ["join_device", "drop_device"]


def test_a_live_join_right_after_a_drop_waits_for_the_end_of_the_process(make):
    case = make()
    case.changes.apply_live(drop())
    case.changes.apply_live(join(0.1))
    assert case.run.applied == [drop()]
    ended(case, 1)
    case.clock.now_s += 1.0
    case.changes.apply_due()
    assert case.run.applied == [drop(), join(0.1)]


def test_while_programs_are_halted_for_a_new_plan_devices_leave_but_do_not_join(make):
    case = make(drop(), join())
    case.changes.recovering = True
    case.clock.now_s += 10.0
    case.changes.apply_due()
    ended(case, 1)
    case.changes.apply_due()
    assert case.run.applied == [drop()]
    case.changes.recovering = False
    case.changes.apply_due()
    assert case.run.applied == [drop(), join()]


def test_where_nothing_is_planned_again_a_device_that_joins_is_not_started(make):
    case = make(join(), ranks=(0, 2), failover="stop")
    case.clock.now_s += 1.0
    case.changes.apply_due()
    assert (1 in case.pool.children, case.run.joining) == (False, set())
    assert [name for _, name, _, _ in case.marks()] == ["device_joined"]


def test_a_dropped_device_without_a_process_is_known_to_have_failed(make):
    case = make(ranks=(0, 1))  # the plan does not use d2
    case.changes.apply(DropDevice(at_s=0.1, device="d2"))
    assert [name for _, name, _, _ in case.marks()] == ["device_lost", "loss_detected"]
    assert case.run.conditions.failed == {2}


@pytest.mark.parametrize(
    ("before", "change", "reason"),
    [
        ([], join(), "d1 is present: only a device that has left can join."),
        ([drop()], drop(0.2), "d1 is not present: let it join first."),
        ([drop()], FreezeDevice(at_s=0.2, device="d1"), "d1 is not present: let it join first."),
        (
            [FreezeDevice(at_s=0.1, device="d1")],
            FreezeDevice(at_s=0.2, device="d1"),
            "d1 is frozen already.",
        ),
    ],
)
def test_a_change_without_effect_is_refused_by_hand_and_logged_in_a_scenario(make, before, change, reason):
    case = make()
    for earlier in before:
        case.changes.apply(earlier)
        if isinstance(earlier, DropDevice):
            ended(case, 1)
    known = list(case.run.trace)
    with pytest.raises(SpecError, match=reason):
        case.changes.apply_live(change)
    case.changes.apply(change)
    assert case.run.events[-1] == Logged(level="warning", text=f"{change.kind} at 0.2 s: {reason}")
    assert (case.run.trace, case.run.applied) == (known, before)


def test_a_device_that_joins_learns_how_links_and_speeds_have_changed(make):
    case = make()
    slower, faster = (
        SlowDevice(at_s=0.1, device="d1", factor=2.0),
        SetRate(at_s=0.1, link=LINK, bit_per_s=5e6),
    )
    for change in (slower, faster, drop()):
        case.changes.apply(change)
    ended(case, 1)
    case.changes.apply(join())
    told = [message["change"] for message in case.pool.got(1, "change")]
    assert told == [slower.model_dump(mode="json"), faster.model_dump(mode="json")]
