"""The supervisor of a real run: starts the devices, applies changes, reacts to failures, ends the run.

It forks the devices from this process, which has imported torch and computed nothing. One loop reads their
messages, applies changes (`changes.py`), detects failed devices (`failures.py`) and starts new plans
(`failover.py`). The run ends with the last "finished", the first error, a failure that leaves no plan, or a
stop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from engine.domain.errors import EdgeLoomError, OutOfTime
from engine.domain.events import (
    TRACE,
    ChangeRefused,
    ClockTicked,
    Event,
    LinksSampled,
    Logged,
    ProcessLogged,
    StateChanged,
)
from engine.domain.network import LinkMeasurement, Network
from engine.domain.report import Outcome
from engine.domain.scenario import CHANGE, Change, LiveCommand
from engine.domain.trace import Mark, Span
from engine.runs.active_run import ActiveRun, Pairs
from engine.runs.changes import PRECISE_S, TICK_S, ChangeApplier, poll_timeout_s
from engine.runs.children import Child, Message, StartDevice, fork_device
from engine.runs.conclude import RealResult
from engine.runs.deadlock import DeadlockDetector
from engine.runs.failover import Failover
from engine.runs.failures import FailureDetector
from engine.runs.foresight import Foresight
from engine.runs.late import log_stacks, used
from engine.runs.lateness import LatenessWatch
from engine.runs.link_use import LinkMeter
from engine.runs.pool import DevicePool
from engine.runs.predict import OUTCOMES
from engine.runs.readiness import READY_S, ready_limit_s
from engine.runs.rehearsal import Rehearsal
from engine.runs.rehearsing import Rehearser
from engine.runs.service import COMMANDS, Service
from engine.worlds.common.token_limit import TokenLimit
from engine.worlds.real.device_process import Assignment

CLOCK_PERIOD_S = 0.25
"""Wall seconds between two events with the run's clock and the state of its links."""

SILENT_S = 2.0
"""Wall seconds without a message from a process that says every second that it is alive (`SIGN_S` in
`trace_writer.py`); the other second is for a busy host.
"""

TRACE_DELAY_S = 0.5
"""Wall seconds that a mark may take from the device to the supervisor on a busy host."""

START_LEAD_S, NODES_LEAD_S = 0.05, 0.5
"""Wall seconds between the order to start and the start, so that every device receives the order in time,
also a board, which gets it through the server.
"""


class Callbacks(NamedTuple):
    """The functions through which a run reports to its caller and gets commands.

    `emit` takes every event as it happens; `annotate` may add facts to a mark; `next_command` gives the next
    live command or None; `should_stop` ends the run; `before_start` is called once all devices are ready,
    before the clock starts.
    """

    emit: Callable[[Event], None]
    annotate: Callable[[Mark], Mark]
    next_command: Callable[[], LiveCommand | None]
    should_stop: Callable[[], bool]
    before_start: Callable[[], None]


