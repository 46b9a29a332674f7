"""Detects failed devices in a real run, and ends the run or makes it continue without them.

A process that has ended has failed. The supervisor kills a device that a peer suspects and that is stopped or
cut off, so that it has failed for all devices. It kills the one that suspects instead if that one is cut off
from the source by links that are down, or if it cannot reach a source that answers. The supervisor then sends
the failure to all devices.

A peer that is only silent, though nothing stops it and the links are up, may be waiting for a processor on a
busy machine. The supervisor asks its process until its main thread has served its connections. Then whoever
suspects it waits on; a device that serves them and of which still no byte arrives is cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.domain.trace import Mark, Span
from engine.runs.active_run import ActiveRun
from engine.runs.children import Child
from engine.runs.pool import DevicePool
from engine.worlds.real.watchdog import LEAST_SILENCE_S, PING_AFTER_S, silence_limits

NO_ANSWER_S = 2.0
"""Wall seconds in which a process must answer a ping while the supervisor waits for its next state."""

HUNG_S = 20.0
"""Wall seconds after which a process hangs that does not answer, or serves no connection, though it is not
stopped: more than one has to wait for a processor.
"""

ASK_AGAIN_S = 0.1
"""Wall seconds between two questions whether a silent device has served its connections."""

HOW = {"device_lost": "killed", "device_frozen": "frozen"}
"""The mark of a device's fault → how it failed."""


class Doubt(NamedTuple):
    """One device has suspected another at wall time `asked_s`, whose last byte came at `last_byte_s`."""

    asked_s: float
    last_byte_s: float


