"""A real run from the parent's side: fork the devices, start them together, watch, change, stop.

Devices are forked from this process, which has imported torch already and computed nothing. One loop
reads their control sockets, applies live changes and timed ones, and says what happened; it ends with
the last device's "finished", the first error, a lost device or a stop.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from engine import errors
from engine.children import Child, end_all, fork_device
from engine.network import Network
from engine.predict import OUTCOMES, Event
from engine.report import Outcome
from engine.scenario import Change, DropDevice, SetRate
from engine.trace import Mark, Span, from_json
from engine.units import BITS_PER_BYTE
from engine.worker import Assignment
from engine.worlds.device import takes_part

TICK_S = 0.02
CLOCK_PERIOD_S = 0.25
READY_TIMEOUT_S = 600.0
START_LEAD_S = 0.05
SUSPICION_S = 0.5
PAYLOAD_SHARE = 1448 / 1514  # of a full Ethernet frame at MTU 1500
CHANGE: TypeAdapter[Change] = TypeAdapter(Change)


class RealResult(NamedTuple):
    """What a real run leaves: its trace, how it ended, what was changed, each device's pacing."""

    trace: list[Span | Mark]
    outcome: Outcome
    changes: tuple[Change, ...]
    pacing: dict[str, dict[str, Any]]
    ready_s: float


