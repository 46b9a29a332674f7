"""The simulated world: the same programs as the real one, on shapes instead of numbers, in virtual time.

A heap of (time, priority, serial, action) is the whole clock; the serial breaks ties, so a run is
deterministic. Compute and disk are FIFO resources of a device, messages go over `wires.py`. A program that
nobody will ever resume ends the run as a deadlock, not as silence.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.domain.errors import Cancelled, Deadlock, PeerLost, RunError
from engine.domain.plan import Plan, Slice
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span, SpanKind
from engine.ops.operation import Op
from engine.ops.tensors import Tensor, meta_of
from engine.program.ctx import Decision, Note
from engine.worlds.common.device import Device
from engine.worlds.common.programs import Handle, Program
from engine.worlds.simulated.faults import FATE, Fate, Joined
from engine.worlds.simulated.network import Message, Wires

EVENTS_BETWEEN_STOP_CHECKS = 2000

Programs = Iterable[tuple[int, Any]]
Recover = Callable[[Exception], Programs]
"""After a `PeerLost`, or a device that joined: the programs that go on. Raises the error if none can."""


class SimulatedWorld:
    """Runs `programs` (one per rank) to their end; the trace goes to `emit` in order of happening.

    `decisions` are a real run's, by device and name: what depended on data goes as it went there.
    """

    def __init__(
        self,
        spec: RunSpec,
        plan: Plan,
        emit: Callable[[Span | Mark], None],
        decisions: Mapping[tuple[str, str], Any] | None = None,
    ):
        self.spec = spec
        self.decisions = decisions or {}
        self.plan = plan
        self.emit = emit
        self.now_s = 0.0
        self.heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self.serial = 0
        self.live: set[Program] = set()
        self.wires = Wires(spec.cluster, self, self._departed, self._arrived, spec.seed)
        self.devices = [SimulatedDevice(rank, self) for rank in range(len(spec.cluster.devices))]
        self.fate = Fate(self)

    def run(
        self,
        programs: Programs,
        should_stop: Callable[[], bool] = lambda: False,
        recover: Recover | None = None,
    ) -> None:
        """`programs`: (rank, coroutine). Raises the first `RunError`, `Deadlock` or `Cancelled`.

        A loss that no program caught goes to `recover`, if there is one.
        """
        self.fate.begin(recover is not None)
        self._start(programs)
        try:
            while True:
                try:
                    self._loop(should_stop)
                    return
                except (PeerLost, Joined) as event:
                    if recover is None:
                        raise
                    self._halt()
                    self._start(recover(event))
        finally:
            self._close_programs()
            for device in self.devices:
                self.emit(device.memory_mark(self.now_s))

    def _start(self, programs: Programs) -> None:
        for rank, coroutine in programs:
            if rank in self.fate.dead:
                coroutine.close()
            else:
                self.devices[rank].start(Program(rank, coroutine, self.now_s))
        self.fate.watch()

    def _halt(self) -> None:
        """Abandon all programs and all that is under way; links, weights and what is known stay."""
        self._close_programs()
        self.heap = [event for event in self.heap if event[1] == FATE]
        heapq.heapify(self.heap)
        self.wires.clear()
        for device in self.devices:
            device.halt()

    def _close_programs(self) -> None:
        for program in self.live:
            program.close()
        self.live.clear()

    def _loop(self, should_stop: Callable[[], bool]) -> None:
        events = 0
        source = self.spec.cluster.source_rank
        while self.live or source in self.fate.dead:
            if not self.heap and self.wires.stalled():
                self.schedule(self.now_s + self.spec.silence_s, self.fate.check_reach, FATE)
            elif not self.heap and all(program.rank in self.fate.frozen for program in self.live):
                return  # nobody waits for them
            elif not self.heap and not self.fate.miss():
                raise self._deadlock()
            self.now_s, _, _, action = heapq.heappop(self.heap)
            action()
            events += 1
            if events % EVENTS_BETWEEN_STOP_CHECKS == 0 and should_stop():
                raise Cancelled("The prediction was stopped.", time_s=self.now_s)

    def schedule(self, time_s: float, action: Callable[[], None], priority: int = 0) -> None:
        self.serial += 1
        heapq.heappush(self.heap, (time_s, priority, self.serial, action))

    # programs

    def resume(self, program: Program, handle: Handle | None = None) -> None:
        """Let a program run until it waits again; its error ends the run, unless its parent may catch it."""
        if program not in self.live:
            return
        device = self.devices[program.rank]
        if program.rank in self.fate.frozen:
            device.thawing.append((program, handle))
            return
        if handle is not None:
            device.waited(program, handle)
            program.now_s = max(program.now_s, handle.time_s)
        before, device.current = device.current, program
        ended = program.step()
        device.current = before
        if not ended:
            return
        self.live.discard(program)
        error = program.handle.error
        if isinstance(error, RunError):
            error.device, error.time_s = error.device or device.device.name, self.now_s
        if error is not None and not (isinstance(error, PeerLost) and program.handle.waiters):
            raise error
        self.finish(program.handle, program.handle.value)

    def finish(self, handle: Handle, value: Any) -> None:
        """`handle` is done now; whoever waits for it goes on."""
        handle.done, handle.value, handle.time_s = True, value, self.now_s
        waiters, handle.waiters = handle.waiters, []
        for program in waiters:
            self.resume(program, handle)

    def _deadlock(self) -> RunError:
        blocked = {
            f"{self.devices[program.rank].device.name} for "
            f"{program.waiting_for.what if program.waiting_for else 'nothing'}"
            for program in self.live
        }
        waits = ", ".join(sorted(blocked))
        return Deadlock(f"Deadlock at {self.now_s:.6f} s: every device waits ({waits}).", time_s=self.now_s)

    # messages

    def _departed(self, message: Message) -> None:
        self.devices[message.src].emit(message.span("send", self.spec.cluster, self.now_s))
        self.finish(message.handle, None)

    def _arrived(self, message: Message) -> None:
        device = self.devices[message.dst]
        if message.dst in self.fate.dead or message.src in device.lost:
            return
        device.emit(message.span("recv", self.spec.cluster, self.now_s))
        device.deliver(message.src, message.tag, (message.note, message.tensor), self.now_s)


class SimulatedDevice(Device):
    """A `Ctx` whose verbs schedule events."""

    def __init__(self, rank: int, world: SimulatedWorld):
        super().__init__(rank, world.spec, world.plan, world.emit)
        self.world = world
        self.compute_free_s = 0.0
        self.disk_free_s = 0.0
        self.thawing: list[tuple[Program, Handle | None]] = []

    def start(self, program: Program) -> None:
        self.world.live.add(program)
        self.world.schedule(program.now_s, lambda: self.world.resume(program))

    def halt(self) -> None:
        super().halt()
        self.compute_free_s = self.disk_free_s = self.world.now_s
        self.thawing.clear()

    def take_thawing(self) -> list[tuple[Program, Handle | None]]:
        """Programs that were to go on while the device was frozen."""
        waiting, self.thawing = self.thawing, []
        return waiting

    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        return self.compute_for(op, None, *inputs)

    def compute_for(self, op: Op, result: Tensor | None, *inputs: Tensor) -> Handle:
        """`result`: what the handle will give; its shape unless somebody has computed it."""
        cost, duration_s = self.price(op, inputs)
        start_s = max(self.now_s, self.compute_free_s)
        self.compute_free_s = end_s = start_s + duration_s
        span = Span(self.device.name, "compute", start_s=start_s, end_s=end_s, **self.compute_facts(op, cost))
        return self._later(end_s, cost.output if result is None else result, span, op.name)

    def load(self, piece: Slice) -> Handle:
        return self._disk("load", piece.part, piece.layer, self.ledger.load(piece))

    def store_rows(self, cache: str, layer: int, rows: int) -> Handle:
        return self._disk("store", "kv_rows", layer, self.ledger.store_rows(cache, layer, rows))

    def fetch_rows(self, cache: str, layer: int) -> Handle:
        return self._disk("load", "kv_rows", layer, self.ledger.fetch_rows(cache, layer))

    def _disk(self, kind: SpanKind, name: str, layer: int, size: int) -> Handle:
        start_s = max(self.now_s, self.disk_free_s)
        self.disk_free_s = end_s = start_s + size / self.device.disk_byte_per_s
        span = Span(
            self.device.name,
            kind,
            name,
            layer,
            start_s,
            end_s,
            size,
            request=self.current.request,
            token=self.current.token,
        )
        return self._later(end_s, None, span, kind)

    def _later(self, end_s: float, value: Any, span: Span, what: str) -> Handle:
        handle = Handle(what)

        def end() -> None:
            self.emit(span)
            self.world.finish(handle, value)

        self.world.schedule(end_s, end)
        return handle

    def send(self, tensor: Tensor, dst: int, tag: str, note: Note = ()) -> Handle:
        return self.send_as(tensor, meta_of(tensor), dst, tag, note)

    def send_as(self, tensor: Tensor, arriving: Tensor, dst: int, tag: str, note: Note) -> Handle:
        """`arriving`: what the receiver gets, with the shape of `tensor`."""
        facts = self.message_facts(tensor, tag, note, self.number_message(dst, tag))
        message = Message(self.rank, dst, tag, arriving, note, self.now_s, facts)
        if dst in self.lost:
            message.handle.done, message.handle.time_s = True, self.now_s
        else:
            self.world.wires.post(message)
        return message.handle

    def finish(self, handle: Handle, value: Any, time_s: float) -> None:
        self.world.finish(handle, value)

    def decide(self, name: str, choice: Decision, *inputs: Tensor) -> Any:
        """As the recorded run decided, else as the strategy supposes."""
        known = self.world.decisions.get((self.device.name, name))
        answer = choice.prior(*inputs) if known is None else known
        self.mark("decided", decision=name, answer=answer)
        return answer
