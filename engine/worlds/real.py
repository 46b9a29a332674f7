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
from typing import Any, Literal

import torch

from engine.ctx import Decision, Note
from engine.dilation import INLINE_FLOPS
from engine.errors import PeerLost
from engine.frames import EPOCHS, FRAME_HEADER_BYTES, FrameHeader, pack_note, unpack_note
from engine.models import arithmetic
from engine.models.ops import Op
from engine.models.torch_ops import KVCache
from engine.models.weights import WeightStore
from engine.plan import Plan, Slice
from engine.scenario import CHANGE, Change
from engine.spec import RunSpec
from engine.tensors import dtype_of, shape_of
from engine.trace import Span, SpanKind
from engine.worlds.connections import Connections, Incoming
from engine.worlds.device import Device, Emit, layer_of
from engine.worlds.pacing import LEAD_S, Pacer
from engine.worlds.paths import PathTimes, sender_cost_s, staging_s
from engine.worlds.programs import Handle, Program
from engine.worlds.row_files import RowFiles
from engine.worlds.silence import CHECK_PERIOD_S, Silence
from engine.worlds.tasks import Clock, Done, Task, run_task
from engine.worlds.wire_tensors import bytes_of, tensor_of

Hear = Callable[[], dict[str, Any] | None]
Tell = Callable[[dict[str, Any]], None]
Ending = Literal["finished", "halted", "stuck"]


class _Halt(Exception):
    """The parent wants all programs stopped."""


