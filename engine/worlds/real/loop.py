"""The main loop of a real device: it waits for completions and messages, and hands each on when it is due.

Programs and all sockets live in the main thread; operations run in a compute thread and a disk thread. Every
completion carries the *logical* time at which it happened (an operation's deadline, a message's arrival), and
the program's next operation starts at that time: see `pacing.py`.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from math import inf
from typing import Any, Literal, NamedTuple, Protocol

import torch

from engine.domain.errors import PeerFailed
from engine.domain.message_costs import receiver_cost_s
from engine.domain.network import PairMeasurement
from engine.domain.plan import Plan
from engine.domain.scenario import CHANGE, Change, JoinDevice
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.models.weights.store import WeightStore
from engine.ops.torch_kernels import dispatch as arithmetic
from engine.ops.torch_kernels.storage import KVCache
from engine.program.frames import EPOCHS, FrameHeader, unpack_note
from engine.worlds.common.device import Device, Emit, Receipt, layer_of
from engine.worlds.common.paths import PathTimes
from engine.worlds.common.programs import Handle, Program
from engine.worlds.common.row_files import RowFiles
from engine.worlds.common.wire_tensors import tensor_of
from engine.worlds.real.connections import Connections, Incoming
from engine.worlds.real.pacing import LEAD_S, Pacer
from engine.worlds.real.tasks import Clock, Done, Task, run_task
from engine.worlds.real.watchdog import CHECK_PERIOD_S, PeerWatchdog, silence_limits

ControlMessage = dict[str, Any]
"""A message between a device and its supervisor; `type` says which."""

Ending = Literal["finished", "halted", "stuck"]


class Control(Protocol):
    """A device's connection to its supervisor."""

    def receive(self) -> ControlMessage | None:
        """The supervisor's next message, None if there is none now."""

    def has_message(self) -> bool:
        """Whether `receive` would return a message now."""

    def send(self, message: ControlMessage) -> None:
        """Send `message` to the supervisor."""


MOST_WARM_ROWS = 128
"""The most rows that count for the memory that a thread has before the run starts."""


class Lost(NamedTuple):
    """A device was killed, of which this one learns when the path would have shown it."""

    rank: int


class Leaving(Handle):
    """A message to `dst` that its device is still sending."""

    __slots__ = ("dst",)

    def __init__(self, dst: int):
        super().__init__("send")
        self.dst = dst


class _Halt(Exception):
    """Raised when the supervisor orders this device to halt all programs."""


