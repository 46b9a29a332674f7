"""The supervisor, over devices that the test plays: their messages are written before it reads."""

import time

import pytest

from engine.domain.events import ChangeRefused, ClockTicked, LinksSampled, StateChanged
from engine.domain.network import LoopbackNetwork
from engine.domain.scenario import Scenario, SlowDevice
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.runs.predict import prepare
from engine.runs.supervisor import Callbacks, Supervisor
from engine.worlds.real.device_process import Assignment
from tests.support.fake_devices import FakePool, small_spec

STATS = {"operations": 3, "late": 0, "target_s": 1.0, "host_s": 0.1, "errors": [], "used": []}


class AnsweringPool(FakePool):
    """Every device answers at once what `on` says for the message's type, else what a good one would."""

    def __init__(self, on):
        super().__init__(time.monotonic)
        self.on = {
            "connect": [{"type": "ready"}],
            "start": [{"type": "finished", "pacing": STATS}],
        } | on

    def fork(self, rank, plan):
        super().fork(rank, plan)
        child, device = self.children[rank], self.devices[rank]
        send = child.send

        def answer(**message):
            send(**message)
            for said in self.on.get(message["type"], []):
                device.report(**said)

        child.send = answer
        device.report(type="listening", port=6000 + rank)


class Case:
    def __init__(self, on=(), commands=(), stop_after=None, **more):
        prepared = prepare(small_spec(**more))
        self.events, self.commands, self.asked, self.stop_after = [], list(commands), 0, stop_after
        self.pool = AnsweringPool(dict(on))
        assignment = Assignment(prepared.spec, prepared.plan, prepared.requests, None, True, None)
        self.started_at = []
        calls = Callbacks(
            self.events.append,
            self.annotate,
            lambda: self.commands.pop(0) if self.commands else None,
            self.should_stop,
            lambda: self.started_at.append(len(self.events)),
        )
        pairs = frozenset({(0, 1), (1, 2)})
        self.supervisor = Supervisor(
            assignment, LoopbackNetwork(prepared.spec.cluster), 2.0, pairs, calls, self.pool
        )

    def annotate(self, mark):
        return Mark(mark.time_s, mark.name, mark.device, mark.facts | {"seen": True})

    def should_stop(self):
        self.asked += 1
        return self.stop_after is not None and self.asked > self.stop_after

    def run(self):
        return self.supervisor.run()

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def test_a_run_ends_when_every_device_has_finished():
    case = Case()
    result = case.run()
    assert result.outcome.kind == "finished"
    assert result.pacing == {"d0": STATS, "d1": STATS, "d2": STATS}
    assert case.pool.closed_at_once is False
    assert [event.state for event in case.of(StateChanged)] == ["running"]
    assert case.started_at == [0]  # called before the first event of the running state


def test_devices_receive_each_others_ports():
    case = Case()
    sent = []
    for_all = case.pool.connect
    case.pool.connect = lambda pairs, **more: (
        sent.append({rank: child.port for rank, child in case.pool.children.items()}),
        for_all(pairs, **more),
    )
    case.run()
    assert sent == [{0: 6000, 1: 6001, 2: 6002}]


def test_only_the_devices_that_the_plan_needs_are_started():
    case = Case(strategy="single")
    case.supervisor.active.pairs = frozenset()
    case.run()
    assert case.pool.devices.keys() == {0}


def test_what_devices_trace_is_kept_annotated_and_emitted():
    span = {"type": "span", "device": "d0", "kind": "compute", "name": "x", "layer": 0}
    span |= {"start_s": 0.0, "end_s": 0.5}
    mark = {"type": "mark", "time_s": 0.5, "name": "token_emitted", "device": "d0", "facts": {"request": 0}}
    trace = {"type": "trace", "items": [span, mark]}
    case = Case({"start": [trace, {"type": "finished", "pacing": STATS}]}, strategy="single")
    case.supervisor.active.pairs = frozenset()
    result = case.run()
    assert [type(item) for item in result.trace] == [Span, Mark]
    assert result.trace[1].facts == {"request": 0, "seen": True}
    assert case.of(Span) == result.trace[:1]
    assert case.of(Mark) == result.trace[1:]


@pytest.mark.parametrize(
    ("error", "kind", "sentence", "device"),
    [
        ({"kind": "failed", "message": "boom"}, "failed", "failed: boom", "d"),
        ({"kind": "OutOfMemory", "message": "too large", "device": "d1"}, "out_of_memory", "too large", "d1"),
    ],
)
def test_the_first_error_of_a_device_ends_the_run(error, kind, sentence, device):
    case = Case({"start": [{"type": "error"} | error]})
    result = case.run()
    assert result.outcome.kind == kind
    assert result.outcome.sentence.endswith(sentence)
    assert result.outcome.device.startswith(device)
    assert case.pool.closed_at_once is True


