"""A real run in a process of its own: d1 computes an operation that takes seconds, then d0 stops (SIGSTOP)
until the run reports it silent. The file gets the wall seconds of d1's operation, and the silent devices of
every tick of the clock.
"""

import json
import os
import re
import signal
from pathlib import Path

from engine.domain.events import ClockTicked, ProcessLogged
from engine.domain.network import LoopbackNetwork
from engine.domain.trace import Span
from engine.models import catalogue
from engine.runs import deadlock
from engine.runs.execute import execute
from tests.support.small_cases import spec_of, star

DILATION = 16.0
LONG_S = 3.0
"""Wall seconds: longer than the silence after which a device is reported."""


class Watcher:
    """Stops d0 after d1's long operation, and lets it go on once it is reported silent."""

    def __init__(self):
        self.pids, self.silent, self.operation_s = {}, [], 0.0
        self.stopped = self.done = False

    def watch(self, event):
        if isinstance(event, ProcessLogged):
            for said in filter(None, (re.match(r"Process (\d+) listens", line) for line in event.lines)):
                self.pids[event.device] = int(said[1])
        elif isinstance(event, Span) and event.device == "d1" and event.kind == "compute":
            self.end_of_operation((event.end_s - event.start_s) * DILATION)
        elif isinstance(event, ClockTicked):
            self.tick(event.silent_s)

    def end_of_operation(self, operation_s):
        if operation_s >= LONG_S > self.operation_s:
            os.kill(self.pids["d0"], signal.SIGSTOP)
            self.stopped = True
        self.operation_s = max(self.operation_s, operation_s)

    def tick(self, silent_s):
        """A busy host may make other devices silent, and this one before it was stopped."""
        if self.stopped and "d0" in silent_s:
            os.kill(self.pids["d0"], signal.SIGCONT)
        before = self.silent[-1] if self.silent else {}
        self.done = self.done or (self.stopped and "d0" in before and "d0" not in silent_s)
        self.silent.append(silent_s)


def main(target):
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = spec_of("gpipe", model, star((1e6, 1e6, 1e6)), new_tokens=40)  # more than it will have time for
    spec = spec.model_copy(update={"weights": weights, "dilation": DILATION})
    deadlock.QUIET_S = float("inf")  # devices answer its questions: their own signs alone shall count here
    watcher = Watcher()
    report = execute(
        spec,
        lambda spec, dilation: LoopbackNetwork(spec.cluster),
        watcher.watch,
        should_stop=lambda: watcher.done,
    )
    found = {"operation_s": watcher.operation_s, "silent": watcher.silent, "outcome": report.outcome.kind}
    Path(target).write_text(json.dumps(found))
