"""A real run from the parent's side: fork the devices, start them together, watch, change, stop.

Devices are forked from this process, which has imported torch already and computed nothing. One loop
reads their control sockets and applies changes (`changing.py`); a loss or a device that joins leads to a new
plan (`failover.py`). It ends with the last device's "finished", the first error, a loss that nobody can
make good, or a stop.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Collection
from typing import Any

from engine.domain import errors
from engine.domain.conditions import Conditions, absent_at_start
from engine.domain.events import TRACE, ClockTicked, Event, LinkSample, LinksSampled, Logged, StateChanged
from engine.domain.network import Network
from engine.domain.plan import Plan
from engine.domain.report import Outcome
from engine.domain.scenario import CHANGE, Change, LiveCommand
from engine.domain.trace import Mark, Span
from engine.domain.units import BITS_PER_BYTE
from engine.runs.changes import PRECISE_S, TICK_S, Changing, poll_timeout_s
from engine.runs.children import Child, end_all, fork_device, kill
from engine.runs.conclude import RealResult
from engine.runs.failover import Failover
from engine.runs.predict import OUTCOMES
from engine.worlds.common.device import takes_part
from engine.worlds.real.device_process import Assignment

CLOCK_PERIOD_S = 0.25
READY_TIMEOUT_S = 600.0
START_LEAD_S = 0.05
PAYLOAD_SHARE = 1448 / 1514  # of a full Ethernet frame at MTU 1500

Pairs = frozenset[tuple[int, int]]


class Launch:
    """One real run over `network`.

    `watch` sees every event as it happens; `annotate` may add facts to a mark; `before_start` is called once
    all devices are ready, before the clock starts.
    """

    def __init__(
        self,
        assignment: Assignment,
        network: Network,
        dilation: float,
        pairs: Pairs,
        watch: Callable[[Event], None],
        annotate: Callable[[Mark], Mark],
        next_command: Callable[[], LiveCommand | None],
        should_stop: Callable[[], bool],
        before_start: Callable[[], None],
    ):
        self.assignment = assignment
        self.spec = assignment.spec
        self.cluster = assignment.spec.cluster
        self.plan: Plan = assignment.plan
        self.network = network
        self.dilation = dilation
        self.watch = watch
        self.annotate = annotate
        self.next_command = next_command
        self.should_stop = should_stop
        self.before_start = before_start
        self.conditions = Conditions(self.cluster, absent_at_start(self.cluster, self.spec.scenario))
        self.children: dict[int, Child] = {}
        self.ended: list[Child] = []
        self.connected: set[tuple[int, int]] = set()
        self.selector = selectors.DefaultSelector()
        self.trace: list[Span | Mark] = []
        self.pacing: dict[str, dict[str, Any]] = {}
        self.outcome: Outcome | None = None
        self.start_s = 0.0
        self.link_bytes: dict[tuple[int, bool], tuple[float, int]] = {}
        self.failover = Failover(self, pairs)
        self.changing = Changing(self)

    def run(self) -> RealResult:
        began_s = time.monotonic()
        try:
            for rank in sorted(self.needed()):
                self.fork(rank, self.assignment)
            self.collect("listening")
            self.tell_connections("connect", self.failover.pairs)
            self.collect("ready")
            ready_s = time.monotonic() - began_s
            if self.outcome is None:
                self.before_start()
                self.start_s = time.monotonic() + START_LEAD_S
                self.watch(StateChanged(state="running"))
                self.begin(self.start_s)
                self._loop()
        finally:
            end_all([*self.children.values(), *self.ended], at_once=self.outcome is not None)
            self.selector.close()
        outcome = self.outcome or Outcome()
        changing = self.changing
        return RealResult(
            self.trace, outcome, tuple(changing.done), self.pacing, ready_s, changing.live_rate_changes
        )

    @property
    def now_s(self) -> float:
        """Virtual seconds since the start."""
        return max(0.0, (time.monotonic() - self.start_s) / self.dilation) if self.start_s else 0.0

    def needed(self) -> set[int]:
        """Devices that the plan needs, or that a message goes through."""
        present = set(range(len(self.cluster.devices))) - self.conditions.lost
        talking = {rank for pair in self.failover.pairs for rank in pair}
        return {rank for rank in present if rank in talking or takes_part(self.cluster, self.plan, rank)}

    # devices

    def fork(self, rank: int, assignment: Assignment) -> None:
        child = fork_device(rank, self.cluster.devices[rank].name, assignment, self.children.values())
        self.children[rank] = child
        self.selector.register(child.sock, selectors.EVENT_READ, child)

    def collect(self, state: str, ranks: Collection[int] | None = None) -> bool:
        """Until every device (of `ranks`) says `state`: True. Not if one is lost or fails, or somebody stops
        the run.
        """
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        asked = {rank: self.children[rank] for rank in (self.children if ranks is None else ranks)}
        while self.outcome is None and any(child.state != state for child in asked.values()):
            if not asked.keys() <= self.children.keys():
                return False
            self.read()
            self.failover.watch(asked[rank] for rank in asked if asked[rank].state != state)
            if self.should_stop():
                self.stop()
            if time.monotonic() > deadline_s:
                late = ", ".join(child.name for child in asked.values() if child.state != state)
                sentence = f"{late} did not get to the state {state} within {READY_TIMEOUT_S:g} s."
                self.outcome = Outcome(kind="failed", sentence=sentence, time_s=self.now_s)
        return self.outcome is None and asked.keys() <= self.children.keys()

    def tell_connections(self, word: str, pairs: Pairs, **more: Any) -> None:
        """Every device opens what it has not opened yet; both ways, so that each can ask after the other."""
        wanted = {way for src, dst in pairs for way in ((src, dst), (dst, src))}
        wanted = {(src, dst) for src, dst in wanted if src in self.children and dst in self.children}
        fresh, self.connected = wanted - self.connected, self.connected | wanted
        addresses = [(rank, self.network.address(rank), child.port) for rank, child in self.children.items()]
        for rank, child in self.children.items():
            peers = sorted(dst for src, dst in fresh if src == rank)
            expect = sum(1 for _, dst in self.connected if dst == rank)
            child.tell(type=word, addresses=addresses, peers=peers, expect=expect, **more)

    def begin(self, begin_s: float) -> None:
        for child in self.children.values():
            child.state = "running"
            child.tell(type="start", start_s=self.start_s, dilation=self.dilation, begin_s=begin_s)

    def tell_all(self, **message: Any) -> None:
        for child in self.children.values():
            child.tell(**message)

    def give_up(self, rank: int) -> None:
        """Nobody shall hear of this process again, if it is not gone already."""
        if rank in self.children:
            kill(self.children[rank].pid)

    # running

    def _loop(self) -> None:
        next_clock_s = 0.0
        while self.outcome is None:
            self._read_until_next_change()
            self.changing.apply_due(self.now_s)
            while self.outcome is None and (command := self.next_command()) is not None:
                self._command(command)
            if self.should_stop():
                self.stop()
            self.failover.act()
            if time.monotonic() >= next_clock_s:
                next_clock_s = time.monotonic() + CLOCK_PERIOD_S
                self._tick()
            asleep = self.changing.frozen - {self.cluster.source_rank}
            awake = [child for rank, child in self.children.items() if rank not in asleep]
            if all(child.state == "finished" for child in awake):
                return

    def _command(self, command: LiveCommand) -> None:
        """A live command: the change without its time. A bad one is answered, not obeyed."""
        if command.get("kind") == "stop":
            self.stop()
            return
        try:
            change: Change = CHANGE.validate_python({**command, "at_s": self.now_s})
            self.changing.apply(change, measured=True)
        except (ValueError, errors.EdgeLoomError) as error:
            self.watch(Logged(level="error", text=f"Change refused: {error}"))

    def stop(self) -> None:
        when = f"at {self.now_s:.3f} s" if self.start_s else "before it started"
        sentence = f"Stopped on request {when}."
        self.outcome = self.outcome or Outcome(kind="cancelled", sentence=sentence, time_s=self.now_s)

    def _tick(self) -> None:
        wall_s = time.monotonic() - self.start_s
        self.watch(ClockTicked(time_s=self.now_s, wall_s=wall_s))
        self.watch_links()

    def watch_links(self) -> None:
        """Say how much of every link is in use: payload bit/s since the last look, virtual."""
        now_s = self.now_s
        links = []
        for state in self.network.state():
            way = (state.link, state.forward)
            before_s, before_bytes = self.link_bytes.get(way, (now_s, state.sent_bytes))
            elapsed_s = now_s - before_s
            self.link_bytes[way] = (now_s, state.sent_bytes)
            used = (state.sent_bytes - before_bytes) * BITS_PER_BYTE * PAYLOAD_SHARE
            links.append(
                LinkSample(
                    link=state.link,
                    forward=state.forward,
                    up=state.up,
                    bit_per_s=used / elapsed_s if elapsed_s > 0 else 0.0,
                    set_bit_per_s=state.set_bit_per_s,
                    measured_bit_per_s=state.measured_bit_per_s,
                )
            )
        if links:
            self.watch(LinksSampled(time_s=now_s, links=tuple(links)))

    # what devices say

    def _read_until_next_change(self) -> None:
        """Read what devices say, but return in time for the next timed change."""
        due_s = self.start_s + self.changing.next_at_s * self.dilation
        self.read(poll_timeout_s(due_s - time.monotonic()))
        left_s = due_s - time.monotonic()
        if 0 < left_s <= PRECISE_S:
            time.sleep(left_s)

    def read(self, timeout_s: float = TICK_S) -> None:
        for key, _ in self.selector.select(timeout_s):
            child: Child = key.data
            messages = child.hear()
            if messages is None:
                self._gone(child)
                continue
            child.heard_s = time.monotonic()
            for message in messages:
                self._told(child, message)

    def _told(self, child: Child, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "trace":
            for item in TRACE.validate_python(message["items"]):
                self.happened(item)
        elif kind == "suspect":
            self.failover.suspect(child.rank, message["rank"])
        elif kind == "pong":
            self.failover.answered(child)
        elif kind == "error":
            self._failed(child, message)
        else:
            child.state = kind
            child.port = message.get("port", child.port)
            if "pacing" in message:
                self.pacing[child.name] = message["pacing"]

    def happened(self, item: Span | Mark) -> None:
        if isinstance(item, Mark):
            item = self.annotate(item)
        self.trace.append(item)
        self.watch(item)

    def _gone(self, child: Child) -> None:
        """A device process ended without being told to."""
        self.selector.unregister(child.sock)
        self.ended.append(self.children.pop(child.rank))
        self.connected = {pair for pair in self.connected if child.rank not in pair}
        if self.outcome is None:
            self.failover.lost(child)

    def _failed(self, child: Child, message: dict[str, Any]) -> None:
        if self.outcome is not None:
            return
        kind: Any = OUTCOMES.get(message["kind"], "failed")
        text = message["message"]
        sentence = f"{child.name} failed: {text}" if kind == "failed" else text
        self.outcome = Outcome(
            kind=kind,
            sentence=sentence,
            device=message.get("device") or child.name,
            time_s=message.get("time_s") or self.now_s,
        )
