"""The device processes of one real run: fork, connect, start, halt, read, kill.

The pool manages processes and messages; plans, failures and changes are other modules' work.
"""

from __future__ import annotations

import selectors
import signal
from collections.abc import Callable, Collection, Iterable
from typing import Any

from engine.domain.plan import Plan
from engine.domain.scenario import Change, LinkChange, SlowDevice
from engine.runs.active_run import Pairs
from engine.runs.children import Child, Message, end_all

Fork = Callable[[int, Plan, Collection[Child]], Child]
"""Starts the process of a device with the weights that a plan gives it; the others are running already."""


class DevicePool:
    """The processes by rank in `children`; `address_of` gives the IP address of a device."""

    def __init__(self, fork: Fork, address_of: Callable[[int], str], clock: Callable[[], float]):
        self.children: dict[int, Child] = {}
        self._ended: list[Child] = []
        self._fork, self._address_of, self._clock = fork, address_of, clock
        self._connected: set[tuple[int, int]] = set()
        self._selector = selectors.DefaultSelector()
        self._read_s = clock()

    def fork(self, rank: int, plan: Plan) -> None:
        """Start device `rank` with the weights that `plan` gives it."""
        child = self._fork(rank, plan, self.children.values())
        self.children[rank] = child
        self._selector.register(child.sock, selectors.EVENT_READ, child)
        if child.output is not None:
            self._selector.register(child.output, selectors.EVENT_READ, child)

    def fork_empty(self, rank: int, plan: Plan, changes: Iterable[Change]) -> None:
        """Start device `rank` without weights; of `changes`, it learns those of links and speeds."""
        holdings = tuple(holding for holding in plan.holdings if holding.device != rank)
        self.fork(rank, plan.model_copy(update={"holdings": holdings}))
        for change in changes:
            if isinstance(change, LinkChange | SlowDevice):
                self.children[rank].send(type="change", change=change.model_dump(mode="json"))

    def read(self, timeout_s: float) -> list[tuple[Child, Message | None]]:
        """Wait up to `timeout_s` for messages of the devices. None: that process has ended."""
        found: list[tuple[Child, Message | None]] = []
        ready = self._selector.select(timeout_s)
        self._read_s = self._clock()
        for key, _ in ready:
            child: Child = key.data
            if key.fileobj is not child.sock:
                found += self._read_output(child)
                continue
            messages = child.receive()
            if messages is None:
                found += self._read_output(child)
                self._remove(child)
                found.append((child, None))
                continue
            child.last_message_s = self._clock()
            if any(message["type"] == "error" for message in messages):
                found += self._read_output(child)  # what it wrote before
            found += [(child, message) for message in messages]
        return found

    def silent_s(self, least_s: float) -> dict[str, float]:
        """The devices whose process had sent nothing for longer than `least_s` at the last reading, and for
        how long. While nobody reads, no device becomes silent.
        """
        silent = {child.name: self._read_s - child.last_message_s for child in self.children.values()}
        return {name: seconds for name, seconds in silent.items() if seconds > least_s}

    def _read_output(self, child: Child) -> list[tuple[Child, Message | None]]:
        """The lines that the process wrote since the last call, as a message like those that it sends."""
        if child.output is None:
            return []
        lines, open_ = child.output.read()
        if not open_:
            self._close_output(child)
        return [(child, {"type": "log", "lines": lines})] if lines else []

    def _close_output(self, child: Child) -> None:
        if child.output is not None:
            self._selector.unregister(child.output)
            child.output.close()
            child.output = None

    def _remove(self, child: Child) -> None:
        self._close_output(child)
        self._selector.unregister(child.sock)
        self._ended.append(self.children.pop(child.rank))
        child.ending = child.how_ended()
        self._connected = {pair for pair in self._connected if child.rank not in pair}

    def connect(self, pairs: Pairs, **message: Any) -> None:
        """Send `message` to all, with the connections that each must open and must wait for.

        Pairs connect in both directions, so that each device can ping the other.
        """
        wanted = {way for src, dst in pairs for way in ((src, dst), (dst, src))}
        wanted = {(src, dst) for src, dst in wanted if src in self.children and dst in self.children}
        missing, self._connected = wanted - self._connected, self._connected | wanted
        addresses = [(rank, self._address_of(rank), child.port) for rank, child in self.children.items()]
        for rank, child in self.children.items():
            peers = sorted(dst for src, dst in missing if src == rank)
            expect = sum(1 for _, dst in self._connected if dst == rank)
            child.send(**message, addresses=addresses, peers=peers, expect=expect)

    def start(self, start_s: float, dilation: float, begin_s: float) -> None:
        """Let all programs begin at wall time `begin_s`; virtual time 0 is wall time `start_s`."""
        for child in self.children.values():
            child.state = "running"
            child.send(type="start", start_s=start_s, dilation=dilation, begin_s=begin_s)

    def halt(self) -> None:
        """Stop all programs; each device reports "halted"."""
        for child in self.children.values():
            child.state = "halting"  # an older report of "halted" must not count
            child.send(type="halt")

    def send_all(self, **message: Any) -> None:
        for child in self.children.values():
            child.send(**message)

    def send(self, rank: int, **message: Any) -> None:
        """Send `message` to device `rank`, if it has a process."""
        if rank in self.children:
            self.children[rank].send(**message)

    def ping(self, child: Child) -> None:
        """Send a ping to a device process; it answers with a pong."""
        child.last_ping_s = self._clock()
        child.send(type="ping")

    def kill(self, rank: int) -> None:
        """Kill the process of device `rank` if it still runs."""
        if rank in self.children:
            self.children[rank].killed = True
            self.children[rank].kill()

    def is_stopped(self, rank: int) -> bool:
        """Whether a signal (SIGSTOP) has stopped the process of device `rank`."""
        return rank in self.children and self.children[rank].is_stopped()

    def is_ending(self, rank: int) -> bool:
        """Whether device `rank` was killed and its end has not been read yet."""
        return rank in self.children and self.children[rank].killed

    def signal(self, rank: int, number: signal.Signals) -> None:
        """Send a signal to the process of device `rank` if there is one."""
        if rank in self.children:
            self.children[rank].signal(number)

    def with_state(self, state: str, ranks: Iterable[int] | None = None) -> set[int]:
        """The ranks (among `ranks`) whose process last reported `state`."""
        among = self.children.keys() if ranks is None else ranks
        return {rank for rank in among if rank in self.children and self.children[rank].state == state}

    def release(self) -> None:
        """Close what a process that was forked beside the devices inherits of them."""
        for child in (*self.children.values(), *self._ended):
            child.close()
        self._selector.close()

    def close(self, at_once: bool) -> None:
        """End all processes and wait until they have ended; with `at_once` kill them."""
        end_all([*self.children.values(), *self._ended], at_once)
        self._selector.close()
