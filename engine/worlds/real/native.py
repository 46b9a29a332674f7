"""A device at native speed: nothing is paced, so the runtime only has to be fast.

An operation of a few milliseconds runs at once in the main thread, and the program goes on with its result
without a turn of the loop. A device that waits for a message polls for a moment before it sleeps, where every
device has a core: waking a sleeping thread takes as long as a message.
"""

from __future__ import annotations

import os
import time
from typing import Any

import torch

from engine.domain.trace import Span
from engine.ops.cost import hands_over
from engine.ops.operation import Op
from engine.ops.torch_kernels import dispatch as arithmetic
from engine.worlds.common.programs import Handle
from engine.worlds.real.connections import Incoming
from engine.worlds.real.device import RealDevice

TURN_S = 10e-3
"""A program that computes gives the loop a turn so often, for messages of peers and of the supervisor."""

POLL_S = 200e-6
"""How long a device polls before it sleeps."""


class NativeDevice(RealDevice):
    """A `RealDevice` that is not paced."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.turned_s = 0.0
        self.polls = len(os.sched_getaffinity(0)) >= len(self.cluster.workers)

    def compute(self, op: Op, *inputs: torch.Tensor) -> Handle:
        price = self.price(op, inputs)
        facts = self.compute_facts(op, price)
        began_s = time.monotonic()
        handed_over = hands_over(price.flops, paced=False) or self.connections.is_writing
        if handed_over or self.outstanding or self.due or began_s - self.turned_s > TURN_S:
            return self._begin(op, inputs, 0.0, facts, handed_over)
        value = arithmetic.run(op, self.model, self.weights, self.caches, inputs)
        ended_s = time.monotonic()
        self.compute_pacer.settle(began_s, ended_s, ended_s, ended_s - began_s)
        handle = Handle(op.name)
        handle.done, handle.value, handle.time_s = True, value, self.clock.virtual(ended_s)
        start_s = self.clock.virtual(began_s)
        self.emit(Span(self.device.name, "compute", start_s=start_s, end_s=handle.time_s, **facts))
        self.current.now_s = max(self.current.now_s, handle.time_s)
        return handle

    def _due_s(self, dst: int, size_bytes: int) -> float:
        """No receiver waits for it: a message is usable when it has arrived."""
        return 0.0

    def _wait(self, timeout_s: float) -> tuple[list[Incoming], list[int]]:
        if self.polls and timeout_s > 0:
            until_s = time.monotonic() + min(POLL_S, timeout_s)
            while time.monotonic() < until_s:
                messages, closed = self.connections.wait(0.0)
                if messages or closed or self.done:
                    self.turned_s = time.monotonic()
                    return messages, closed
        found = self.connections.wait(timeout_s)
        self.turned_s = time.monotonic()
        return found
