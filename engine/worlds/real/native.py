"""A device at native speed: nothing is paced, so the runtime only has to be fast.

An operation of a few milliseconds runs at once in the main thread, and the program goes on with its result
without a turn of the loop. A device that waits for a message polls for a moment before it sleeps, where every
device has a core: waking a sleeping thread takes as long as a message. It polls within the program that
waits, if no other runs.

Every pass over the weights empties the processor's caches, so that code that runs once between two operations
takes ten times as long as code in a loop. Therefore the memory ledger and the trace are kept later: what was
done is noted, and entered when the device has nothing to do, when something asks for the ledger, or at the
end of the run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from itertools import pairwise
from typing import Any

import torch

from engine.domain.granted import granted_frac
from engine.domain.host_times import shares_evenly
from engine.domain.trace import Span
from engine.ops.cost import hands_over
from engine.ops.layers import Layers
from engine.ops.ledger import Ledger
from engine.ops.operation import Op
from engine.ops.tensors import Meta, meta_of
from engine.ops.torch_kernels.dispatch import FUNCTIONS
from engine.worlds.common.device import Receipt
from engine.worlds.common.programs import Handle
from engine.worlds.real.connections import Incoming
from engine.worlds.real.device import RealDevice
from engine.worlds.real.loop import ControlMessage
from engine.worlds.real.tasks import Done

TURN_S = 10e-3
"""A program that computes looks for messages of peers and of the supervisor so often."""

POLL_S = 30e-3
"""How long a device with a core of its own polls before it sleeps: longer than a pipeline's stage waits for a
token of a small model.
"""

MOST_NOTED = 10_000
"""Entries that wait for the ledger and the trace at most: a few hundred tokens, a megabyte."""


def keep_a_core(rank: int, workers: Sequence[int]) -> bool:
    """Bind this process, which is worker `rank`, to a core, where that serves all workers alike
    (`shares_evenly`).

    Where the kernel may move processes, it wakes the receiver of a message on the core of the sender, which
    then waits for it. Returns whether this worker has a core of its own, all of it: what it polls is taken
    off a quota. A single worker may use all cores.
    """
    cores = sorted(os.sched_getaffinity(0))
    if rank not in workers:
        return False
    if shares_evenly(len(workers), len(cores)):
        os.sched_setaffinity(0, {cores[list(workers).index(rank) % len(cores)]})
    return len(workers) <= len(cores) and granted_frac() == 1.0


class Awaited(Receipt):
    """A message for which its device looks within the program that awaits it, before the program is left."""

    __slots__ = ("device",)

    def __init__(self, device: NativeDevice, tag: str, peer: str, noted: bool):
        super().__init__(tag, peer, noted)
        self.device = device

    def __await__(self) -> Generator[Handle, None, Any]:
        if not self.done:
            self.device.look_for(self)
        return (yield from super().__await__())


class NativeDevice(RealDevice):
    """A `RealDevice` that is not paced. With `polls` it may keep a core busy while it waits for a message."""

    def __init__(self, *args: Any) -> None:
        self.noted: list[tuple[Any, ...]] = []
        self.leaves: dict[tuple[type, str, Any], bool] = {}  # operations that leave the main thread, by shape
        super().__init__(*args)
        self.turned_s = 0.0
        self.polls = False
        self.holds_messages = self._holds_messages()

    def _holds_messages(self) -> bool:
        """Whether messages may be usable later than they arrive."""
        return any(self.paths.held.values()) or self.paths.slows

    def handle_message(self, message: ControlMessage) -> None:
        super().handle_message(message)
        if message["type"] == "change":
            self.holds_messages |= self._holds_messages()  # once held, messages keep their order

    @property
    def ledger(self) -> Ledger:
        """The memory ledger, with all that was done so far."""
        self.settle()
        return self._ledger

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def settle(self) -> None:
        """Enter what was noted in the ledger and in the trace, in its order.

        Raises `OutOfMemory` as the operation itself would have.
        """
        noted, self.noted = self.noted, []
        for entry, *facts in noted:
            entry(*facts)

    def record(self, entry: Callable[..., None], *facts: Any) -> None:
        self.noted.append((entry, *facts))

    def at(self, request: int, token: int) -> None:
        self.current.request, self.current.token = request, token
        self.noted.append((self._remember_memory, self.current.now_s))

    def _remember_memory(self, time_s: float) -> None:
        self.emit(self.memory_mark(time_s))

    def compute(self, op: Op, *inputs: torch.Tensor) -> Handle:
        began_s = time.monotonic()
        if self._leaves(op, inputs) or self._loop_is_due(began_s):
            return self._queued(op, inputs)
        value = FUNCTIONS[type(op)](op, self.model, self.weights, self.caches, *inputs)
        ended_s = time.monotonic()
        self._note(op, tuple([(x.shape, x.dtype) for x in inputs]), began_s, ended_s)
        handle = Handle()
        handle.done, handle.value, handle.time_s = True, value, self.current.now_s
        return handle

    async def compute_layers(self, layers: Layers, x: torch.Tensor) -> torch.Tensor:
        """Compute one operation after the other, without a handle and a look at all that may be
        due for each.
        """
        ops, at, began_s = layers.ops, 0, time.monotonic()
        while at < len(ops):
            op = ops[at]
            if self._leaves(op, (x,)):
                x, times_s = await self._handed_over(ops[at:], x)
                at += len(times_s) - 1
                began_s = time.monotonic()
            elif self._loop_is_due(began_s):
                x = await self._queued(op, (x,))
                at += 1
                began_s = time.monotonic()
            else:
                of_input = ((x.shape, x.dtype),)
                x = FUNCTIONS[type(op)](op, self.model, self.weights, self.caches, x)
                ended_s = time.monotonic()
                self._note(op, of_input, began_s, ended_s)
                at, began_s = at + 1, ended_s
        return x

    def _note(self, op: Op, of_inputs: Any, began_s: float, ended_s: float) -> None:
        """Take note of an operation that the main thread has computed: the program is at its end, the trace
        gets it later.
        """
        current, noted = self.current, self.noted
        noted.append((self._computed, op, of_inputs, began_s, ended_s, current.request, current.token))
        if len(noted) > MOST_NOTED:
            self.settle()
        current.now_s = max(current.now_s, self.clock.virtual(ended_s))

    def _loop_is_due(self, now_s: float) -> bool:
        """Whether a program may not go on in the main thread before a turn of the loop."""
        return bool(
            self.outstanding
            or (self.due and self.due[0][0] <= now_s)
            or (self.alarms and self.alarms[0][0] <= now_s)
            or self.connections.is_writing
            or (now_s - self.turned_s > TURN_S and self._loop_has_work())
        )

    def _queued(self, op: Op, inputs: tuple[torch.Tensor, ...]) -> Handle:
        """Compute `op` in the compute thread, or now if it is short, and go on after a turn of the loop."""
        of_inputs = tuple([(x.shape, x.dtype) for x in inputs])
        facts = {"entered": (op, of_inputs), "by": (self.current.request, self.current.token)}
        leaves = self._leaves(op, inputs) or self.connections.is_writing
        return self._begin(op, inputs, 0.0, facts, leaves)

    def _handed_over(self, ops: Sequence[Op], x: torch.Tensor) -> Handle:
        """Compute `ops`, each on the result of the one before, in the compute thread, until another operation
        waits for it or the program is abandoned: (the last result, the wall time of the start and of each
        end).
        """
        of_inputs = ((x.shape, x.dtype),)

        def work() -> tuple[torch.Tensor, list[float]]:
            y, times_s = x, [time.monotonic()]
            for op in ops:
                y = FUNCTIONS[type(op)](op, self.model, self.weights, self.caches, y)
                times_s.append(time.monotonic())
                if not self.live or not self.compute_tasks.empty():
                    break
            return y, times_s

        facts = {"chain": (ops, of_inputs), "by": (self.current.request, self.current.token)}
        task = self._task(work, self.compute_pacer, 0.0, "compute", facts, ops[0].name)
        self.computing += 1
        self.compute_tasks.put(task)
        return task.handle

    def _settle(self, done: Done) -> None:
        """End operations that took a turn of the loop; their prices and their spans come later."""
        task, facts = done.task, done.task.facts
        if task.kind != "compute":
            super()._settle(done)
            return
        self.computing -= 1
        if isinstance(done.value, BaseException):
            raise done.value
        ended_s = time.monotonic()
        if "chain" in facts:
            ops, of_inputs = facts["chain"]
            for op, (began_s, end_s) in zip(ops, pairwise(done.value[1]), strict=False):
                self.record(self._computed, op, of_inputs, began_s, end_s, *facts["by"])
        else:
            self.record(self._computed, *facts["entered"], ended_s - done.host_s, ended_s, *facts["by"])
        self.finish(task.handle, done.value, self.clock.virtual(ended_s))

    def _leaves(self, op: Op, inputs: tuple[torch.Tensor, ...]) -> bool:
        """Whether `op`, and others of its type on inputs of this shape, leave the main thread."""
        kind = (type(op), op.name, inputs[0].shape if inputs else None)
        leaves = self.leaves.get(kind)
        if leaves is None:
            metas = tuple(map(meta_of, inputs))
            rows = self.ledger.rows(op) if op.cache else 0
            price = self.price_at(op, metas, self.prices_of(op, metas), rows)
            leaves = self.leaves[kind] = hands_over(price.flops, paced=False)
        return leaves

    def _loop_has_work(self) -> bool:
        """Look whether the loop has something to do, after which it counts as having had its turn."""
        if not self.connections.has_peers:
            self.turned_s = time.monotonic()
            return self.control.has_message()
        arrived, closed = self.connections.wait(0.0)
        self.early += arrived
        for peer in closed:
            self.watchdog.suspect(peer)
        self.turned_s = time.monotonic()
        return bool(arrived or closed or self.control.has_message())

    def _computed(
        self, op: Op, of_inputs: Any, began_s: float, ended_s: float, request: int, token: int
    ) -> None:
        """Enter an operation that was computed in the ledger and in the trace."""
        metas = tuple(Meta(tuple(shape), str(dtype).removeprefix("torch.")) for shape, dtype in of_inputs)
        price = self.price(op, metas)
        self.compute_pacer.settle(began_s, ended_s, ended_s, ended_s - began_s)
        start_s, end_s = self.clock.virtual(began_s), self.clock.virtual(ended_s)
        facts = self.compute_facts(op, price) | {"request": request, "token": token}
        self.emit(Span(self.device.name, "compute", start_s=start_s, end_s=end_s, **facts))

    def _due_s(self, dst: int, size_bytes: int) -> float:
        """Where the path is slower than what the network gives: what the sender computes takes its time."""
        if not self.paths.is_slowed(self.rank, dst):
            return 0.0
        return self._delivered_s(dst, size_bytes, self.clock.virtual(time.monotonic()), 0.0)

    def _accept(self, message: Incoming) -> None:
        if message.header.due_s:  # its sender knows of a change already
            self.holds_messages = True
        if self.holds_messages:
            super()._accept(message)
        else:
            self._deliver(message, message.arrived_s)

    def _receipt(self, src: int, tag: str, noted: bool) -> Receipt:
        return Awaited(self, tag, self.cluster.devices[src].name, noted)

    def look_for(self, handle: Receipt) -> None:
        """Poll for the message of `handle`, if the loop has nothing else to do and no other program runs.

        To leave a program and to resume it when the message is there takes a twentieth of a decode step over
        two devices.
        """
        busy = self.outstanding or self.done or self.due or self.early or self.alarms
        if not self.polls or self.holds_messages or busy or len(self.live) > 1:
            return
        program, connections = self.current, self.connections
        program.waiting_since_s, until_s = program.now_s, time.monotonic() + POLL_S
        while not handle.done and time.monotonic() < until_s and not connections.is_moving_much:
            messages, closed = connections.poll()
            self.early += messages
            self._accept_all()
            for peer in closed:
                self.watchdog.suspect(peer)
        if handle.done:
            self.waited(program, handle)
            program.now_s = max(program.now_s, handle.time_s)
            if not self.control.has_message():
                self.turned_s = time.monotonic()

    def _wait(self, timeout_s: float) -> tuple[list[Incoming], list[int]]:
        if self.polls and timeout_s > 0 and not self.outstanding:  # polling keeps the other thread waiting
            begun_s = time.monotonic()
            until_s = begun_s + min(POLL_S, timeout_s)
            while time.monotonic() < until_s and not self.connections.is_moving_much:
                messages, closed = self.connections.poll()
                if messages or closed or self.done:
                    self.turned_s = time.monotonic()
                    return messages, closed
            if timeout_s > POLL_S:  # else something is due now
                self.settle()
            timeout_s = max(0.0, begun_s + timeout_s - time.monotonic())
        found = self.connections.wait(timeout_s)
        self.turned_s = time.monotonic()
        return found
