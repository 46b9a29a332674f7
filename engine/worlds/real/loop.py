"""The loop of a real device: what its programs wait for, and when each of it is due.

Programs and all sockets live in the main thread; what computes or uses the disk has threads of its own, and
so has the wake-up of `Connections`. Every completion carries the *logical* time at which it happened (an
operation's deadline, a message's arrival), and what a program starts next starts at that time: see
`pacing.py`.
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

from engine.domain.errors import PeerLost
from engine.domain.plan import Plan
from engine.domain.scenario import CHANGE, Change
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.models.weights.store import WeightStore
from engine.ops.torch_kernels import dispatch as arithmetic
from engine.ops.torch_kernels.storage import KVCache
from engine.program.frames import EPOCHS, FRAME_HEADER_BYTES, unpack_note
from engine.worlds.common.device import Device, Emit, layer_of
from engine.worlds.common.paths import PathTimes, staging_s
from engine.worlds.common.programs import Handle, Program
from engine.worlds.common.row_files import RowFiles
from engine.worlds.real.connections import Connections, Incoming
from engine.worlds.real.liveness import CHECK_PERIOD_S, Silence
from engine.worlds.real.pacing import LEAD_S, Pacer
from engine.worlds.real.tasks import Clock, Done, Task, run_task
from engine.worlds.real.wire_tensors import tensor_of

Hear = Callable[[], dict[str, Any] | None]
Tell = Callable[[dict[str, Any]], None]
Ending = Literal["finished", "halted", "stuck"]


class _Halt(Exception):
    """The parent wants all programs stopped."""


class DeviceLoop(Device):
    """Everything of a real device but the verbs that start something.

    `held` are links whose delay it must keep itself. `hear` gives the parent's next message, if there is one;
    `tell` tells it something.
    """

    def __init__(
        self,
        rank: int,
        spec: RunSpec,
        plan: Plan,
        emit: Emit,
        weights: WeightStore,
        paced: bool,
        held: frozenset[int],
        connections: Connections,
        hear: Hear,
        tell: Tell,
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
        self.emit(
            Span(self.device.name, task.kind, start_s=start_virtual_s, end_s=end_virtual_s, **task.facts)
        )
        self.finish(task.handle, done.value, end_virtual_s)

    def _deliver(self, message: Incoming, at_s: float) -> None:
        header = message.header
        at_virtual_s = self.clock.virtual(at_s)
        request, token = header.request_token
        tensor = tensor_of(header, message.body)
        self.emit(
            Span(
                self.device.name,
                "recv",
                header.tag,
                layer_of(header.tag),
                self.clock.virtual(header.sent_s),
                at_virtual_s,
                FRAME_HEADER_BYTES + header.body_bytes,
                header.payload_bytes,
                peer=self.cluster.devices[message.src].name,
                request=request,
                token=token,
                message=header.message,
            )
        )
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

    def _work(self, tasks: queue.SimpleQueue[Task]) -> None:
        """The loop of the compute thread and of the disk thread."""
        torch.set_num_threads(1)
        with torch.inference_mode():
            while True:
                self.done.append(run_task(tasks.get()))
                self.connections.wake()
