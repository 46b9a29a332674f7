"""The clock of a real run, and the tasks of its paced resources: work, deadline, result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from engine.worlds.common.programs import Handle
from engine.worlds.real.pacing import Pacer


class Clock(NamedTuple):
    """Virtual time 0 is the monotonic wall time `start_s`; a virtual second takes `dilation` wall seconds."""

    start_s: float
    dilation: float

    def virtual(self, wall_s: float) -> float:
        return (wall_s - self.start_s) / self.dilation

    def wall(self, virtual_s: float) -> float:
        return self.start_s + virtual_s * self.dilation


class Task(NamedTuple):
    """Work on a paced resource. Times are wall seconds."""

    handle: Handle
    work: Callable[[], Any]
    pacer: Pacer
    start_s: float
    deadline_s: float
    kind: Any
    facts: dict[str, Any]


class Done(NamedTuple):
    """A task whose work is done; the loop hands its value on at the task's deadline."""

    task: Task
    value: Any
    host_s: float


def run_task(task: Task) -> Done:
    """Do the work now. An exception becomes the value: the main thread raises it, which can end the run."""
    began_s = time.monotonic()
    try:
        value = task.work()
    except Exception as error:
        value = error
    ended_s = time.monotonic()
    if task.pacer.dilation is None:
        task = task._replace(deadline_s=ended_s)
    return Done(task, value, ended_s - began_s)
