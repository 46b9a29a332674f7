"""The real world: one device = one process, torch on real weights, messages on real sockets.

The program and all sockets live in the main thread, torch in one compute thread (never inline, or
receiving could not overlap computing; only operations too short to matter are). Every completion
carries the *logical* time at which it happened (an operation's deadline, a message's arrival), and what
a program starts next starts at that time: see `pacing.py`.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import torch

from engine.ctx import Decision, Note
from engine.errors import EdgeLoomError, PeerLost
from engine.frames import FRAME_HEADER_BYTES, NOTE_BYTES, FrameHeader, pack_note, unpack_note
from engine.models import arithmetic
from engine.models.ops import Op
from engine.models.torch_ops import KVCache
from engine.models.weights import WeightStore
from engine.plan import Plan, Slice
from engine.spec import RunSpec
from engine.tensors import dtype_of, payload_bytes, shape_of
from engine.trace import Span
from engine.worlds.connections import Connections, Incoming
from engine.worlds.device import Device, Emit, layer_of
from engine.worlds.pacing import LEAD_S, Pacer
from engine.worlds.paths import PathTimes, sender_cost_s, staging_s
from engine.worlds.programs import Handle, Program

SILENCE_CHECK_S = 0.2
INLINE_FLOPS = 200_000  # below, handing an operation to another thread costs more than the operation


class Clock(NamedTuple):
    """Virtual time 0 is the monotonic wall time `start_s`; `dilation` wall seconds make a virtual one."""

    start_s: float
    dilation: float

    def virtual(self, wall_s: float) -> float:
        return (wall_s - self.start_s) / self.dilation

    def wall(self, virtual_s: float) -> float:
        return self.start_s + virtual_s * self.dilation


class _Task(NamedTuple):
    """Work on a paced resource. Times are wall seconds."""

    handle: Handle
    work: Callable[[], Any]
    pacer: Pacer
    start_s: float
    deadline_s: float
    kind: Any
    facts: dict[str, Any]


class _Done(NamedTuple):
    """A task whose work is done; its value is handed on when it is due."""

    task: _Task
    value: Any
    host_s: float


class RealDevice(Device):
    """A `Ctx` whose verbs move real tensors."""

    def __init__(
        self, rank: int, spec: RunSpec, plan: Plan, emit: Emit, weights: WeightStore, paced: bool,
        delays_s: dict[int, float], connections: Connections,
    ):
        super().__init__(rank, spec, plan, emit)
        self.weights = weights
        self.paced = paced
        self.delays_s = delays_s
        self.connections = connections
        self.caches: dict[tuple[str, int], KVCache] = {}
        self.paths = PathTimes(spec.cluster, rank)
        self.departed_s: dict[int, float] = {}
        self.due: list[tuple[float, int, _Done | Incoming]] = []
        self.serial = 0
        self.live: set[Program] = set()
        self.clock = Clock(0.0, 1.0)
        self.compute_pacer = self.disk_pacer = Pacer(None)
        self.computing = 0
        self.compute_tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self.disk_tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self.done: deque[_Done] = deque()

    def warm_up(self) -> None:
        """Start the threads and let each do what every first operation of a process pays for once."""
        for tasks in (self.compute_tasks, self.disk_tasks):
            threading.Thread(target=self._work, args=(tasks,), daemon=True).start()
            tasks.put(_Task(Handle(), lambda: arithmetic.warm_up(self.model), Pacer(None), 0.0, 0.0, "", {}))
        while len(self.done) < 2:
            self.connections.wait(SILENCE_CHECK_S)
        with torch.inference_mode():
            arithmetic.warm_up(self.model)
        self.done.clear()

    def run(self, program: Coroutine[Any, Any, Any], clock: Clock) -> None:
        """Run `program` from virtual time 0 to its end. Raises its first error."""
        self.clock = clock
        dilation = clock.dilation if self.paced else None
        self.compute_pacer, self.disk_pacer = Pacer(dilation), Pacer(dilation)
        time.sleep(max(0.0, clock.start_s - time.monotonic()))
        with torch.inference_mode():
            self.start(Program(self.rank, program, 0.0))
            while self.live:
                self._next()
        self.emit(self.memory_mark(self.now_s))

    # completions

    def _next(self) -> None:
        """Hand on all that is due, then wait for the next arrival, completion or due time."""
        while self.due and self.due[0][0] - LEAD_S <= time.monotonic():
            due_s, _, item = heapq.heappop(self.due)
            if isinstance(item, Incoming):
                self._deliver(item, due_s)
            else:
                self._settle(item)
        if not self.live:
            return
        timeout_s = SILENCE_CHECK_S
        if self.due:
            timeout_s = min(timeout_s, max(0.0, self.due[0][0] - LEAD_S - time.monotonic()))
        messages, gone = self.connections.wait(0.0 if self.done else timeout_s)
        for message in messages:
            self._later(self._usable_s(message), message)
        while self.done:
            finished = self.done.popleft()
            self._later(finished.task.deadline_s, finished)
        for src in gone:
            self._closed(src)
        if not messages and not self.due:
            self._check_silence()

    def _later(self, due_s: float, item: _Done | Incoming) -> None:
        self.serial += 1
        heapq.heappush(self.due, (due_s, self.serial, item))

    def _usable_s(self, message: Incoming) -> float:
        """When a message may be used (wall): the receiver adds what the kernel's links cannot do."""
        usable_s = message.arrived_s + self.delays_s.get(message.src, 0.0)
        if not self.paced:
            return usable_s
        size = FRAME_HEADER_BYTES + message.header.body_bytes
        usable_s += staging_s(self.device, size) * self.clock.dilation
        undisturbed = message.header.sent_s > self.paths.changed_s
        return max(usable_s, message.header.due_s) if undisturbed else usable_s

    def _settle(self, done: _Done) -> None:
        """An operation is due: its span, its value, and whoever waited for it."""
        task = done.task
        if task.kind == "compute":
            self.computing -= 1
        if isinstance(done.value, BaseException):
            raise done.value
        end_s = task.pacer.settle(task.start_s, task.deadline_s, time.monotonic(), done.host_s)
        start_s = task.start_s if self.paced else end_s - done.host_s
        end_virtual_s = self.clock.virtual(end_s)
        start_virtual_s = self.clock.virtual(start_s)
        self.emit(Span(
            self.device.name, task.kind, start_s=start_virtual_s, end_s=end_virtual_s, **task.facts
        ))
        self.finish(task.handle, done.value, end_virtual_s)

    def _deliver(self, message: Incoming, at_s: float) -> None:
        header = message.header
        at_virtual_s = self.clock.virtual(at_s)
        request, token = header.request_token
        tensor = tensor_of(header, message.body)
        self.emit(Span(
            self.device.name, "recv", header.tag, layer_of(header.tag), self.clock.virtual(header.sent_s),
            at_virtual_s, FRAME_HEADER_BYTES + header.body_bytes, header.payload_bytes,
            peer=self.cluster.devices[message.src].name, request=request, token=token, message=header.message,
        ))
        self.deliver(message.src, header.tag, (unpack_note(header, message.body), tensor), at_virtual_s)

    def finish(self, handle: Handle, value: Any, time_s: float) -> None:
        handle.done, handle.value, handle.time_s = True, value, time_s
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
            self.finish(program.handle, program.handle.value, program.now_s)

    def start(self, program: Program) -> None:
        self.live.add(program)
        self._resume(program)

    # failures

    def _closed(self, src: int) -> None:
        if any(handles and peer == src for (peer, _), handles in self.expected.items()):
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

        def work() -> Any:
            return arithmetic.run(op, self.model, self.weights, self.caches, inputs)

        facts = self.compute_facts(op, cost)
        task = self._task(work, self.compute_pacer, target_s, "compute", facts, op.name)
        self.computing += 1
        if facts["flops"] < INLINE_FLOPS and self.computing == 1:
            done = run_task(task)
            self._later(done.task.deadline_s, done)
        else:
            self.compute_tasks.put(task)
        return task.handle

    def load(self, piece: Slice) -> Handle:
        size = self.ledger.load(piece)
        facts = {
            "name": piece.part, "layer": piece.layer, "bytes": size,
            "request": self.current.request, "token": self.current.token,
        }
        target_s = size / self.device.disk_byte_per_s
        task = self._task(lambda: self.weights.load(piece), self.disk_pacer, target_s, "load", facts, "load")
        self.disk_tasks.put(task)
        return task.handle

    def _task(
        self, work: Callable[[], Any], pacer: Pacer, target_s: float, kind: str, facts: dict[str, Any],
        what: str,
    ) -> _Task:
        start_s, deadline_s = pacer.plan(self.clock.wall(self.now_s), target_s)
        return _Task(Handle(what), work, pacer, start_s, deadline_s, kind, facts)

    def evict(self, piece: Slice) -> None:
        super().evict(piece)
        self.weights.evict(piece)

    def _work(self, tasks: queue.SimpleQueue[_Task]) -> None:
        """The loop of the compute thread and of the disk thread."""
        torch.set_num_threads(1)
        with torch.inference_mode():
            while True:
                self.done.append(run_task(tasks.get()))
                self.connections.wake()

    def send(self, tensor: torch.Tensor, dst: int, tag: str, note: Note = ()) -> Handle:
        number = self.number_message(dst, tag)
        facts = self.message_facts(tensor, tag, note, number)
        handle = Handle(f"send {tag}")
        sent_s = self.now_s
        header = FrameHeader(
            number, facts["payload_bytes"], (self.current.request, self.current.token),
            self.clock.wall(sent_s), self.clock.wall(self._ideal_arrival_s(dst, facts["bytes"])),
            dtype_of(tensor), shape_of(tensor), tag, len(note),
        )
        peer = self.cluster.devices[dst].name

        def done(at_s: float) -> None:
            end_s = max(sent_s, self.clock.virtual(at_s))
            self.emit(Span(self.device.name, "send", start_s=sent_s, end_s=end_s, peer=peer, **facts))
            self.finish(handle, None, end_s)

        if dst not in self.connections.outlets:
            raise EdgeLoomError(
                f"{self.device.name} has no connection to {peer}: the plan's prediction never sent there."
            )
        self.connections.outlets[dst].write(header, pack_note(note), bytes_of(tensor), done)
        return handle

    def _ideal_arrival_s(self, dst: int, size_bytes: int) -> float:
        """Virtual time at which an idle path delivers a message sent now, after this pair's last one."""
        begun_s = max(self.now_s, self.departed_s.get(dst, 0.0)) + sender_cost_s(self.device, size_bytes)
        self.departed_s[dst] = begun_s + self.paths.transfer_s(dst, size_bytes)
        staged_s = staging_s(self.cluster.devices[dst], size_bytes)
        return self.departed_s[dst] + self.paths.delays_s[dst] + staged_s

    def release(self, cache: str) -> None:
        super().release(cache)
        for key in [key for key in self.caches if key[0] == cache]:
            del self.caches[key]

    def decide(self, name: str, choice: Decision, *inputs: torch.Tensor) -> Any:
        answer = choice(*inputs)
        self.mark("decided", decision=name, answer=answer)
        return answer


def run_task(task: _Task) -> _Done:
    """Do the work now; an exception becomes the value, to be raised where the run can end."""
    began_s = time.monotonic()
    try:
        value = task.work()
    except Exception as error:
        value = error
    ended_s = time.monotonic()
    if task.pacer.dilation is None:
        task = task._replace(deadline_s=ended_s)
    return _Done(task, value, ended_s - began_s)


def bytes_of(tensor: torch.Tensor) -> memoryview:
    """The tensor's bytes, without a copy where it is contiguous."""
    if payload_bytes(tensor) == 0:
        return memoryview(b"")
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())  # type: ignore[arg-type]  # ndarrays do have the buffer protocol


def tensor_of(header: FrameHeader, body: bytearray) -> torch.Tensor:
    """Inverse of `bytes_of`, after the note; the tensor owns `body`."""
    dtype = getattr(torch, header.dtype)
    if not header.payload_bytes:
        return torch.empty(header.shape, dtype=dtype)
    return torch.frombuffer(body, dtype=dtype, offset=header.note_size * NOTE_BYTES).reshape(header.shape)
