"""Detects failed devices in a real run, and ends the run or makes it continue without them.

A process that has ended has failed. The supervisor kills a device that a peer suspects (because it is silent
or unreachable), so that it has failed for all devices. If the source is suspected, the supervisor pings it
first: if it answers, the supervisor kills the devices that cannot reach it instead. The supervisor then sends
the failure to all devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.domain.cluster import ClusterSpec
from engine.domain.trace import Mark, Span
from engine.runs.active_run import ActiveRun
from engine.runs.children import Child
from engine.runs.pool import DevicePool
from engine.worlds.real.watchdog import LEAST_SILENCE_S, PING_AFTER_S, silence_limits

NO_ANSWER_S = 2.0
"""Wall seconds in which a process must answer a ping while the supervisor waits for its next state."""

HOW = {"device_lost": "killed", "device_frozen": "frozen", "link_down": "unreachable"}
"""The mark of a fault → how the device failed."""


class FailureDetector:
    """Decides which devices have failed. `reason` is the last failure in words, for the next plan."""

    def __init__(self, run: ActiveRun, pool: DevicePool):
        self.run, self.pool = run, pool
        self.reason = ""
        self._reporters: set[int] = set()
        self._source_ping_s: float | None = None

    def suspect(self, reporter: int, rank: int) -> None:
        """`reporter` suspects `rank`: kill `rank`, or ping it first if it is the source."""
        if rank == self.run.cluster.source_rank:
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
        """A process has ended by itself: record the failure, and tell the others or end the run."""
        run, name = self.run, child.name
        fault = fault_of(run.cluster, run.trace, name)
        if fault is None:
            run.record(Mark(run.now_s, "device_lost", name))
        facts = {
            "how": HOW[fault.name] if fault else "killed",
            "since_s": fault.time_s if fault else run.now_s,
        }
        run.record(Mark(run.now_s, "loss_detected", name, facts))
        run.conditions.mark_failed(child.rank)
        run.joining.discard(child.rank)
        sentence = f"{name} failed at {run.now_s:.3f} s"
        if child.rank == run.cluster.source_rank:
            run.end("peer_lost", f"{sentence}, and it is the source: no other device has the prompt.", name)
        elif not run.is_needed(child.rank):
            return
        elif run.spec.failover == "stop" or not run.started:
            run.end("peer_lost", f"{sentence} and has a part in the plan.", name)
        else:
            self.reason = f"{sentence}."
            self.pool.send_all(type="lost", rank=child.rank)


def fault_of(cluster: ClusterSpec, trace: Sequence[Span | Mark], device: str) -> Mark | None:
    """The change that made `device` fail: the last one that killed, froze or cut it off and is not over."""
    links = {link.name for link in cluster.links if device in (link.a, link.b)}
    found = None
    for item in trace:
        if not isinstance(item, Mark):
            continue
        done_to_it = item.device == device and item.name in ("device_lost", "device_frozen")
        cut_off = item.name == "link_down" and item.facts.get("link") in links
        if done_to_it or cut_off:
            found = item
        elif item.device == device and item.name in ("device_joined", "loss_detected"):
            found = None
    return found