class Supervisor:
    """One real run over `network`. It ends if devices do not get ready in time (`ready_s`: `readiness.py`).

    With `rehearsal` the devices rehearse, and `dilation` is the least; with `expected`, its undisturbed
    trace, a run that is late soon after its begin is ended, so that it can begin again, unless it has
    `most_dilation`.
    `pool` is given by tests alone, which fork nothing.
    """

    def __init__(
        self,
        assignment: Assignment,
        network: Network,
        dilation: float,
        pairs: Pairs,
        calls: Callbacks,
        pool: DevicePool | None = None,
        ready_s: float = READY_S,
        rehearsal: Rehearsal | None = None,
        expected: Sequence[Span | Mark] | None = None,
        most_dilation: float = math.inf,
        start: StartDevice = fork_device,
    ):
        spec = assignment.spec
        self.network, self.calls = network, calls
        self.ready_limit_s = ready_limit_s(spec, assignment.plan, ready_s)
        self.active = run = ActiveRun(
            spec, assignment.plan, assignment.requests, dilation, pairs, calls.emit, calls.annotate
        )
        self.pool = pool or DevicePool(
            lambda rank, plan, others: start(
                rank, spec.cluster.devices[rank].name, assignment._replace(plan=plan), others
            ),
            network.address,
            run.clock,
        )
        self.meter = LinkMeter()
        self.deadlocks = DeadlockDetector(run, self.pool)
        self.token_limit = TokenLimit(spec.workload.token_limit_s)
        self.pacing: dict[str, dict[str, Any]] = {}
        self.changed_live = False
        self.rehearsal, self.rehearser = rehearsal, Rehearser(run, self.pool, network, self.collect)
        self.expected, self.most_dilation = expected, most_dilation
        self.lateness: LatenessWatch | None = None
        self.needed_dilation: float | None = None
        self.links: list[LinkMeasurement] | None = None
        self.failures = FailureDetector(run, self.pool)
        self.service = Service(run, self.pool)
        self.failover = Failover(run, self.pool, self.failures, self.collect)
        self.changes = ChangeApplier(run, self.pool, network, self.failures, self.sample_links)
        self.foresight = Foresight(run, lambda: self.changes.waiting, self.pool.release, network.actual)

    def run(self) -> RealResult:
        """Run to the end; no process is left when this returns or raises."""
        run, pool = self.active, self.pool
        began_s = run.clock()
        try:
            for rank in sorted(run.needed_ranks()):
                pool.fork(rank, run.plan)
            self.collect("listening")
            pool.connect(run.pairs, type="connect")
            self.collect("ready")
            ready_s = run.clock() - began_s
            if run.outcome is None:
                self.calls.before_start()
            if run.outcome is None and self.rehearsal is not None:
                self.links = self.rehearser.play(self.rehearsal)
            if run.outcome is None:
                self._watch_lateness()
                self.changes.apply_due()  # those at 0 s, which no rehearsal and no connecting may meet
                run.start_wall_s = run.clock() + (NODES_LEAD_S if run.spec.on_nodes else START_LEAD_S)
                run.emit(StateChanged(state="running"))
                pool.start(run.start_wall_s, run.dilation, run.start_wall_s)
                self._loop()
        finally:
            self.foresight.close()
            pool.close(at_once=run.outcome is not None)
        return RealResult(
            run.trace,
            run.outcome or Outcome(),
            tuple(run.applied),
            self.pacing,
            ready_s,
            self.changes.live_rate_changes,
            run.requests,
            tuple(self.foresight.made),
            self.changed_live,
            self.needed_dilation,
            run.dilation,
            self.links,
        )

    def _loop(self) -> None:
        run, next_clock_s = self.active, 0.0
        while run.outcome is None:
            self._read_until_next_change()
            self.changes.apply_due()
            while run.outcome is None and (command := self.calls.next_command()) is not None:
                self._handle_command(command)
            if self.calls.should_stop():
                self._stop()
            self.failures.check_running()
            self.service.check()
            self.foresight.check()
            self._check_lateness()
            self._check_token_limit()
            if not self.changes.waiting:  # a device that joins would make the programs start again
                self.deadlocks.check()
            self.changes.recovering = True
            before = self.failover.epoch
            self.failover.act()
            self.changes.recovering = False
            if self.failover.epoch != before:
                self.service.repeat()
            if run.clock() >= next_clock_s:
                next_clock_s = run.clock() + CLOCK_PERIOD_S
                self._tick()
            if self._all_finished():
                return

    def _watch_lateness(self) -> None:
        if self.expected is not None and self.active.dilation < self.most_dilation:
            changes_s = [change.at_s for change in self.changes.waiting]
            self.lateness = LatenessWatch(self.expected, self.active.dilation, changes_s)

    def _check_lateness(self) -> None:
        """End a run that will not be valid, unless a person has changed something: then say so, once."""
        run = self.active
        needed = None if self.lateness is None else self.lateness.needed
        if needed is None or run.outcome is not None:
            return
        self.lateness = None
        if self.changed_live:
            text = f"This run is late and needs dilation {needed:g}: it goes on, because somebody changed it."
            run.emit(Logged(level="warning", text=text))
            return
        self.needed_dilation = needed
        run.end("cancelled", f"It was late: it needs dilation {needed:g}.")

    def _all_finished(self) -> bool:
        """Whether all devices have finished, except frozen ones, which cannot. The source always counts."""
        frozen = self.active.frozen - {self.active.cluster.source_rank}
        running = self.pool.children.keys() - frozen
        return self.pool.with_state("finished", running) == running

    def collect(self, state: str, ranks: Collection[int] | None = None) -> bool:
        """Wait until all devices (or `ranks`) report `state`. False if one fails or the run ends first."""
        run, pool = self.active, self.pool
        deadline_s = run.clock() + self.ready_limit_s
        wanted = set(pool.children if ranks is None else ranks)
        while run.outcome is None and wanted <= pool.children.keys():
            late = wanted - pool.with_state(state, wanted)
            if not late:
                return True
            self._read_until_next_change()
            if run.started:
                self.changes.apply_due()
            self.failures.check_waiting(pool.children[rank] for rank in late if rank in pool.children)
            self._check_token_limit()
            if self.calls.should_stop():
                self._stop()
            if run.outcome is None and run.clock() > deadline_s:
                self._give_up(sorted(late & pool.children.keys()), state)
        return False

    def _give_up(self, late: Sequence[int], state: str) -> None:
        run = self.active
        children = [self.pool.children[rank] for rank in late]
        log_stacks(self.pool, children, self._read)
        still_late = self.pool.children.keys() - self.pool.with_state(state, self.pool.children)
        children = [child for child in children if child.rank in still_late]
        if run.outcome is not None or not children:
            return
        names = ", ".join(child.name for child in children)
        sentence = (
            f"{names} did not report the state {state!r} within {self.ready_limit_s:.0f} s of wall time: a "
            f"device process hangs, or this machine is too busy (processor time used: {used(children)}). The "
            "log of a device that is not stopped says where it is; LOOM_READY_S allows more time."
        )
        run.end("failed", sentence, children[0].name)

    def _check_token_limit(self) -> None:
        """End the run if a token is overdue, and not only on its way to the supervisor."""
        now_s = self.active.now_s - TRACE_DELAY_S / self.active.dilation
        self._within_limit(lambda: self.token_limit.check(now_s))

    def _within_limit(self, check: Callable[[], None]) -> None:
        try:
            check()
        except OutOfTime as error:
            self.active.end("out_of_time", str(error), time_s=error.time_s)

    # live commands

    def _handle_command(self, command: LiveCommand) -> None:
        """Apply a live command: a change without its time, or a stop. An event says why one fails."""
        if command.get("kind") == "stop":
            self._stop()
            return
        if command.get("kind") in COMMANDS:
            self.service.handle(command)
            return
        try:
            fields = {key: value for key, value in command.items() if key != "by"}
            change: Change = CHANGE.validate_python({**fields, "at_s": self.active.now_s})
            self.changes.apply_live(change, str(command.get("by", "")))
            self.changed_live = True
        except (ValueError, EdgeLoomError) as error:
            self.active.emit(ChangeRefused(reason=str(error)))

    def _stop(self) -> None:
        run = self.active
        when = f"at {run.now_s:.3f} s" if run.started else "before it started"
        run.end("cancelled", f"Stopped on request {when}.")

    # events

    def _tick(self) -> None:
        run = self.active
        wall_s = run.clock() - (run.start_wall_s or 0.0)
        silent_s = {name: round(seconds, 1) for name, seconds in self.pool.silent_s(SILENT_S).items()}
        run.emit(ClockTicked(time_s=run.now_s, wall_s=wall_s, silent_s=silent_s))
        self.sample_links()

    def sample_links(self) -> None:
        """Emit the state of all links, and how much of them is in use."""
        now_s = self.active.now_s
        links = self.meter.sample(now_s, self.network.state())
        if links:
            self.active.emit(LinksSampled(time_s=now_s, links=links))

    # messages of devices

    def _read_until_next_change(self) -> None:
        """Read the devices' messages, and return when the next timed change is due."""
        run = self.active
        if not run.started:
            self._read(TICK_S)
            return
        due_s = run.wall_of(self.changes.next_at_s)
        self._read(poll_timeout_s(due_s - run.clock()))
        left_s = due_s - run.clock()
        if 0 < left_s <= PRECISE_S:
            time.sleep(left_s)

    def _read(self, timeout_s: float) -> None:
        for child, message in self.pool.read(timeout_s):
            if message is not None:
                self._handle_message(child, message)
            elif self.active.outcome is None:
                self.failures.handle_end(child)

    def _handle_message(self, child: Child, message: Message) -> None:
        match message["type"]:
            case "trace":
                self.deadlocks.note_progress()
                for item in TRACE.validate_python(message["items"]):
                    self.active.record(item)
                    if self.lateness is not None:
                        self.lateness.record(item)
                    self.service.note(item)
                    self._within_limit(lambda item=item: self.token_limit.record(item))  # type: ignore[misc]
            case "suspect":
                self.failures.suspect(child.rank, message["rank"], message["last_byte_s"])
            case "status":
                self.deadlocks.handle_status(child.rank, message)
            case "log":
                said = ProcessLogged(
                    device=child.name, time_s=self.active.now_s, lines=tuple(message["lines"])
                )
                self.active.emit(said)
            case "alive":
                pass  # the pool has noted when it came
            case "pong":
                self.failures.handle_pong(child, message["served_s"])
            case "error":
                self._handle_error(child, message)
            case "rehearsed":
                self.rehearser.note(child.name, message)
                child.state = "rehearsed"
            case state:
                child.state = state
                child.port = message.get("port", child.port)
                if "pacing" in message:
                    self.pacing[child.name] = message["pacing"]

    def _handle_error(self, child: Child, message: Message) -> None:
        kind = OUTCOMES.get(message["kind"], "failed")
        text = message["message"]
        sentence = f"{child.name} failed: {text}" if kind == "failed" else text
        self.active.end(kind, sentence, message.get("device") or child.name, message.get("time_s") or None)
