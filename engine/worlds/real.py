"""The real world: one device = one process, torch on real weights, messages on real sockets.

The program runs in the main thread; torch runs in one compute thread (never inline, or receiving could
not overlap computing), every connection has a thread of its own, and all completions come back through
one queue. Every completion carries the *logical* time at which it happened (an operation's deadline, a
message's arrival), and what a program starts next starts at that time: the host's wake-up latencies
hide in the slack of pacing instead of adding up.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import torch

from engine.errors import EdgeLoomError, PeerLost
from engine.frames import FRAME_HEADER_BYTES, FrameHeader
from engine.models import torch_ops
from engine.models.ops import Op
from engine.models.weights import WeightStore
from engine.plan import Plan, Slice
from engine.spec import RunSpec
from engine.tensors import dtype_of, payload_bytes, shape_of
from engine.trace import Span
from engine.worlds.connections import Closed, Incoming, Outgoing, Writer
from engine.worlds.device import Device, Emit, layer_of
from engine.worlds.pacing import Pacer, sleep_until
from engine.worlds.paths import PathTimes, sender_cost_s
from engine.worlds.programs import Handle, Program

SILENCE_CHECK_S = 0.2


class Clock(NamedTuple):
    """Virtual time 0 is the monotonic wall time `start_s`; `dilation` wall seconds make a virtual one."""

    start_s: float
    dilation: float

    def virtual(self, wall_s: float) -> float:
        return (wall_s - self.start_s) / self.dilation

    def wall(self, virtual_s: float) -> float:
        return self.start_s + virtual_s * self.dilation


class _Done(NamedTuple):
    """Something that a thread finished: `handle` gets `value` (or raises it) at wall time `time_s`."""

    handle: Handle
    value: Any
    time_s: float
    span: Span | None


class _Task(NamedTuple):
    """Work for the compute or the disk thread."""

    handle: Handle
    work: Callable[[], Any]
    ready_s: float
    target_s: float
    kind: Any
    facts: dict[str, Any]


class RealDevice(Device):
    """A `Ctx` whose verbs move real tensors."""

    def __init__(
        self, rank: int, spec: RunSpec, plan: Plan, emit: Emit, weights: WeightStore, paced: bool,
        delays_s: dict[int, float],
    ):
        super().__init__(rank, spec, plan, emit)
        self.weights = weights
        self.paced = paced
        self.delays_s = delays_s
        self.paths = PathTimes(spec.cluster, rank)
        self.caches: dict[tuple[str, int], torch_ops.KVCache] = {}
        self.writers: dict[int, Writer] = {}
        self.inbox: queue.SimpleQueue[_Done | Incoming | Closed] = queue.SimpleQueue()
        self.held: list[tuple[float, int, Incoming]] = []
        self.serial = 0
        self.live: set[Program] = set()
        self.clock = Clock(0.0, 1.0)
        self.pacer = Pacer(None)
        self.disk = Pacer(None)
        self.compute_tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self.disk_tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()

    def run(self, program: Coroutine[Any, Any, Any], clock: Clock) -> None:
        """Run `program` from virtual time 0 to its end. Raises its first error."""
        self.clock = clock
        dilation = clock.dilation if self.paced else None
        self.pacer, self.disk = Pacer(dilation), Pacer(dilation)
        for tasks, pacer in ((self.compute_tasks, self.pacer), (self.disk_tasks, self.disk)):
            threading.Thread(target=self._work, args=(tasks, pacer), daemon=True).start()
        sleep_until(clock.start_s)
        self.start(Program(self.rank, program, 0.0))
        while self.live:
            self._next()
        self.emit(self.memory_mark(self.now_s))

    # completions

    def _next(self) -> None:
        """Handle one completion, or the next held message that is due."""
        now_s = time.monotonic()
        due_s = self.held[0][0] if self.held else now_s + SILENCE_CHECK_S
        if due_s > now_s:
            try:
                item = self.inbox.get(timeout=min(due_s - now_s, SILENCE_CHECK_S))
            except queue.Empty:
                self._check_silence()
                return
            self._handle(item)
        else:
            _, _, message = heapq.heappop(self.held)
            self._deliver(message, due_s)

    def _handle(self, item: _Done | Incoming | Closed) -> None:
        if isinstance(item, _Done):
            if item.span is not None:
                self.emit(item.span)
            self._finish(item.handle, item.value, self.clock.virtual(item.time_s))
        elif isinstance(item, Incoming):
            due_s = self._due(item)
            if due_s > item.arrived_s:
                self.serial += 1
                heapq.heappush(self.held, (due_s, self.serial, item))
            else:
                self._deliver(item, item.arrived_s)
        else:
            self._closed(item.src)

    def _due(self, item: Incoming) -> float:
        """When a message may be used (wall): what the kernel's links cannot do, the receiver adds.

        Delay where the kernel has no netem, and staging. A token bucket must let one frame pass at once,
        which is a whole decode message: so nothing is usable before an idle path could have carried it.
        """
        due_s = item.arrived_s + self.delays_s.get(item.src, 0.0)
        if not self.paced:
            return due_s
        size = item.header.payload_bytes + FRAME_HEADER_BYTES
        staging_s = size / self.device.staging_byte_per_s if self.device.staging_byte_per_s else 0.0
        due_s += staging_s * self.clock.dilation
        ideal_s = self.paths.unloaded_s(item.src, size, item.header.sent_s)
        return max(due_s, item.header.sent_s + (ideal_s + staging_s) * self.clock.dilation)

    def _deliver(self, message: Incoming, at_s: float) -> None:
        header = message.header
        at_virtual_s = self.clock.virtual(at_s)
        peer = self.cluster.devices[message.src].name
        request, token = header.request_token
        tensor = tensor_of(header, message.payload)
        self.emit(Span(
            self.device.name, "recv", header.tag, layer_of(header.tag), self.clock.virtual(header.sent_s),
            at_virtual_s, header.payload_bytes + FRAME_HEADER_BYTES, header.payload_bytes, peer=peer,
            request=request, token=token, message=header.message,
        ))
        waiting = self.deliver(message.src, header.tag, tensor, at_virtual_s)
        if waiting is not None:
            self._finish(waiting, tensor, at_virtual_s)

    def _finish(self, handle: Handle, value: Any, time_s: float) -> None:
        handle.done, handle.time_s = True, time_s
        if isinstance(value, BaseException):
            handle.error = value
        else:
            handle.value = value
        waiters, handle.waiters = handle.waiters, []
        for program in waiters:
            self.waited(program, handle)
            program.now_s = max(program.now_s, time_s)
            self._resume(program)

    def _resume(self, program: Program) -> None:
        before, self.current = self.current, program
        ended = program.step()
        self.current = before
        if ended:
            self.live.discard(program)
            if program.handle.error is not None:
                raise program.handle.error
            self._finish(program.handle, program.handle.value, program.now_s)

    def start(self, program: Program) -> None:
        self.live.add(program)
        self._resume(program)

    # failures

    def _closed(self, src: int) -> None:
        if any(queue and peer == src for (peer, _), queue in self.expected.items()):
            self._lost(src, "closed its connection")

    def _check_silence(self) -> None:
        now_s = self.clock.virtual(time.monotonic())
        for program in self.live:
            handle = program.waiting_for
            if handle is None or handle.done or not handle.what.startswith("recv"):
                continue
            if now_s - program.waiting_since_s > self.spec.silence_s:
                peer = self.cluster.rank(handle.what.rpartition(" ")[2])
                self._lost(peer, f"sent nothing for {self.spec.silence_s:g} s")

    def _lost(self, peer: int, how: str) -> None:
        name, now_s = self.cluster.devices[peer].name, self.clock.virtual(time.monotonic())
        raise PeerLost(f"{name} {how} while {self.device.name} needed it, at {now_s:.3f} s.", name, now_s)

    # verbs

    def compute(self, op: Op, *inputs: torch.Tensor) -> Handle:
        cost, target_s = self.price(op, inputs)
        handle = Handle(op.name)

        def work() -> Any:
            return torch_ops.run(op, self.model, self.weights, self.caches, inputs)

        facts = self.compute_facts(op, cost)
        self.compute_tasks.put(_Task(handle, work, self.clock.wall(self.now_s), target_s, "compute", facts))
        return handle

    def load(self, piece: Slice) -> Handle:
        size = self.ledger.load(piece)
        handle = Handle("load")
        facts = {
            "name": piece.part, "layer": piece.layer, "bytes": size,
            "request": self.current.request, "token": self.current.token,
        }
        target_s = size / self.device.disk_byte_per_s

        def work() -> None:
            self.weights.load(piece)

        self.disk_tasks.put(_Task(handle, work, self.clock.wall(self.now_s), target_s, "load", facts))
        return handle

    def evict(self, piece: Slice) -> None:
        super().evict(piece)
        self.weights.evict(piece)

    def _work(self, tasks: queue.SimpleQueue[_Task], pacer: Pacer) -> None:
        """The loop of the compute thread and of the disk thread."""
        torch.set_num_threads(1)
        with torch.inference_mode():
            while True:
                task = tasks.get()
                try:
                    value, start_s, end_s = pacer.run(task.work, task.ready_s, task.target_s)
                except Exception as error:  # raised again by whoever awaits the handle
                    self.inbox.put(_Done(task.handle, error, time.monotonic(), None))
                    continue
                span = Span(
                    self.device.name, task.kind, start_s=self.clock.virtual(start_s),
                    end_s=self.clock.virtual(end_s), **task.facts,
                )
                self.inbox.put(_Done(task.handle, value, end_s, span))

    def send(self, tensor: torch.Tensor, dst: int, tag: str) -> Handle:
        number = self.number_message(dst, tag)
        facts = self.message_facts(tensor, tag, number)
        handle = Handle(f"send {tag}")
        sent_s = self.now_s
        header = FrameHeader(
            number, facts["payload_bytes"], (self.current.request, self.current.token),
            self.clock.wall(sent_s), dtype_of(tensor), shape_of(tensor), tag,
        )
        hold_s = sender_cost_s(self.device, facts["bytes"]) if self.paced else 0.0
        peer = self.cluster.devices[dst].name

        def done(at_s: float) -> None:
            span = Span(
                self.device.name, "send", start_s=sent_s, end_s=self.clock.virtual(at_s), peer=peer, **facts
            )
            self.inbox.put(_Done(handle, None, at_s, span))

        if dst not in self.writers:
            raise EdgeLoomError(
                f"{self.device.name} has no connection to {peer}: the plan's prediction never sent there."
            )
        hold_wall_s = hold_s * self.clock.dilation
        self.writers[dst].queue.put(Outgoing(header, bytes_of(tensor), hold_wall_s, done))
        return handle

    def recv(self, src: int, tag: str) -> Handle:
        return self.receive(src, tag)

    def release(self, cache: str) -> None:
        super().release(cache)
        for key in [key for key in self.caches if key[0] == cache]:
            del self.caches[key]

    def decide(self, name: str, fn: Callable[..., Any], *inputs: torch.Tensor) -> Any:
        answer = fn(*inputs)
        self.mark("decided", decision=name, answer=answer)
        return answer


def bytes_of(tensor: torch.Tensor) -> memoryview:
    """The tensor's bytes, without a copy where it is contiguous."""
    if payload_bytes(tensor) == 0:
        return memoryview(b"")
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())  # type: ignore[arg-type]  # ndarrays do have the buffer protocol


def tensor_of(header: FrameHeader, payload: bytearray) -> torch.Tensor:
    """Inverse of `bytes_of`; the tensor owns `payload`."""
    dtype = getattr(torch, header.dtype)
    if not payload:
        return torch.empty(header.shape, dtype=dtype)
    return torch.frombuffer(payload, dtype=dtype).reshape(header.shape)
