"""Detects that a real run can never go on: all programs wait for messages, and none is under way.

When no device has traced anything for a while, the supervisor asks all devices what they wait for and how
many messages they have sent and received. If all wait, and every message that was sent has arrived, twice in
succession and without a change in between, no event can ever resume a program. A device that does not answer
(because it is frozen) may still do something, so it prevents the verdict: the watchdogs deal with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.runs.active_run import ActiveRun
from engine.runs.pool import DevicePool
from engine.worlds.common.deadlock import deadlock

QUIET_S = 0.5
"""Wall seconds without a trace after which the devices are asked."""

AGAIN_S = 0.3
"""Wall seconds between two questions."""


class Status(NamedTuple):
    """What one device says: whether all its programs wait for messages and it has nothing else to do, what
    they wait for, and the messages sent to and received from each peer so far.
    """

    waits: bool
    waiting_for: tuple[str, ...]
    sent: dict[int, int]
    received: dict[int, int]


class DeadlockDetector:
    """Asks the devices of one run, and ends it as a deadlock. All times are wall seconds."""

    def __init__(self, run: ActiveRun, pool: DevicePool):
        self.run, self.pool = run, pool
        self._progress_s = self._asked_s = run.clock()
        self._question = 0
        self._answers: dict[int, Status] = {}
        self._before: dict[int, Status] | None = None

    def note_progress(self) -> None:
        """Take note that the run goes on: a device has traced something, or programs have started."""
        self._progress_s = self.run.clock()
        self._before = None

    def check(self) -> None:
        """Ask the devices if the run has been quiet for long."""
        now_s = self.run.clock()
        if now_s - self._progress_s < QUIET_S or now_s - self._asked_s < AGAIN_S:
            return
        states = {child.state for child in self.pool.children.values()}
        if "running" not in states or not states <= {"running", "finished"}:
            return
        self._asked_s, self._answers = now_s, {}
        self._question += 1
        self.pool.send_all(type="status", question=self._question)

    def handle_status(self, rank: int, message: dict[str, Any]) -> None:
        """Take an answer into account; the last one decides."""
        if message["question"] != self._question:
            return
        sent, received = (
            {int(peer): count for peer, count in message[key].items()} for key in ("sent", "received")
        )
        self._answers[rank] = Status(message["waits"], tuple(message["waiting_for"]), sent, received)
        if self._answers.keys() != self.pool.children.keys():
            return
        answers = self._answers
        if answers == self._before and is_stuck(answers):
            names = {rank: self.run.cluster.devices[rank].name for rank in answers}
            waits = [f"{names[rank]} for {what}" for rank in answers for what in answers[rank].waiting_for]
            error = deadlock(waits, self.run.now_s)
            self.run.end("deadlock", str(error), time_s=error.time_s)
        self._before = answers


def is_stuck(answers: dict[int, Status]) -> bool:
    """Whether all devices wait, some program at least, and every message that was sent has been received."""
    if not all(status.waits for status in answers.values()):
        return False
    if not any(status.waiting_for for status in answers.values()):
        return False
    return all(
        answers[peer].received.get(rank, 0) == count
        for rank, status in answers.items()
        for peer, count in status.sent.items()
        if peer in answers
    )
