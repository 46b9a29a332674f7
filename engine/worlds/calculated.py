"""The calculated world: the simulated world's virtual time, but with real tensors, in one process.

It gives a method's real output (for example, to score a lossy method) and the time that the cluster would
need, not the time that this machine needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from engine.domain.plan import Plan, Slice
from engine.domain.spec import RunSpec
from engine.models.weights.store import WeightStore
from engine.ops.layers import Layers
from engine.ops.ledger import is_of_cache
from engine.ops.operation import Op
from engine.ops.tensors import Tensor
from engine.ops.torch_kernels import dispatch as arithmetic
from engine.ops.torch_kernels.storage import KVCache
from engine.program.ctx import Decision, Note
from engine.worlds.common.device import Device, Emit
from engine.worlds.common.programs import Handle
from engine.worlds.common.proof import named_pieces
from engine.worlds.common.row_files import RowFiles
from engine.worlds.simulated.device import Decisions, SimulatedDevice
from engine.worlds.simulated.kernel import SimulationKernel
from engine.worlds.simulated.network import SimulatedNetwork
from engine.worlds.simulated.world import SimulatedWorld


class CalculatedWorld(SimulatedWorld):
    """A `SimulatedWorld` on torch tensors: decisions that depend on data are computed from the tensors."""

    def _device(self, rank: int) -> CalculatedDevice:
        return CalculatedDevice(
            rank, self.spec, self.plan, self.emit, self.kernel, self.network, self.decisions
        )


class CalculatedDevice(SimulatedDevice):
    """Computes every operation when it is submitted; the program gets the result when the operation's virtual
    time is over.
    """

    def __init__(
        self,
        rank: int,
        spec: RunSpec,
        plan: Plan,
        emit: Emit,
        kernel: SimulationKernel,
        network: SimulatedNetwork,
        decisions: Decisions,
    ):
        super().__init__(rank, spec, plan, emit, kernel, network, decisions)
        self.caches: dict[tuple[str, int], KVCache] = {}
        self.row_files = RowFiles(self.caches)
        self.kept: dict[str, torch.Tensor] = {}
        self.weights = WeightStore(
            self.model, self.spec.weights, self.spec.seed, draft_ref=self.spec.draft_weights
        )
        for piece in plan.held_by(rank):
            self.weights.load(piece)

    def keep_logits(self, requests: Sequence[int], index: int, start: int, logits: Tensor) -> None:
        self.kept |= named_pieces(requests, index, start, logits)

    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        with torch.inference_mode():
            result = arithmetic.run(op, self.model, self.weights, self.caches, inputs)
        return self.compute_for(op, result, *inputs)

    async def compute_layers(self, layers: Layers, x: Tensor) -> Tensor:
        return await Device.compute_layers(self, layers, x)

    def send(self, tensor: Tensor, dst: int, tag: str, note: Note = ()) -> Handle:
        return self.send_as(tensor, tensor, dst, tag, note)

    def load(self, piece: Slice) -> Handle:
        self.weights.load(piece)
        return super().load(piece)

    def cut_out(self, piece: Slice) -> None:
        self.weights.cut_out(piece)

    def evict(self, piece: Slice) -> None:
        super().evict(piece)
        self.weights.evict(piece)

    def store_rows(self, cache: str, layer: int, rows: int) -> Handle:
        done = super().store_rows(cache, layer, rows)
        self.row_files.store(cache, layer, rows)
        return done

    def _evict_rows(self, cache: str, layer: int, rows: int) -> None:
        self.row_files.drop(cache, layer, rows)

    def fetch_rows(self, cache: str, layer: int) -> Handle:
        done = super().fetch_rows(cache, layer)
        self.row_files.fetch(cache, layer)
        return done

    def release(self, cache: str) -> None:
        super().release(cache)
        self.row_files.release(cache)
        for key in [key for key in self.caches if is_of_cache(key[0], cache)]:
            del self.caches[key]

    def empty(self) -> None:
        for piece in self.ledger.resident:
            self.weights.evict(piece)
        super().empty()

    def halt(self) -> None:
        super().halt()
        self.caches.clear()
        self.row_files.clear()

    def decide(self, name: str, choice: Decision, *inputs: Tensor) -> Any:
        answer = choice(*inputs)
        self.mark("decided", decision=name, answer=answer)
        return answer