class DeviceLoop(Device):
    """A real device without the methods that start operations and messages (`device.py`).

    `held` are the links whose delay the network cannot make: the device holds their messages itself. `given`
    is what the network gives where nobody shapes it, and messages are to take as long as it is drawn.
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
        control: Control,
        given: Sequence[PairMeasurement] = (),
    ):
        super().__init__(rank, spec, plan, emit)
        self.weights = weights
        self.paced = paced
        self.connections = connections
        self.control = control
        self.watchdog = PeerWatchdog(
            silence_limits(spec.silence_s, 1.0),
            self._awaited,
            connections.last_byte_s,
            connections.ping,
            self._report_suspect,
        )
        self.epoch = 0
        self.on_request: Callable[[ControlMessage, float], None] = lambda message, time_s: None
        self.caches: dict[tuple[str, int], KVCache] = {}
        self.row_files = RowFiles(self.caches)
        self.kept: dict[str, torch.Tensor] = {}
        self.paths = PathTimes(spec.cluster, rank, held, given)
        self.lead_s = LEAD_S if paced else 0.0
        self.departed_s: dict[int, float] = {}
        self.due: list[tuple[float, int, Done | Incoming | Lost]] = []
        self.alarms: list[tuple[float, float, int, Handle]] = []  # wall time, virtual time
        self.early: deque[Incoming] = deque()  # read and not accepted yet
        self.usable_s: dict[int, float] = {}  # when the last message of each peer may be used (wall)
        self.serial = 0
        self.live: set[Program] = set()
        self.clock = Clock(0.0, 1.0)
        self.compute_pacer = self.disk_pacer = Pacer(None)
        self.computing = self.outstanding = 0
        self.compute_tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self.disk_tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self.done: deque[Done] = deque()

    def warm_up(self) -> None:
        """Start the threads, and run on each the operations that are slow the first time in a process.

        One thread after the other, as MKL prepares itself in the first product of a thread.
        """
        rows = min(self.spec.workload.prompt_tokens or MOST_WARM_ROWS, MOST_WARM_ROWS)
        for number, (tasks, most) in enumerate(((self.compute_tasks, rows), (self.disk_tasks, 1)), 1):
            threading.Thread(target=self._work, args=(tasks,), daemon=True).start()
            warm_up = partial(arithmetic.warm_up, self.model, most)
            tasks.put(Task(Handle(), warm_up, Pacer(None), 0.0, 0.0, "", {}))
            while len(self.done) < number:
                self.connections.wait(CHECK_PERIOD_S)
        with torch.inference_mode():
            arithmetic.warm_up(self.model, rows)
        self.done.clear()

    def stand_in_for(self, device: DeviceLoop) -> None:
        """Use the threads of `device`, which does nothing meanwhile, and what has arrived there already."""
        self.compute_tasks, self.disk_tasks, self.done = device.compute_tasks, device.disk_tasks, device.done
        self.early, device.early = device.early, self.early

    def set_clock(self, clock: Clock) -> None:
        self.clock = clock
        dilation = clock.dilation if self.paced else None
        self.compute_pacer, self.disk_pacer = Pacer(dilation), Pacer(dilation)
        self.watchdog.limits = silence_limits(self.spec.silence_s, clock.dilation)

    def run(self, program: Coroutine[Any, Any, Any], begin_s: float) -> Ending:
        """Run `program` from wall time `begin_s` until it ends ("finished"), the supervisor halts it
        ("halted") or it does not catch the failure of a peer ("stuck"). Raises its first other error.
        """
        time.sleep(max(0.0, begin_s - time.monotonic()))
        ending: Ending = "finished"
        with torch.inference_mode():
            try:
                self.start(Program(self.rank, program, self.clock.virtual(begin_s)))
                while self.live:
                    self._next()
            except PeerFailed:
                ending = "stuck"
            except _Halt:
                ending = "halted"
        self.emit(self.memory_mark(self.clock.virtual(time.monotonic())))
        if ending != "finished":
            self.halt()
        return ending

    def wait_for_message(self) -> ControlMessage:
        """Serve the connections until the supervisor sends a message, and return that."""
        while (message := self.control.receive()) is None:
            messages, _ = self.connections.wait(CHECK_PERIOD_S)
            self.early += messages
        return message

    def halt(self) -> None:
        """Abandon all programs, and their operations as soon as the threads have finished them."""
        for program in self.live:
            program.close()
        self.live.clear()
        while self.outstanding:
            if not self.done:
                self.connections.wait(CHECK_PERIOD_S)
            while self.done:
                self.done.popleft()
                self.outstanding -= 1
        super().halt()
        self._lose_due(None)  # after that: no closed program is resumed, as nobody waits any more
        self.due.clear()
        self.alarms.clear()
        self.early.clear()
        self.usable_s.clear()
        self.computing = 0
        for pacer in (self.compute_pacer, self.disk_pacer):
            pacer.reset(time.monotonic())
        self.departed_s.clear()
        self.paths.forget_messages()
        self.caches.clear()
        self.row_files.clear()

    def handle_message(self, message: ControlMessage) -> None:
        """Handle a supervisor's message about the cluster, or its order to halt."""
        if message["type"] == "change":
            change: Change = CHANGE.validate_python(message["change"])
            if isinstance(change, JoinDevice):
                self._lose_due(self.cluster.rank(change.device))
            self.change(change)
            self._change_links(change)
            if isinstance(change, JoinDevice) and change.device == self.device.name:  # it was frozen
                for pacer in (self.compute_pacer, self.disk_pacer):
                    pacer.resume(time.monotonic())
        elif message["type"] == "lost":
            rank, since_s = message["rank"], message["killed_s"]
            if since_s is None or not self.live:
                self._lose(rank, time.monotonic())
            else:
                self._later(self.clock.wall(since_s + self.paths.delay_from_s(rank)), Lost(rank))
        elif message["type"] == "trust":
            self.watchdog.trust(message["peer"], time.monotonic())
        elif message["type"] in ("ask", "withdraw", "close"):
            self.on_request(message, self.clock.virtual(time.monotonic()))
        elif message["type"] == "status":
            self.control.send({"type": "status", "question": message["question"]} | self._status())
        elif message["type"] == "halt":
            raise _Halt

    def _change_links(self, change: Change) -> None:
        """Take a change of a link into account. Where nobody shapes the network, what is under way has to be
        told anew, since no kernel carries the rest of it at another rate.
        """
        known = len(self.paths.changes)
        self.paths.change(change, self.clock.virtual(time.monotonic()))
        if not self.paths.given or len(self.paths.changes) == known:
            return
        self.departed_s = {dst: self.paths.left_s(dst, left_s) for dst, left_s in self.departed_s.items()}
        held = [(serial, item) for _, serial, item in self.due if isinstance(item, Incoming)]
        self.due = [entry for entry in self.due if not isinstance(entry[2], Incoming)]
        heapq.heapify(self.due)
        self.usable_s.clear()
        self.paths.forget_arriving()
        alarms, self.alarms = self.alarms, []
        for _, time_s, _, handle in sorted(alarms, key=lambda entry: entry[:3]):
            if isinstance(handle, Leaving):
                time_s = self.paths.left_s(handle.dst, time_s)
            self.finish_at(handle, time_s)
        for _, message in sorted(held, key=lambda entry: entry[0]):
            self._accept(message)

    def _lose(self, rank: int, at_s: float) -> None:
        """Act on the failure of device `rank`, which this device knows from wall time `at_s` on."""
        self.conditions.mark_failed(rank)
        self.connections.close(rank)
        self.fail_waiting(rank, self.clock.virtual(at_s))

    def _lose_due(self, rank: int | None) -> None:
        """Learn now of the failure of device `rank` (of all devices) of which this one was to learn later."""
        lost = {item.rank for _, _, item in self.due if isinstance(item, Lost) and rank in (None, item.rank)}
        self.due = [entry for entry in self.due if not (isinstance(entry[2], Lost) and entry[2].rank in lost)]
        heapq.heapify(self.due)
        for peer in sorted(lost):
            self._lose(peer, time.monotonic())

    def _status(self) -> ControlMessage:
        """Whether all programs wait for messages and nothing else goes on here, and for which messages."""
        receipts = [program.waiting_for for program in self.live if isinstance(program.waiting_for, Receipt)]
        busy = self.outstanding or self.done or self.due or self.alarms or self.connections.is_writing
        return {
            "waits": not busy and (not self.early or not self.live) and len(receipts) >= bool(self.live),
            "waiting_for": sorted({handle.name() for handle in receipts if not handle.done}),
            "sent": self.connections.num_sent(),
            "received": self.connections.num_received(),
        }

    # completions

    def _next(self) -> None:
        """Hand on all that is due, then wait for the next arrival, completion or due time."""
        while (message := self.control.receive()) is not None:
            self.handle_message(message)
        while self.due and self.due[0][0] - self.lead_s <= time.monotonic():
            due_s, _, item = heapq.heappop(self.due)
            if isinstance(item, Incoming):
                self._deliver(item, due_s)
            elif isinstance(item, Lost):
                self._lose(item.rank, max(due_s, time.monotonic()))
            else:
                self._settle(item)
        while self.alarms and self.alarms[0][0] - self.lead_s <= time.monotonic():
            _, time_s, _, handle = heapq.heappop(self.alarms)
            self.finish(handle, None, time_s)
        if not self.live:
            return
        awaited_s = [alarm_s for alarm_s, _, _, handle in self.alarms if handle.waiters]
        next_s = min([due_s for due_s, _, _ in self.due[:1]] + awaited_s, default=inf)
        timeout_s = min(CHECK_PERIOD_S, max(0.0, next_s - self.lead_s - time.monotonic()))
        arrived, closed = self._wait(0.0 if self.done or self.early else timeout_s)
        self.early += arrived
        self._accept_all()
        while self.done:
            finished = self.done.popleft()
            self.outstanding -= 1
            self._later(finished.task.deadline_s, finished)
        for peer in closed:
            self.watchdog.suspect(peer)
        self.watchdog.check(time.monotonic())

    def _accept_all(self) -> None:
        """Accept the messages that were read, in their order and one by one: each may resume a program, which
        may look for more.
        """
        while self.early:
            incoming = self.early.popleft()
            if incoming.header.epoch == self.epoch % EPOCHS:
                self._accept(incoming)

    def _accept(self, message: Incoming) -> None:
        """Deliver a message that has arrived when it may be used, and not before an earlier one of its
        sender, which may be larger or may have set out before a delay became shorter.
        """
        src = message.src
        self.usable_s[src] = max(self._usable_s(message), self.usable_s.get(src, 0.0))
        self._later(self.usable_s[src], message)

    def _wait(self, timeout_s: float) -> tuple[list[Incoming], list[int]]:
        """Wait `timeout_s` at most for complete messages and for peers that have closed."""
        return self.connections.wait(timeout_s)

    def _awaited(self) -> dict[int, float]:
        """The peers that programs wait for, and since when (wall)."""
        awaited: dict[int, float] = {}
        for (peer, _), handles in self.expected.items():
            waiting = [program for handle in handles for program in handle.waiters]
            if waiting:
                since_s = self.clock.wall(min(program.waiting_since_s for program in waiting))
                awaited[peer] = min(since_s, awaited.get(peer, since_s))
        return awaited

    def _report_suspect(self, peer: int, last_byte_s: float | None) -> None:
        if peer not in self.failed:
            self.control.send({"type": "suspect", "rank": peer, "last_byte_s": last_byte_s})

    def finish_at(self, handle: Handle, time_s: float) -> None:
        self.serial += 1
        heapq.heappush(self.alarms, (self.clock.wall(time_s), time_s, self.serial, handle))

    def _later(self, due_s: float, item: Done | Incoming | Lost) -> None:
        self.serial += 1
        heapq.heappush(self.due, (due_s, self.serial, item))

    def _usable_s(self, message: Incoming) -> float:
        """When a message may be used (wall): its arrival plus what the network's links do not model."""
        header, paths = message.header, self.paths
        size = header.framed_bytes
        cost_s = receiver_cost_s(self.device, size) if self.paced else 0.0
        usable_s = message.arrived_s + (paths.held_s(message.src) + cost_s) * self.clock.dilation
        if not header.due_s:
            return usable_s
        through_s = self.clock.virtual(header.due_s)
        if paths.given:
            through_s = paths.arriving_s(message.src, through_s, header.changes)
        elif header.sent_s <= paths.changed_s:  # links that are shaped know what changed
            return usable_s
        through_s = paths.arrives_s(message.src, size, through_s)
        return max(usable_s, self.clock.wall(through_s + cost_s))

    def _settle(self, done: Done) -> None:
        """End an operation that is due: emit its span, and resume the programs that wait for it."""
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
        tensor = tensor_of(header, message.body)
        self.record(self._received, message.src, header, at_virtual_s)
        note = unpack_note(header, message.body) if header.note_size else ()
        self.deliver(message.src, header.tag, header.sequence, (note, tensor), at_virtual_s)

    def _received(self, src: int, header: FrameHeader, at_s: float) -> None:
        request, token = header.request_token
        self.emit(
            Span(
                self.device.name,
                "recv",
                header.tag,
                layer_of(header.tag),
                self.clock.virtual(header.sent_s),
                at_s,
                header.framed_bytes,
                header.payload_bytes,
                peer=self.cluster.devices[src].name,
                request=request,
                token=token,
                message=header.message,
            )
        )

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
            if error is not None and not (isinstance(error, PeerFailed) and program.handle.waiters):
                raise error
            self.finish(program.handle, program.handle.value, program.now_s)

    def start(self, program: Program) -> None:
        self.live.add(program)
        self._resume(program)

    def _work(self, tasks: queue.SimpleQueue[Task]) -> None:
        """Run tasks for ever: the body of the compute thread and of the disk thread."""
        torch.set_num_threads(1)
        with torch.inference_mode():
            while True:
                self.done.append(run_task(tasks.get()))
                self.connections.wake()
