"""A real run (`run`) or a program of a benchmark (`benchmark`) whose device d1 is killed (SIGKILL), once in
each stage of its life. The file gets, by stage, how it ended and how many processes are left.
"""

import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path

from bench.emulation.devices import Devices
from emulator.host.leftovers import children
from engine.domain.errors import HostError
from engine.domain.network import LoopbackNetwork
from engine.models import catalogue
from engine.models.weights.store import WeightStore
from engine.runs.execute import execute
from engine.worlds.real.connections import Connections
from engine.worlds.real.device import RealDevice
from engine.worlds.real.trace_writer import TraceWriter
from tests.support.small_cases import plan_of, spec_of, star

VICTIM = 1
STAGES = {
    "fork": (LoopbackNetwork, "enter"),
    "load": (WeightStore, "load"),
    "connect": (Connections, "open"),
    "run": (RealDevice, "run"),
}
STOPS = {"run": (TraceWriter, "finish"), "benchmark": (RealDevice, "memory_mark")}
"""What a device calls once its program has ended."""


class KnowingNetwork(LoopbackNetwork):
    """Loopback, on which a device process knows which device it is."""

    rank = -1

    def enter(self, rank: int) -> None:
        KnowingNetwork.rank = rank
        super().enter(rank)


@contextmanager
def killed_in(owner, name):
    """Let the victim be killed instead of calling this method of its."""
    method = getattr(owner, name)

    def killed(self, *arguments, **named):
        if KnowingNetwork.rank == VICTIM:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(self, *arguments, **named)

    setattr(owner, name, killed)
    try:
        yield
    finally:
        setattr(owner, name, method)


def outcome_of_run():
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = spec_of("megatron", model, star((1e9, 1e9, 1e9)), new_tokens=2)
    spec = spec.model_copy(update={"weights": weights, "dilation": 1.0, "failover": "stop"})
    report = execute(spec, lambda spec, dilation: KnowingNetwork(spec.cluster), lambda event: None)
    return report.outcome.model_dump(mode="json")


def error_of_benchmark():
    model, _ = catalogue.resolve("tiny-gpt2", "random")
    cluster = star((1e9, 1e9, 1e9))

    async def program(ctx):
        """Waits for the device before it, as in a ring: none would notice by itself that another is gone."""
        import torch

        ctx.send(torch.zeros(4), (ctx.rank + 1) % 3, "round")
        await ctx.recv((ctx.rank - 1) % 3, "round")

    held = tuple(plan_of(spec_of("single", model, cluster)).held_by(0))[:2]
    pairs = [(src, (src + 1) % 3) for src in range(3)]
    devices = Devices(
        KnowingNetwork(cluster), cluster, 1.0, program, lambda *_: "done", pairs, model.name, held
    )
    try:
        return devices.run()
    except HostError as error:
        return str(error)


PLAYS = {"run": outcome_of_run, "benchmark": error_of_benchmark}


def main(kind, target):
    found = {}
    for stage, (owner, name) in (STAGES | {"stop": STOPS[kind]}).items():
        with killed_in(owner, name):
            said = PLAYS[kind]()
        found[stage] = {"said": said, "left": len(children(os.getpid()))}
    found["none"] = {"said": PLAYS[kind](), "left": len(children(os.getpid()))}
    Path(target).write_text(json.dumps(found))
