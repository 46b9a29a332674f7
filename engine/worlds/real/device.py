"""The device of the real world: a process with torch on real weights and messages on real sockets.

This file starts operations, loads and messages; `loop.py` hands their results on when they are due. Torch
runs in a compute thread, so that receiving can overlap computing. Operations too short to be worth a change
of threads run in the main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from engine.domain.message_costs import sender_cost_s
from engine.domain.plan import Slice
from engine.domain.trace import Span, SpanKind
from engine.ops.cost import hands_over
from engine.ops.ledger import is_of_cache
from engine.ops.operation import Op
from engine.ops.tensors import dtype_of, shape_of
from engine.ops.torch_kernels import dispatch as arithmetic
from engine.program.ctx import Decision, ManagedMemory, Note
from engine.program.frames import CHANGES, EPOCHS, FrameHeader, framed_bytes, pack_note
from engine.worlds.common.device import layer_of
from engine.worlds.common.programs import Handle
from engine.worlds.common.proof import named_pieces
from engine.worlds.common.wire_tensors import bytes_of
from engine.worlds.real.loop import DeviceLoop, Leaving
from engine.worlds.real.pacing import Pacer
from engine.worlds.real.tasks import Task, run_task


class RealDevice(DeviceLoop):
    """A `Ctx` whose operations and messages use real tensors."""

    def compute(self, op: Op, *inputs: torch.Tensor) -> Handle:
        price = self.price(op, inputs)
        facts = self.compute_facts(op, price)
        return self._begin(op, inputs, price.duration_s, facts, hands_over(price.flops, paced=self.paced))

    def _begin(
        self,
        op: Op,
        inputs: tuple[torch.Tensor, ...],
        target_s: float,
        facts: dict[str, Any],
        handed_over: bool,
    ) -> Handle:
        """Compute in the compute thread if `handed_over` or if that is busy, else now; finish when due."""

        def work() -> Any:
            return arithmetic.run(op, self.model, self.weights, self.caches, inputs)

        task = self._task(work, self.compute_pacer, target_s, "compute", facts, op.name)
        self.computing += 1
        if not handed_over and self.computing == 1:
            self.outstanding -= 1
            done = run_task(task)
            self._later(done.task.deadline_s, done)
        else:
            self.compute_tasks.put(task)
        return task.handle

    def load(self, piece: Slice) -> Handle:
        size = self.ledger.load(piece)
        return self._disk(lambda: self.weights.load(piece), "load", piece.part, piece.layer, size)

    @property
    def managed_memory(self) -> ManagedMemory:
        return self

    def store_rows(self, cache: str, layer: int, rows: int) -> Handle:
        size = self.ledger.store_rows(cache, layer, rows)
        return self._disk(lambda: self.row_files.store(cache, layer, rows), "store", "kv_rows", layer, size)

    def _evict_rows(self, cache: str, layer: int, rows: int) -> None:
        self.row_files.drop(cache, layer, rows)

    def fetch_rows(self, cache: str, layer: int) -> Handle:
        size = self.ledger.fetch_rows(cache, layer)
        return self._disk(lambda: self.row_files.fetch(cache, layer), "load", "kv_rows", layer, size)

    def _disk(self, work: Callable[[], Any], kind: SpanKind, name: str, layer: int, size: int) -> Handle:
        facts = {
            "name": name,
            "layer": layer,
            "bytes": size,
            "request": self.current.request,
            "token": self.current.token,
        }
        target_s = size / self.device.disk_byte_per_s
        task = self._task(work, self.disk_pacer, target_s, kind, facts, kind)
        self.disk_tasks.put(task)
        return task.handle

    def _task(
        self,
        work: Callable[[], Any],
        pacer: Pacer,
        target_s: float,
        kind: str,
        facts: dict[str, Any],
        what: str,
    ) -> Task:
        start_s, deadline_s = pacer.plan(self.clock.wall(self.now_s), target_s)
        self.outstanding += 1
        return Task(Handle(what), work, pacer, start_s, deadline_s, kind, facts)

    def occupy(self, duration_s: float) -> None:
        """Pace so many virtual seconds of computing; at native speed the time has passed already."""
        if self.paced:
            self.compute_pacer.plan(self.clock.wall(self.now_s), duration_s)

    def cut_out(self, piece: Slice) -> None:
        self.weights.cut_out(piece)

    def evict(self, piece: Slice) -> None:
        super().evict(piece)
        self.weights.evict(piece)

    def send(self, tensor: torch.Tensor, dst: int, tag: str, note: Note = ()) -> Handle:
        current = self.current
        sent_s, payload = current.now_s, bytes_of(tensor)
        message, sequence = self.number_message(dst, tag)
        header = FrameHeader(
            message,
            len(payload),
            (current.request, current.token),
            self.clock.wall(sent_s),
            self._due_s(dst, framed_bytes(len(payload), len(note))),
            dtype_of(tensor),
            shape_of(tensor),
            tag,
            len(note),
            self.epoch % EPOCHS,
            sequence,
            len(self.paths.changes) % CHANGES,
        )
        handle, leaves_s = Leaving(dst), self.departed_s.get(dst, 0.0)

        def done(at_s: float) -> None:
            # the kernel has it at once if its buffer has room, but the model of device and link needs longer
            is_paced = header.due_s > 0
            is_modelled = is_paced and header.sent_s > self.paths.changed_s
            end_s = max(sent_s, self.clock.virtual(at_s), leaves_s if is_modelled else 0.0)
            self.record(self._sent, dst, header, sent_s, end_s)
            if is_paced:
                self.finish_at(handle, end_s)
            else:
                self.finish(handle, None, end_s)

        if dst in self.failed or not self._reachable(dst):
            handle.done, handle.time_s = True, sent_s
            return handle
        self.connections.sending[dst].write(header, pack_note(note) if note else b"", payload, done)
        return handle

    def _sent(self, dst: int, header: FrameHeader, start_s: float, end_s: float) -> None:
        request, token = header.request_token
        self.emit(
            Span(
                self.device.name,
                "send",
                header.tag,
                layer_of(header.tag),
                start_s,
                end_s,
                header.framed_bytes,
                header.payload_bytes,
                peer=self.cluster.devices[dst].name,
                request=request,
                token=token,
                message=header.message,
            )
        )

    def _reachable(self, dst: int) -> bool:
        """Whether there is a connection to `dst`. A pair that the prediction does not have connects now."""
        if dst in self.connections.sending:
            return True
        if dst not in self.watchdog.suspected and self.connections.open(dst):
            return True
        self.watchdog.suspect(dst)
        return False

    def _due_s(self, dst: int, size_bytes: int) -> float:
        """The wall time at which a path that nobody else uses delivers a message that is sent now, after all
        that this device has sent; 0: nobody models the path, and a message is there when it has arrived.
        """
        return self._delivered_s(dst, size_bytes, self.now_s, sender_cost_s(self.device, size_bytes))

    def _delivered_s(self, dst: int, size_bytes: int, now_s: float, cost_s: float) -> float:
        """`_due_s` of a message that is sent at `now_s` and costs the sender `cost_s` (virtual)."""
        begun_s = max(now_s, self.departed_s.get(dst, 0.0)) + cost_s
        alone_s = begun_s + self.paths.transfer_s(dst, size_bytes)
        self.departed_s[dst] = max(alone_s, self.paths.departs_s(dst, size_bytes, now_s + cost_s))
        return self.clock.wall(self.departed_s[dst] + self.paths.delay_s(dst))

    def keep_logits(self, requests: Sequence[int], index: int, start: int, logits: torch.Tensor) -> None:
        self.kept |= named_pieces(requests, index, start, logits)

    def release(self, cache: str) -> None:
        super().release(cache)
        self.row_files.release(cache)
        for key in [key for key in self.caches if is_of_cache(key[0], cache)]:
            del self.caches[key]

    def decide(self, name: str, choice: Decision, *inputs: torch.Tensor) -> Any:
        answer = choice(*inputs)
        self.mark("decided", decision=name, answer=answer)
        return answer