class Launch:
    """One real run over `network`.

    `watch` sees every span, mark and clock event as it happens; `annotate` may add facts to a mark.
    """

    def __init__(
        self,
        assignment: Assignment,
        network: Network,
        dilation: float,
        pairs: frozenset[tuple[int, int]],
        watch: Callable[[Span | Mark | Event], None],
        annotate: Callable[[Mark], Mark],
        next_command: Callable[[], Event | None],
        should_stop: Callable[[], bool],
    ):
        self.assignment = assignment
        self.cluster = assignment.spec.cluster
        self.network = network
        self.dilation = dilation
        self.pairs = pairs
        self.watch = watch
        self.annotate = annotate
        self.next_command = next_command
        self.should_stop = should_stop
        self.children: dict[int, Child] = {}
        self.selector = selectors.DefaultSelector()
        self.trace: list[Span | Mark] = []
        self.changes: list[Change] = []
        self.pacing: dict[str, dict[str, Any]] = {}
        self.outcome: Outcome | None = None
        self.start_s = 0.0
        self.suspicions: list[tuple[float, Child, dict[str, Any]]] = []
        self.link_bytes: dict[tuple[int, bool], tuple[float, int]] = {}

    def run(self) -> RealResult:
        began_s = time.monotonic()
        try:
            self._fork()
            self._collect("listening")
            self._connect()
            self._collect("ready")
            ready_s = time.monotonic() - began_s
            if self.outcome is None:
                self._begin()
                self._loop()
        finally:
            end_all(self.children.values(), at_once=self.outcome is not None)
            self.selector.close()
        outcome = self.outcome or Outcome()
        return RealResult(self.trace, outcome, tuple(self.changes), self.pacing, ready_s)

    @property
    def now_s(self) -> float:
        """Virtual seconds since the start."""
        return (time.monotonic() - self.start_s) / self.dilation

    # coming up

    def _fork(self) -> None:
        needed = {self.cluster.source_rank} | {rank for pair in self.pairs for rank in pair}
        for rank, device in enumerate(self.cluster.devices):
            if rank not in needed and not takes_part(self.cluster, self.assignment.plan, rank):
                continue
            child = fork_device(rank, device.name, self.assignment, self.children.values())
            self.children[rank] = child
            self.selector.register(child.sock, selectors.EVENT_READ, child)

    def _collect(self, state: str) -> None:
        """Until every device says `state`, one fails, or somebody stops the run."""
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while self.outcome is None and any(child.state != state for child in self.children.values()):
            self._read()
            if self.should_stop():
                self.outcome = Outcome(kind="cancelled", sentence="Stopped before it started.")
            if time.monotonic() > deadline_s:
                late = ", ".join(child.name for child in self.children.values() if child.state != state)
                sentence = f"{late} did not get ready within {READY_TIMEOUT_S:g} s."
                self.outcome = Outcome(kind="failed", sentence=sentence)

    def _connect(self) -> None:
        if self.outcome is not None:
            return
        for rank, child in self.children.items():
            peers = [
                (dst, self.network.address(dst), self.children[dst].port)
                for src, dst in sorted(self.pairs) if src == rank
            ]
            expect = sum(1 for _, dst in self.pairs if dst == rank)
            child.tell(type="connect", peers=peers, expect=expect)

    def _begin(self) -> None:
        self.start_s = time.monotonic() + START_LEAD_S
        self.watch({"type": "state", "state": "running", "detail": ""})
        for child in self.children.values():
            child.tell(type="start", start_s=self.start_s, dilation=self.dilation)

    # running

    def _loop(self) -> None:
        timed = list(self.assignment.spec.scenario.changes)
        next_clock_s = 0.0
        while self.outcome is None:
            self._read()
            now_s = self.now_s
            while timed and timed[0].at_s <= now_s and self.outcome is None:
                self._change(timed.pop(0))
            while self.outcome is None and (command := self.next_command()) is not None:
                self._command(command)
            if self.should_stop() and self.outcome is None:
                self._stop()
            if time.monotonic() >= next_clock_s:
                next_clock_s = time.monotonic() + CLOCK_PERIOD_S
                self.watch({"type": "clock", "time_s": now_s, "wall_s": time.monotonic() - self.start_s})
                self._watch_links()
            if all(child.state == "finished" for child in self.children.values()):
                return

    def _watch_links(self) -> None:
        """Say how much of every link is in use: payload bit/s since the last look, virtual."""
        now_s = self.now_s
        links = []
        for state in self.network.state():
            way = (state.link, state.forward)
            before_s, before_bytes = self.link_bytes.get(way, (now_s, state.sent_bytes))
            elapsed_s = now_s - before_s
            self.link_bytes[way] = (now_s, state.sent_bytes)
            used = (state.sent_bytes - before_bytes) * BITS_PER_BYTE * PAYLOAD_SHARE
            links.append({
                "link": state.link, "forward": state.forward, "up": state.up,
                "bit_per_s": used / elapsed_s if elapsed_s > 0 else 0.0,
                "set_bit_per_s": state.set_bit_per_s, "measured_bit_per_s": state.measured_bit_per_s,
            })
        if links:
            self.watch({"type": "links", "time_s": now_s, "links": links})

    def _stop(self) -> None:
        sentence = f"Stopped on request at {self.now_s:.3f} s."
        self.outcome = Outcome(kind="cancelled", sentence=sentence, time_s=self.now_s)

    def _read(self) -> None:
        for key, _ in self.selector.select(TICK_S):
            child: Child = key.data
            messages = child.hear()
            if messages is None:
                self.selector.unregister(child.sock)
                self._gone(child)
                continue
            for message in messages:
                self._told(child, message)
        if self.suspicions and time.monotonic() > self.suspicions[0][0]:
            _, child, message = self.suspicions[0]
            self._failed(child, message)

    def _told(self, child: Child, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "trace":
            for data in message["items"]:
                self._happened(from_json(data))
        elif kind == "listening":
            child.port, child.state = message["port"], "listening"
        elif kind == "error":
            self._failed(child, message)
        else:
            child.state = kind
            if kind == "finished":
                self.pacing[child.name] = message["pacing"]

    def _happened(self, item: Span | Mark) -> None:
        if isinstance(item, Mark):
            item = self.annotate(item)
        self.trace.append(item)
        self.watch(item)

    def _failed(self, child: Child, message: dict[str, Any]) -> None:
        if self.outcome is not None:
            return
        if message["kind"] == "PeerLost" and not self.suspicions:
            # a dying process closes its connections before it is dead: its end tells the better story
            self.suspicions.append((time.monotonic() + SUSPICION_S, child, message))
            return
        kind: Any = OUTCOMES.get(message["kind"], "failed")
        text = message["message"]
        sentence = f"{child.name} failed: {text}" if kind == "failed" else text
        self.outcome = Outcome(
            kind=kind, sentence=sentence, device=message.get("device") or child.name,
            time_s=message.get("time_s") or max(0.0, self.now_s),
        )

    def _gone(self, child: Child) -> None:
        """A device process ended without being told to."""
        if self.outcome is not None or child.state == "finished":
            return
        at_s = max(0.0, self.now_s) if self.start_s else 0.0
        self._happened(Mark(at_s, "device_lost", child.name))
        child.state = "lost"
        if takes_part(self.cluster, self.assignment.plan, child.rank):
            sentence = f"{child.name} was lost at {at_s:.3f} s and holds a part of the plan."
            self.outcome = Outcome(kind="peer_lost", sentence=sentence, device=child.name, time_s=at_s)
        else:
            child.state = "finished"

    # changes

    def _command(self, command: Event) -> None:
        """A live command: the change without its time. A bad one is answered, not obeyed.

        Whoever moves a slider wants to see the link measured, which takes some of it; timed changes,
        replays among them, stay undisturbed: what the kernel reads back must do.
        """
        if command.get("kind") == "stop":
            self._stop()
            return
        try:
            change = CHANGE.validate_python({**command, "at_s": max(0.0, self.now_s)})
            self._change(change)
            if isinstance(change, SetRate):
                self.network.measure([self.cluster.link_index(change.link)])
        except (ValueError, errors.EdgeLoomError) as error:
            self.watch({"type": "log", "level": "error", "text": f"Change refused: {error}"})

    def _change(self, change: Change) -> None:
        """Apply a change and say so, with what the kernel reads back, when it is in force."""
        if isinstance(change, DropDevice):
            rank = self.cluster.rank(change.device)
            if rank in self.children and self.children[rank].state != "lost":
                os.kill(self.children[rank].pid, signal.SIGKILL)
            self.network.apply(change)
            self.changes.append(change)
            return
        link = self.cluster.link_index(change.link)
        facts = self.network.apply(change)
        self.changes.append(change)
        asked = change.model_dump(exclude={"kind", "at_s"})
        name = "link_changed" if isinstance(change, SetRate) else change.kind
        self._happened(Mark(self.now_s, name, facts=asked | facts))
        if isinstance(change, SetRate):
            self._tell_rate(link, change)
            self._watch_links()

    def _tell_rate(self, link: int, change: SetRate) -> None:
        for forward, name in ((True, "forward"), (False, "backward")):
            if change.direction in ("both", name):
                for child in self._running():
                    child.tell(type="rate", link=link, forward=forward, bit_per_s=change.bit_per_s)

    def _running(self) -> list[Child]:
        return [child for child in self.children.values() if child.state == "ready"]
