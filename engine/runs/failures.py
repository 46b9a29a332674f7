"""Detects failed devices in a real run, and ends the run or makes it continue without them.

A process that has ended has failed. The supervisor kills a device that a peer suspects (because it is silent
or unreachable), so that it has failed for all devices. It kills the one that suspects instead if that one is
cut off from the source by links that are down. If the source is suspected, the supervisor pings it first: if
it answers, the supervisor kills the devices that cannot reach it instead. The supervisor then sends the
failure to all devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.domain.trace import Mark, Span
from engine.runs.active_run import ActiveRun
from engine.runs.children import Child
from engine.runs.pool import DevicePool
from engine.worlds.real.watchdog import LEAST_SILENCE_S, PING_AFTER_S, silence_limits

NO_ANSWER_S = 2.0
"""Wall seconds in which a process must answer a ping while the supervisor waits for its next state."""

HOW = {"device_lost": "killed", "device_frozen": "frozen"}
"""The mark of a device's fault → how it failed."""


class FailureDetector:
    """Decides which devices have failed. `reason` is the last failure in words, for the next plan."""

    def __init__(self, run: ActiveRun, pool: DevicePool):
        self.run, self.pool = run, pool
        self.reason = ""
        self._reporters: set[int] = set()
        self._source_ping_s: float | None = None

    def suspect(self, reporter: int, rank: int) -> None:
        """`reporter` suspects `rank`: kill the one that has failed, but ping the source first."""
        if self.pool.is_ending(reporter):
            return  # it was cut off itself
        if not self.run.conditions.reaches_source(reporter):
            self.pool.kill(reporter)
        elif rank == self.run.cluster.source_rank:
            self._reporters.add(reporter)
            self._ping_source()
        else:
            self.pool.kill(rank)

    def handle_pong(self, child: Child) -> None:
        """If the source answers, kill the devices that suspect it: they are cut off."""
        if child.rank == self.run.cluster.source_rank:
            self._source_ping_s = None
            for reporter in self._reporters:
                self.pool.kill(reporter)
            self._reporters.clear()

    def check_waiting(self, children: Iterable[Child]) -> None:
        """Ping the silent processes among `children`, for which the supervisor waits; kill those that do not
        answer.
        """
        now_s = self.run.clock()
        for child in children if self.run.started else ():
            if child.last_ping_s <= child.last_message_s < now_s - PING_AFTER_S:
                self.pool.ping(child)
            elif child.last_ping_s > child.last_message_s and now_s - child.last_ping_s > NO_ANSWER_S:
                self.pool.kill(child.rank)

    def check_source(self) -> None:
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
        if self._source_ping_s is not None and now_s - self._source_ping_s > LEAST_SILENCE_S:
            self.pool.kill(source)

    def _ping_source(self) -> None:
        child = self.pool.children.get(self.run.cluster.source_rank)
        if child is not None and self._source_ping_s is None:
            self._source_ping_s = self.run.clock()
            self.pool.ping(child)

    def handle_end(self, child: Child) -> None:
        """A process has ended by itself, or was killed."""
        self.lose(child.rank, "" if child.killed else child.ending)

    def lose(self, rank: int, why: str = "") -> None:
        """Device `rank` has failed: record the failure, and tell the others or end the run."""
        run, name = self.run, self.run.cluster.devices[rank].name
        facts = self._failure(rank, name)
        run.record(Mark(run.now_s, "loss_detected", name, facts))
        run.conditions.mark_failed(rank)
        run.away.add(rank)
        run.frozen.discard(rank)
        run.joining.discard(rank)
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