ARRIVED = {
    "type": "mark",
    "time_s": 0.0,
    "name": "request_arrived",
    "device": "d0",
    "facts": {"request": 0},
}


def limited(limit_s):
    return Workload(prompt_tokens=8, new_tokens=3, token_limit_s=limit_s)


def test_a_token_that_comes_later_than_the_limit_ends_the_run():
    late = ARRIVED | {"time_s": 7.5, "name": "token_emitted", "facts": {"request": 0, "index": 0}}
    trace = {"type": "trace", "items": [ARRIVED, late]}
    outcome = Case({"start": [trace]}, workload=limited(7.0)).run().outcome
    assert (outcome.kind, outcome.time_s) == ("out_of_time", 7.0)
    assert "Token 0 of request 0 was not there 7 s after the request arrived" in outcome.sentence


def test_a_token_that_never_comes_ends_the_run_when_the_limit_is_over():
    case = Case({"start": [{"type": "trace", "items": [ARRIVED]}]}, workload=limited(0.05))
    outcome = case.run().outcome
    assert (outcome.kind, outcome.time_s) == ("out_of_time", 0.05)
    assert case.pool.closed_at_once is True


def test_a_stop_before_the_start_says_so():
    case = Case({"connect": []}, stop_after=0)
    result = case.run()
    assert result.outcome.kind == "cancelled"
    assert result.outcome.sentence == "Stopped on request before it started."
    assert case.started_at == []


def test_a_live_stop_says_when():
    result = Case({"start": []}, commands=[{"kind": "stop"}]).run()
    assert result.outcome.kind == "cancelled"
    assert result.outcome.sentence.startswith("Stopped on request at ")


def test_a_live_change_is_applied_with_its_time_and_a_bad_one_is_refused():
    commands = [
        {"kind": "slow_device", "device": "d1", "factor": 3.0},
        {"kind": "slow_device", "device": "nobody", "factor": 3.0},
        {"kind": "paint_device", "device": "d1"},
        {"kind": "stop"},
    ]
    case = Case({"start": []}, commands=commands)
    result = case.run()
    (change,) = result.changes
    assert (change.device, change.factor) == ("d1", 3.0)
    nobody, unknown = case.of(ChangeRefused)
    assert "nobody" in nobody.reason
    assert "paint_device" in unknown.reason


def test_timed_changes_are_applied_no_earlier_than_they_are_due():
    change = SlowDevice(at_s=0.03, device="d1", factor=2.0)
    finished = [{"type": "finished", "pacing": STATS}]
    case = Case({"start": [], "change": finished}, scenario=Scenario(changes=(change,)))
    result = case.run()
    assert result.changes == (change,)
    (mark,) = [item for item in result.trace if item.name == "device_changed"]
    assert mark.time_s >= 0.03


def test_the_clock_is_emitted_while_the_run_goes_on():
    case = Case()
    case.run()
    (tick, *_) = case.of(ClockTicked)
    assert tick.time_s >= 0.0
    assert case.of(LinksSampled) == []  # loopback has no links to sample


def test_a_device_that_has_finished_and_is_alive_has_still_finished():
    finished = {"type": "finished", "pacing": STATS}
    case = Case({"start": [finished, {"type": "alive"}]}, stop_after=200)
    assert case.run().outcome.kind == "finished"


def test_frozen_devices_are_not_waited_for_but_a_frozen_source_is():
    case = Case()
    for rank in range(3):
        case.pool.fork(rank, case.supervisor.active.plan)
        case.pool.children[rank].state = "running" if rank == 1 else "finished"
    assert not case.supervisor._all_finished()
    case.supervisor.active.frozen.add(1)
    assert case.supervisor._all_finished()
    case.pool.children[0].state = "running"
    case.supervisor.active.frozen.add(0)
    assert not case.supervisor._all_finished()
    case.pool.close(at_once=True)


@pytest.mark.parametrize("changes", [(), (SlowDevice(at_s=1000.0, device="d1", factor=2.0),)])
def test_a_deadlock_is_looked_for_only_when_no_change_of_the_scenario_can_end_it(changes):
    case = Case({"start": []}, stop_after=3, scenario=Scenario(changes=changes))
    looked = []
    case.supervisor.deadlocks.check = lambda: looked.append(1)
    assert case.run().outcome.kind == "cancelled"
    assert bool(looked) is not bool(changes)


def test_after_a_new_plan_and_only_then_the_source_is_told_again_what_was_asked():
    case = Case({"start": []}, stop_after=3)
    told, failover = [], case.supervisor.failover

    def plan_anew():
        failover.epoch = 1

    failover.act = plan_anew
    case.supervisor.service.repeat = lambda: told.append(failover.epoch)
    case.run()
    assert told == [1]