class RealDevice(Device):
    """A `Ctx` whose verbs move real tensors.

    `held` are links whose delay it must keep itself. `hear` gives the parent's next message, if there is one;
    `tell` tells it something.
    """

    def __init__(
        self, rank: int, spec: RunSpec, plan: Plan, emit: Emit, weights: WeightStore, paced: bool,
        held: frozenset[int], connections: Connections, hear: Hear, tell: Tell,
    ):
        super().__init__(rank, spec, plan, emit)
        self.weights = weights
        self.paced = paced
        self.connections = connections
        self.hear, self.tell = hear, tell
        self.silence = Silence(self)
        self.epoch = 0
        self.caches: dict[tuple[str, int], KVCache] = {}
        self.row_files = RowFiles(self.caches)
        self.paths = PathTimes(spec.cluster, rank, held)
        self.departed_s: dict[int, float] = {}
        self.due: list[tuple[float, int, Done | Incoming]] = []
        self.early: list[Incoming] = []
        self.serial = 0
        self.live: set[Program] = set()
        self.clock = Clock(0.0, 1.0)
        self.compute_pacer = self.disk_pacer = Pacer(None)
        self.computing = self.outstanding = 0
        self.compute_tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self.disk_tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self.done: deque[Done] = deque()

    def warm_up(self) -> None:
        """Start the threads and let each do what every first operation of a process pays for once."""
        for tasks in (self.compute_tasks, self.disk_tasks):
            threading.Thread(target=self._work, args=(tasks,), daemon=True).start()
            tasks.put(Task(Handle(), lambda: arithmetic.warm_up(self.model), Pacer(None), 0.0, 0.0, "", {}))
        while len(self.done) < 2:
            self.connections.wait(CHECK_PERIOD_S)
        with torch.inference_mode():
            arithmetic.warm_up(self.model)
        self.done.clear()

    def set_clock(self, clock: Clock) -> None:
        self.clock = clock
        dilation = clock.dilation if self.paced else None
        self.compute_pacer, self.disk_pacer = Pacer(dilation), Pacer(dilation)

    def run(self, program: Coroutine[Any, Any, Any], begin_s: float) -> Ending:
        """Run `program` from wall time `begin_s` to its end, unless the parent halts it or a loss that it
        does not catch leaves it stuck. Raises its first other error.
        """
        time.sleep(max(0.0, begin_s - time.monotonic()))
        ending: Ending = "finished"
        with torch.inference_mode():
            try:
                self.start(Program(self.rank, program, self.clock.virtual(begin_s)))
                while self.live:
                    self._next()
            except PeerLost:
                ending = "stuck"
            except _Halt:
                ending = "halted"
        self.emit(self.memory_mark(self.clock.virtual(time.monotonic())))
        if ending != "finished":
            self.halt()
        return ending

    def idle(self) -> dict[str, Any]:
        """Keep connections going until the parent says something: that."""
        while (told := self.hear()) is None:
            messages, _ = self.connections.wait(CHECK_PERIOD_S)
            self.early += self.silence.answer(messages)
        return told

    def halt(self) -> None:
        """Abandon all programs and what they had under way, once the threads are through with it."""
        for program in self.live:
            program.close()
        self.live.clear()
        while self.outstanding:
            if not self.done:
                self.connections.wait(CHECK_PERIOD_S)
            while self.done:
                self.done.popleft()
                self.outstanding -= 1
        self.due.clear()
        self.early.clear()
        self.computing = 0
        for pacer in (self.compute_pacer, self.disk_pacer):
            pacer.reset(time.monotonic())
        self.departed_s.clear()
        self.caches.clear()
        self.row_files.clear()
        super().halt()

    def heed(self, message: dict[str, Any]) -> None:
        """What the parent says about the world."""
        if message["type"] == "change":
            change: Change = CHANGE.validate_python(message["change"])
            self.change(change)
            self.paths.change(change)
        elif message["type"] == "lost":
            rank = message["rank"]
            self.conditions.lose(rank)
            self.connections.close(rank)
            self.fail_waiting(rank, self.clock.virtual(time.monotonic()))
        elif message["type"] == "halt":
            raise _Halt

    # completions

    def _next(self) -> None:
        """Hand on all that is due, then wait for the next arrival, completion or due time."""
        while (told := self.hear()) is not None:
            self.heed(told)
        while self.due and self.due[0][0] - LEAD_S <= time.monotonic():
            due_s, _, item = heapq.heappop(self.due)
            if isinstance(item, Incoming):
                self._deliver(item, due_s)
            else:
                self._settle(item)
        if not self.live:
            return
        timeout_s = CHECK_PERIOD_S
        if self.due:
            timeout_s = min(timeout_s, max(0.0, self.due[0][0] - LEAD_S - time.monotonic()))
        messages, gone = self.connections.wait(0.0 if self.done or self.early else timeout_s)
        for message in self.early + self.silence.answer(messages):
            if message.header.epoch == self.epoch % EPOCHS:
                self._later(self._usable_s(message), message)
        self.early.clear()
        while self.done:
            finished = self.done.popleft()
            self.outstanding -= 1
            self._later(finished.task.deadline_s, finished)
        for src in gone:
            self.silence.suspect(src)
        self.silence.check()

    def _later(self, due_s: float, item: Done | Incoming) -> None:
        self.serial += 1
        heapq.heappush(self.due, (due_s, self.serial, item))

    def _usable_s(self, message: Incoming) -> float:
        """When a message may be used (wall): the receiver adds what the kernel's links cannot do."""
        usable_s = message.arrived_s + self.paths.held_s(message.src) * self.clock.dilation
        if not self.paced:
            return usable_s
        size = FRAME_HEADER_BYTES + message.header.body_bytes
        usable_s += staging_s(self.device, size) * self.clock.dilation
        undisturbed = message.header.sent_s > self.paths.changed_s
        return max(usable_s, message.header.due_s) if undisturbed else usable_s

    def _settle(self, done: Done) -> None:
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
            error = program.handle.error
            if error is not None and not (isinstance(error, PeerLost) and program.handle.waiters):
                raise error
            self.finish(program.handle, program.handle.value, program.now_s)

    def start(self, program: Program) -> None:
        self.live.add(program)
        self._resume(program)

    # verbs

    def compute(self, op: Op, *inputs: torch.Tensor) -> Handle:
        cost, target_s = self.price(op, inputs)

        def work() -> Any:
            return arithmetic.run(op, self.model, self.weights, self.caches, inputs)

        facts = self.compute_facts(op, cost)
        task = self._task(work, self.compute_pacer, target_s, "compute", facts, op.name)
        self.computing += 1
        if facts["flops"] < INLINE_FLOPS and self.computing == 1:
            self.outstanding -= 1
            done = run_task(task)
            self._later(done.task.deadline_s, done)
        else:
            self.compute_tasks.put(task)
        return task.handle

    def load(self, piece: Slice) -> Handle:
        size = self.ledger.load(piece)
        return self._disk(lambda: self.weights.load(piece), "load", piece.part, piece.layer, size)

    def store_rows(self, cache: str, layer: int, rows: int) -> Handle:
        size = self.ledger.store_rows(cache, layer, rows)
        return self._disk(lambda: self.row_files.store(cache, layer, rows), "store", "kv_rows", layer, size)

    def _forget_rows(self, cache: str, layer: int, rows: int) -> None:
        self.row_files.drop(cache, layer, rows)

    def fetch_rows(self, cache: str, layer: int) -> Handle:
        size = self.ledger.fetch_rows(cache, layer)
        return self._disk(lambda: self.row_files.fetch(cache, layer), "load", "kv_rows", layer, size)

    def _disk(self, work: Callable[[], Any], kind: SpanKind, name: str, layer: int, size: int) -> Handle:
        facts = {
            "name": name, "layer": layer, "bytes": size,
            "request": self.current.request, "token": self.current.token,
        }
        target_s = size / self.device.disk_byte_per_s
        task = self._task(work, self.disk_pacer, target_s, kind, facts, kind)
        self.disk_tasks.put(task)
        return task.handle

    def _task(
        self, work: Callable[[], Any], pacer: Pacer, target_s: float, kind: str, facts: dict[str, Any],
        what: str,
    ) -> Task:
        start_s, deadline_s = pacer.plan(self.clock.wall(self.now_s), target_s)
        self.outstanding += 1
        return Task(Handle(what), work, pacer, start_s, deadline_s, kind, facts)

    def evict(self, piece: Slice) -> None:
        super().evict(piece)
        self.weights.evict(piece)

    def _work(self, tasks: queue.SimpleQueue[Task]) -> None:
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
            dtype_of(tensor), shape_of(tensor), tag, len(note), self.epoch % EPOCHS,
        )
        peer = self.cluster.devices[dst].name

        def done(at_s: float) -> None:
            end_s = max(sent_s, self.clock.virtual(at_s))
            self.emit(Span(self.device.name, "send", start_s=sent_s, end_s=end_s, peer=peer, **facts))
            self.finish(handle, None, end_s)

        if dst in self.lost or not self._reachable(dst):
            handle.done, handle.time_s = True, sent_s
            return handle
        self.connections.outlets[dst].write(header, pack_note(note), bytes_of(tensor), done)
        return handle

    def _reachable(self, dst: int) -> bool:
        """Whether there is a connection to `dst`; one that no prediction foresaw is opened now."""
        if dst in self.connections.outlets:
            return True
        if dst not in self.silence.suspected and self.connections.open(dst):
            return True
        self.silence.suspect(dst)
        return False

    def _ideal_arrival_s(self, dst: int, size_bytes: int) -> float:
        """Virtual time at which an idle path delivers a message sent now, after this pair's last one."""
        begun_s = max(self.now_s, self.departed_s.get(dst, 0.0)) + sender_cost_s(self.device, size_bytes)
        self.departed_s[dst] = begun_s + self.paths.transfer_s(dst, size_bytes)
        staged_s = staging_s(self.cluster.devices[dst], size_bytes)
        return self.departed_s[dst] + self.paths.delay_s(dst) + staged_s

    def release(self, cache: str) -> None:
        super().release(cache)
        self.row_files.release(cache)
        for key in [key for key in self.caches if key[0] == cache]:
            del self.caches[key]

    def decide(self, name: str, choice: Decision, *inputs: torch.Tensor) -> Any:
        answer = choice(*inputs)
        self.mark("decided", decision=name, answer=answer)
        return answer
