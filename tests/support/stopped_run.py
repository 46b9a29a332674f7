"""A real run in a process of its own. Before they are ready, one of its devices stops (SIGSTOP) and another
one waits for ever. Devices have the wall seconds of the second argument to get ready. The file gets the
outcome, how many device processes are left, and each device's log.
"""

import json
import os
import signal
import threading
from collections import defaultdict
from pathlib import Path

from emulator.host.leftovers import children
from engine.domain.events import ProcessLogged
from engine.domain.network import LoopbackNetwork
from engine.models import catalogue
from engine.runs import readiness
from engine.runs.execute import execute
from tests.support.small_cases import spec_of, star

STOPPED, WAITING = 1, 2


class StoppingNetwork(LoopbackNetwork):
    def enter(self, rank: int) -> None:
        if rank == STOPPED:
            os.kill(os.getpid(), signal.SIGSTOP)
        if rank == WAITING:
            wait_for_ever()


def wait_for_ever():
    threading.Event().wait()


def main(target, ready_s):
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = spec_of("megatron", model, star((1e9, 1e9, 1e9)), new_tokens=2)
    spec = spec.model_copy(update={"weights": weights, "dilation": 1.0})
    readiness.DEVICE_S = 0.0
    logs = defaultdict(list)

    def watch(event):
        if isinstance(event, ProcessLogged):
            logs[event.device] += event.lines

    report = execute(
        spec, lambda spec, dilation: StoppingNetwork(spec.cluster), watch, ready_s=float(ready_s)
    )
    outcome = report.outcome.model_dump(mode="json")
    Path(target).write_text(json.dumps([outcome, len(children(os.getpid())), logs]))
