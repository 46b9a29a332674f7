"""A real run in a process of its own, one of whose devices stops (SIGSTOP) before it is ready: the file gets
the outcome, and whether any device process is left.
"""

import json
import os
import signal
import sys
from pathlib import Path

from emulator.host.leftovers import children
from engine.domain.network import LoopbackNetwork
from engine.models import catalogue
from engine.runs import readiness
from engine.runs.execute import execute
from tests.support.small_cases import spec_of, star

STOPPED = 1
READY_S = 3.0
"""Of wall time; the other device needs about two on an idle machine."""


class StoppingNetwork(LoopbackNetwork):
    def enter(self, rank: int) -> None:
        if rank == STOPPED:
            os.kill(os.getpid(), signal.SIGSTOP)


def main(target):
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = spec_of("megatron", model, star((1e9, 1e9)), new_tokens=2)
    spec = spec.model_copy(update={"weights": weights, "dilation": 1.0})
    readiness.DEVICE_S = 0.0
    report = execute(spec, lambda spec, dilation: StoppingNetwork(spec.cluster), ready_s=READY_S)
    Path(target).write_text(json.dumps([report.outcome.model_dump(mode="json"), len(children(os.getpid()))]))


if __name__ == "__main__":
    main(sys.argv[1])