class FailureDetector:
    """Decides which devices have failed. `reason` is the last failure in words, for the next plan."""

    def __init__(self, run: ActiveRun, pool: DevicePool):
        self.run, self.pool = run, pool
        self.reason = ""
        self._reporters: set[int] = set()
        self._source_ping_s: float | None = None
        self._doubts: dict[tuple[int, int], Doubt] = {}  # of (reporter, suspected)
        self._last_byte_s: dict[tuple[int, int], float] = {}  # the same, when the doubt was cleared

    def suspect(self, reporter: int, rank: int, last_byte_s: float | None = None) -> None:
        """Act on the suspicion of `reporter` that `rank` has failed: kill the one that has failed, but ping
        the source first.

        `last_byte_s`: `rank` is silent since then; None: its connections are closed.
        """
        if self.pool.is_ending(reporter):
            return  # it was cut off itself
        if not self.run.conditions.reaches_source(reporter):
            self.pool.kill(reporter)
        elif last_byte_s is not None and self.run.conditions.reaches(reporter, rank):
            self._doubts.setdefault((reporter, rank), Doubt(self.run.clock(), last_byte_s))
            self._check_doubts()
        elif rank == self.run.cluster.source_rank:
            self._reporters.add(reporter)
            self._ping_source()
        else:
            self.pool.kill(rank)

    def handle_pong(self, child: Child, served_s: float) -> None:
        """Take the answer of a device; if it is the source, kill the devices that cannot reach it. A device
        that has served its connections since others suspected it need not be silent for them any more.
        """
        if child.rank == self.run.cluster.source_rank:
            self._source_ping_s = None
            for reporter in self._reporters:
                self.pool.kill(reporter)
            self._reporters.clear()
        for (reporter, rank), doubt in tuple(self._doubts.items()):
            if rank == child.rank and served_s > doubt.asked_s:
                del self._doubts[reporter, rank]
                self._clear(reporter, rank, doubt.last_byte_s)

    def _clear(self, reporter: int, rank: int, last_byte_s: float) -> None:
        """Let `reporter` wait on for `rank`, unless it did so before and no byte has come since."""
        if self._last_byte_s.get((reporter, rank)) == last_byte_s:
            self.pool.kill(reporter if rank == self.run.cluster.source_rank else rank)
            return
        self._last_byte_s[reporter, rank] = last_byte_s
        self.pool.send(reporter, type="trust", peer=rank)

    def check_running(self) -> None:
        """Kill silent devices that are stopped or hang; ask the others. Watch the source."""
        self._check_doubts()
        self._check_source()

    def _check_doubts(self) -> None:
        now_s = self.run.clock()
        for (_, rank), doubt in self._doubts.items():
            child = self.pool.children.get(rank)
            if child is None or child.killed:
                continue
            if self.pool.is_stopped(rank) or now_s - doubt.asked_s > HUNG_S:
                self.pool.kill(rank)
            elif now_s - child.last_ping_s > ASK_AGAIN_S and child.last_ping_s <= child.last_message_s:
                self.pool.ping(child)

    def _patience_s(self, child: Child, stopped_s: float) -> float:
        """How long the supervisor waits for an answer of `child`: `stopped_s` if a signal has stopped it."""
        return stopped_s if self.pool.is_stopped(child.rank) else HUNG_S

    def check_waiting(self, children: Iterable[Child]) -> None:
        """Ping the silent processes among `children`, for which the supervisor waits; kill those that do not
        answer.
        """
        now_s = self.run.clock()
        for child in children if self.run.started else ():
            if child.last_ping_s <= child.last_message_s < now_s - PING_AFTER_S:
                self.pool.ping(child)
                continue
            waits = child.last_ping_s > child.last_message_s
            if waits and now_s - child.last_ping_s > self._patience_s(child, NO_ANSWER_S):
                self.pool.kill(child.rank)

    def _check_source(self) -> None:
        """Ping a running source that has been silent for longer than the limit; kill it if it does not
        answer.
        """
        now_s, source = self.run.clock(), self.run.cluster.source_rank
        child = self.pool.children.get(source)
        if child is None or child.state != "running":
            return
        limit_s = silence_limits(self.run.spec.silence_s, self.run.dilation).suspect_after_s
        if now_s - child.last_message_s > limit_s:
            self._ping_source()
        if self._source_ping_s is None:
            return
        if now_s - self._source_ping_s > self._patience_s(child, LEAST_SILENCE_S):
            self.pool.kill(source)

    def _ping_source(self) -> None:
        child = self.pool.children.get(self.run.cluster.source_rank)
        if child is not None and self._source_ping_s is None:
            self._source_ping_s = self.run.clock()
            self.pool.ping(child)

    def handle_end(self, child: Child) -> None:
        """Act on the end of a process, by itself or because it was killed."""
        self.lose(child.rank, "" if child.killed else child.ending)

    def lose(self, rank: int, why: str = "") -> None:
        """Record the failure of device `rank`, and tell the others or end the run."""
        run, name = self.run, self.run.cluster.devices[rank].name
        facts = self._failure(rank, name)
        run.record(Mark(run.now_s, "loss_detected", name, facts))
        run.conditions.mark_failed(rank)
        run.away.add(rank)
        run.frozen.discard(rank)
        run.joining.discard(rank)
        self._doubts = {pair: doubt for pair, doubt in self._doubts.items() if rank not in pair}
        self._last_byte_s = {pair: at_s for pair, at_s in self._last_byte_s.items() if rank not in pair}
        sentence = f"{name} failed at {run.now_s:.3f} s" + (f" ({why})" if why else "")
        if rank == run.cluster.source_rank:
            run.end("peer_lost", f"{sentence}, and it is the source: no other device has the prompt.", name)
        elif not run.is_needed(rank):
            return
        elif run.spec.failover == "stop" or not run.started:
            run.end("peer_lost", f"{sentence} and has a part in the plan.", name)
        else:
            self.reason = f"{sentence}."
            killed_s = facts["since_s"] if facts["how"] == "killed" else None
            self.pool.send_all(type="lost", rank=rank, killed_s=killed_s)

    def _failure(self, rank: int, name: str) -> dict[str, object]:
        """How and since when the device has failed. Records the end of a process that nobody has made end."""
        run = self.run
        fault = fault_of(run.trace, name)
        if fault is not None:
            return {"how": HOW[fault.name], "since_s": fault.time_s}
        if not run.conditions.reaches_source(rank):
            route = run.cluster.path(run.cluster.source_rank, rank)
            since_s = run.conditions.outages.since_s(hop.link for hop in route)
            return {"how": "unreachable", "since_s": run.now_s if since_s is None else since_s}
        run.record(Mark(run.now_s, "device_lost", name))
        return {"how": "killed", "since_s": run.now_s}


def fault_of(trace: Sequence[Span | Mark], device: str) -> Mark | None:
    """The change that killed or froze `device`: the last one that is not over and was not detected before."""
    found = None
    for item in trace:
        if not isinstance(item, Mark) or item.device != device:
            continue
        if item.name in HOW:
            found = item
        elif item.name in ("device_joined", "loss_detected"):
            found = None
    return found
