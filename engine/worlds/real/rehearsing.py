"""A device's part of a rehearsal: the method's own program on a few tokens before the clock starts, unseen.

A stand-in plays it, with the weights, threads and connections of the device: caches get warm and connections
open their windows, and the device itself stays as it was loaded.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request

if TYPE_CHECKING:
    from engine.program.strategy import Strategy
    from engine.worlds.real.device import RealDevice

FEW_TOKENS = 4
"""The prompt's token and some that are fed back."""

PATIENCE_S = 1e6
"""Virtual seconds of silence for which no device is suspected: before a run starts none has failed."""


def rehearsed(spec: RunSpec) -> RunSpec:
    """The run of a rehearsal: a few tokens of requests that are there at once."""
    workload = spec.workload
    few = {
        "new_tokens": min(workload.new_tokens, FEW_TOKENS),
        "pattern": "bursty" if workload.pattern == "bursty" else "sporadic",
    }
    return spec.model_copy(
        update={"workload": workload.model_copy(update=few), "silence_s": PATIENCE_S},
    )


def rehearse(
    device: RealDevice,
    strategy: Strategy,
    plan: Plan,
    requests: Sequence[Request],
    epoch: int,
    start_s: float,
    dilation: float,
) -> dict[str, Any]:
    """Play `requests` from wall time `start_s` on; what the supervisor learns of it, as a message. No program
    of the run, or of another rehearsal, takes messages of this `epoch` for its own.
    """
    from engine.domain.events import to_json
    from engine.program.serve import serve
    from engine.worlds.common.source import RealSource
    from engine.worlds.real.device import RealDevice
    from engine.worlds.real.tasks import Clock

    spec, trace = rehearsed(device.spec), list[Span | Mark]()
    stand_in = RealDevice(
        device.rank,
        spec,
        plan,
        trace.append,
        device.weights,
        device.paced,
        device.paths.held_links,
        device.connections,
        device.control,
    )
    stand_in.stand_in_for(device)
    stand_in.epoch = epoch
    stand_in.set_clock(Clock(start_s, dilation))
    device.connections.dilate(dilation)
    source = RealSource(stand_in) if device.rank == spec.cluster.source_rank else None
    program = serve(stand_in, strategy, plan, spec.workload, requests, source)
    stand_in.run(program, start_s)
    stand_in.halt()
    _restore(device, plan)
    gc.collect()
    return {
        "type": "rehearsed",
        "rehearsal": stand_in.compute_pacer.stats()._asdict(),
        "items": to_json(trace),
    }


def _restore(device: RealDevice, plan: Plan) -> None:
    """Hold the weights that the plan begins with: some methods load and evict while they run."""
    needed = plan.held_by(device.rank)
    for piece in set(device.weights.held) - set(needed):
        device.weights.evict(piece)
    for piece in needed:
        device.weights.load(piece)
