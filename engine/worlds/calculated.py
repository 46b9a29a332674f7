"""The simulated world with numbers: virtual time, real tensors, one process.

For questions about what comes out (how good is a lossy method?), not about how long it takes here.
"""

from __future__ import annotations

from typing import Any

import torch

from engine.domain.plan import Plan, Slice
from engine.domain.spec import RunSpec
from engine.models.weights.store import WeightStore
from engine.ops.operation import Op
from engine.ops.tensors import Tensor
from engine.ops.torch_kernels import dispatch as arithmetic
from engine.ops.torch_kernels.storage import KVCache
from engine.program.ctx import Decision, Note
from engine.worlds.common.device import Emit
from engine.worlds.common.programs import Handle
from engine.worlds.common.row_files import RowFiles
from engine.worlds.simulated.world import SimulatedDevice, SimulatedWorld


class CalculatedWorld(SimulatedWorld):
    """Runs `programs` on torch tensors; choices that depend on data are made, not supposed."""

    def __init__(self, spec: RunSpec, plan: Plan, emit: Emit):
        super().__init__(spec, plan, emit)
        self.devices = [CalculatedDevice(rank, self) for rank in range(len(spec.cluster.devices))]


class CalculatedDevice(SimulatedDevice):
    """Every operation is computed when it is asked for, and its result handed on when it is due."""

    def __init__(self, rank: int, world: SimulatedWorld):
        super().__init__(rank, world)
        self.caches: dict[tuple[str, int], KVCache] = {}
        self.row_files = RowFiles(self.caches)
        self.weights = WeightStore(self.model, self.spec.weights, self.spec.seed)
        for piece in world.plan.held_by(rank):
            self.weights.load(piece)

    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        with torch.inference_mode():
            result = arithmetic.run(op, self.model, self.weights, self.caches, inputs)
        return self.compute_for(op, result, *inputs)

    def send(self, tensor: Tensor, dst: int, tag: str, note: Note = ()) -> Handle:
        return self.send_as(tensor, tensor, dst, tag, note)

    def load(self, piece: Slice) -> Handle:
        self.weights.load(piece)
        return super().load(piece)

    def evict(self, piece: Slice) -> None:
        super().evict(piece)
        self.weights.evict(piece)

    def store_rows(self, cache: str, layer: int, rows: int) -> Handle:
        done = super().store_rows(cache, layer, rows)
        self.row_files.store(cache, layer, rows)
        return done

    def _forget_rows(self, cache: str, layer: int, rows: int) -> None:
        self.row_files.drop(cache, layer, rows)

    def fetch_rows(self, cache: str, layer: int) -> Handle:
        done = super().fetch_rows(cache, layer)
        self.row_files.fetch(cache, layer)
        return done

    def release(self, cache: str) -> None:
        super().release(cache)
        self.row_files.release(cache)
        for key in [key for key in self.caches if key[0] == cache]:
            del self.caches[key]

    def halt(self) -> None:
        super().halt()
        self.caches.clear()
        self.row_files.clear()

    def decide(self, name: str, choice: Decision, *inputs: Tensor) -> Any:
        answer = choice(*inputs)
        self.mark("decided", decision=name, answer=answer)
        return answer
