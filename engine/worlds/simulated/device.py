"""A device of the simulated world: operations, disk accesses and messages take virtual time.

Compute and disk each do one thing at a time, in the order of the calls; messages go over `network.py`.
Programs see shapes in place of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from engine.domain.errors import RunError, WrongProgram
from engine.domain.message_costs import receiver_cost_s, sender_cost_s
from engine.domain.plan import Plan, Slice
from engine.domain.spec import RunSpec
from engine.domain.trace import Span, SpanKind
from engine.ops.cost import hands_over
from engine.ops.layers import Layers
from engine.ops.operation import NOTHING, Op, Share
from engine.ops.tensors import Meta, Tensor, meta_of
from engine.program.ctx import Decision, ManagedMemory, Note
from engine.program.strategy import Step
from engine.worlds.common.device import Device, Emit, Price, Prices
from engine.worlds.common.programs import Handle, Program
from engine.worlds.simulated.cores import Threads
from engine.worlds.simulated.kernel import Operation, SimulationKernel
from engine.worlds.simulated.message import SimulatedMessage
from engine.worlds.simulated.network import SimulatedNetwork
from engine.worlds.simulated.work_done import WorkDone

Decisions = Mapping[tuple[str, str], Any]
"""What a real run decided, by the device's name and the decision's."""


def _nothing(span: None) -> None:
    """Emit no span."""


class Group(NamedTuple):
    """Consecutive layers that cost the same, and their prices."""

    layers: Layers
    prices: Prices


class SimulatedDevice(Device):
    """A `Ctx` whose operations schedule the events that end them.

    `decisions` of a real run replace the defaults that a strategy has for data that does not exist here.
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
        super().__init__(rank, spec, plan, emit)
        self.kernel, self.network, self.decisions = kernel, network, decisions
        self.name = self.device.name
        self.batched = False
        self.num_programs = 0
        self._groups: dict[tuple[Layers, Meta], list[Group]] = {}
        self.threads: Threads | None = None  # on the cores of a host that devices share
        self.work = [NOTHING] * spec.model.num_layers
        self.passes: dict[tuple[Layers, Share | None], int] = {}  # of layers at once, not yet in `work`
        self.work_done: WorkDone | None = None
        self.last_layer = -1
        self.layer_end_s: dict[tuple[int, int], float] = {}  # untraced: of each token in each layer
        self.compute_free_s = 0.0
        self.disk_free_s = 0.0
        self.frozen_since_s: float | None = None
        self.held_back: list[tuple[Program, Handle | None]] = []  # to be resumed when the device thaws

    # programs

    def start(self, program: Program) -> None:
        self.num_programs += 1
        self.kernel.start(program, self)

    def run_program(self, program: Program, handle: Handle | None) -> bool:
        """Run `program` (the kernel's `Host` interface). A frozen device queues it until `thaw`."""
        if self.frozen_since_s is not None:
            self.held_back.append((program, handle))
            return False
        if handle is not None:
            self.waited(program, handle)
            program.now_s = max(program.now_s, handle.time_s)
        before, self.current = self.current, program
        ended = program.step()
        self.current = before
        self.num_programs -= ended
        error = program.handle.error
        if ended and isinstance(error, RunError):
            if isinstance(error, WrongProgram) and not error.device:
                at = f"layer {self.last_layer}" if self.last_layer >= 0 else "before the first layer"
                step = f"request {program.request}, token {program.token}, {at}"
                error.args = (f"{self.name}, {step}: {error}",)
            error.device, error.time_s = error.device or self.device.name, self.kernel.now_s
        return ended

    def freeze(self) -> None:
        """Run no program until `thaw`."""
        self.frozen_since_s = self.kernel.now_s

    def thaw(self) -> None:
        """Resume the programs that were held back, from now on."""
        self.frozen_since_s = None
        held_back, self.held_back = self.held_back, []
        for program, handle in held_back:
            program.now_s = self.kernel.now_s
            self.kernel.resume(program, handle)

    def restart(self) -> None:
        """End the freeze and clear the memory."""
        self.frozen_since_s = None
        self.empty()

    def halt(self) -> None:
        super().halt()
        self.compute_free_s = self.disk_free_s = self.kernel.now_s
        self.held_back.clear()
        if self.threads is not None:
            self.threads.clear()

    # operations and disk

    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        return self.compute_for(op, None, *inputs)

    def compute_for(self, op: Op, result: Tensor | None, *inputs: Tensor) -> Handle:
        """Compute `op`; the handle gets the value `result`, or the result's shape if it was not computed."""
        price, program = self.price(op, inputs), self.current
        if price.share is not NOTHING:
            self._count(op.layer, price.share)
        if self.threads is not None:
            return self._compute_on(self.threads, op, price, price.output if result is None else result)
        start_s = program.now_s if program.now_s > self.compute_free_s else self.compute_free_s
        self.compute_free_s = end_s = start_s + price.duration_s
        name, value = op.name, price.output if result is None else result
        if not self.traced:
            self.layer_end_s[program.token, op.layer] = end_s
            return self._finish_at(end_s, value, None, name)
        span = self._compute_span(op, price, start_s, end_s, program.request, program.token)
        return self._finish_at(end_s, value, span, name)

    def _compute_span(
        self, op: Op, price: Price, start_s: float, end_s: float, request: int, token: int
    ) -> Span:
        return Span(
            device=self.name,
            kind="compute",
            name=op.name,
            layer=op.layer,
            start_s=start_s,
            end_s=end_s,
            bytes=price.bytes,
            flops=price.flops,
            request=request,
            token=token,
        )

    def _count(self, layer: int, share: Share | None) -> None:
        """Count what an operation computes of its layer."""
        self.last_layer = layer
        if share is not None:
            attention, ffn = self.work[layer]
            self.work[layer] = attention + share[0], ffn + share[1]
        elif self.work_done is not None:
            self.work_done.knows_all = False

    def _released(self, cache: str) -> None:
        if self.work_done is not None:
            self.work_done.released(cache, self)
        super()._released(cache)

    def work_so_far(self) -> list[Share]:
        """What this device has computed of each layer."""
        passes, self.passes = self.passes, {}
        for (layers, share), times in passes.items():
            counted = None if share is None else (share[0] * times, share[1] * times)
            for op in layers.ops:
                self._count(op.layer, counted)
        return self.work

    def result_came(self, step: Step) -> None:
        if self.work_done is not None:
            self.work_done.check(step, self.name)

    async def compute_layers(self, layers: Layers, x: Tensor) -> Tensor:
        """Compute all layers: as one operation of the kernel in a batched world, if no other program of the
        device could compute meanwhile.
        """
        if not self.batched or self.num_programs > 1 or len(layers.ops) < 2:
            return await super().compute_layers(layers, x)
        return await self._batch(layers, x)

    def _batch(self, layers: Layers, x: Meta) -> Handle:
        """Start all operations of `layers`; their spans are emitted when the last one ends."""
        groups = self._groups.get((layers, x))
        if groups is None:
            groups = self._groups_of(layers, (x,))
            if not layers.is_ragged:  # whose sequences are those of one step
                self._groups[layers, x] = groups
        program, spans = self.current, []
        request, token = program.request, program.token
        at_s = max(program.now_s, self.compute_free_s)
        for group in groups:
            prices = self._enter_group(group, (x,))
            if layers.is_ragged:
                for op in group.layers.ops:
                    self._count(op.layer, prices[0].share)
            else:
                passed = group.layers, prices[0].share
                self.passes[passed] = self.passes.get(passed, 0) + 1
            for op, price in zip(group.layers.ops, prices, strict=True):
                start_s, at_s = at_s, at_s + price.duration_s
                if not self.traced:
                    self.layer_end_s[token, op.layer] = at_s
                    continue
                spans.append(self._compute_span(op, price, start_s, at_s, request, token))
        self.compute_free_s = at_s
        operation = Operation(self.kernel, self, "layers", at_s, x, self._emit_all, spans)
        self.kernel.begin(operation)
        return operation

    def _groups_of(self, layers: Layers, metas: tuple[Meta, ...]) -> list[Group]:
        """`layers` in groups of consecutive ones that cost the same."""
        of_ops = [(op, self.prices_of(op, metas)) for op in layers.ops]
        alike = groupby(of_ops, key=lambda one: id(one[1]))
        return [
            Group(Layers(tuple(op for op, _ in group)), group[0][1])
            for group in (list(found) for _, found in alike)
        ]

    def _enter_group(self, group: Group, metas: tuple[Meta, ...]) -> Sequence[Price]:
        """The prices of the operations of `group`. Enters all in the memory ledger."""
        ops = group.layers.ops
        rows = None if group.layers.is_ragged else self.ledger.rows_of_all(group.layers)
        if rows is None:
            return [self.enter(op, metas, group.prices) for op in ops]
        price = self.price_at(ops[0], metas, group.prices, rows)
        self.ledger.enter_all(group.layers, price.working_bytes, price.kv_rows, price.kv_bytes)
        return (price,) * len(ops)

    def _emit_all(self, spans: Sequence[Span]) -> None:
        for span in spans:
            self.emit(span)

    def _compute_on(self, threads: Threads, op: Op, price: Price, result: Tensor) -> Handle:
        """`compute_for` on cores that devices share: when the operation ends depends on the others."""
        handle, request, token = Handle(op.name), self.current.request, self.current.token

        def end(start_s: float) -> None:
            self.emit(self._compute_span(op, price, start_s, self.kernel.now_s, request, token))
            self.kernel.finish(handle, result)

        threads.for_operation(hands_over(price.flops, paced=False)).run(price.duration_s, end)
        return handle

    def finish_at(self, handle: Handle, time_s: float) -> None:
        self.kernel.schedule(time_s, lambda: self.kernel.finish(handle, None))

    def occupy(self, duration_s: float) -> None:
        if duration_s and self.threads is not None:
            self.threads.main.run(duration_s, lambda start_s: None)
        elif duration_s:
            self.compute_free_s = max(self.now_s, self.compute_free_s) + duration_s

    def load(self, piece: Slice) -> Handle:
        return self._use_disk("load", piece.part, piece.layer, self.ledger.load(piece))

    @property
    def managed_memory(self) -> ManagedMemory:
        return self

    def store_rows(self, cache: str, layer: int, rows: int) -> Handle:
        return self._use_disk("store", "kv_rows", layer, self.ledger.store_rows(cache, layer, rows))

    def fetch_rows(self, cache: str, layer: int) -> Handle:
        return self._use_disk("load", "kv_rows", layer, self.ledger.fetch_rows(cache, layer))

    def _use_disk(self, kind: SpanKind, name: str, layer: int, size_bytes: int) -> Handle:
        start_s = max(self.now_s, self.disk_free_s)
        self.disk_free_s = end_s = start_s + size_bytes / self.device.disk_byte_per_s
        program = self.current
        if not self.traced:
            return self._finish_at(end_s, None, None, kind)
        request, token = program.request, program.token
        span = Span(self.name, kind, name, layer, start_s, end_s, size_bytes, request=request, token=token)
        return self._finish_at(end_s, None, span, kind)

    def _finish_at(self, end_s: float, value: Any, span: Span | None, what: str) -> Handle:
        emit = self.emit if self.traced else _nothing
        operation = Operation(self.kernel, self, what, end_s, value, emit, span)
        self.kernel.begin(operation)
        return operation

    def finish(self, handle: Handle, value: Any, time_s: float) -> None:
        self.kernel.finish(handle, value)

    # messages and decisions

    def send(self, tensor: Tensor, dst: int, tag: str, note: Note = ()) -> Handle:
        return self.send_as(tensor, meta_of(tensor), dst, tag, note)

    def send_as(self, tensor: Tensor, arriving: Tensor, dst: int, tag: str, note: Note) -> Handle:
        """The receiver gets `arriving`, which has the shape of `tensor`."""
        number, sequence = self.number_message(dst, tag)
        facts = self.message_facts(tensor, tag, note, number)
        message = SimulatedMessage(self.rank, dst, tag, sequence, arriving, note, self.now_s, facts)
        if dst in self.failed:
            message.handle.done, message.handle.time_s = True, self.now_s
        elif self.threads is not None:
            cost_s = self._work_frac * sender_cost_s(self.device, message.size_bytes)
            self.threads.main.run(cost_s, lambda start_s: self._send_on_host(message))
        else:
            self.network.send(message)
        return message.handle

    def _send_on_host(self, message: SimulatedMessage) -> None:
        assert self.threads is not None, "a device of a host has threads"
        self.threads.carry(message.size_bytes)
        self.network.send(message)

    @property
    def _work_frac(self) -> float:
        """The share of a message's costs at an end for which the device's thread works on it."""
        return 1.0 - self.network.waiting_frac

    def receive(self, message: SimulatedMessage, use: Callable[[], None]) -> None:
        """`use` a message that has arrived, on shared cores when the main thread has read it."""
        if self.threads is not None:
            cost_s = self._work_frac * receiver_cost_s(self.device, message.size_bytes)
            self.threads.receive(cost_s, lambda start_s: use())
        else:
            use()

    def decide(self, name: str, choice: Decision, *inputs: Tensor) -> Any:
        """The decision of the recorded run, or `choice.prior`."""
        known = self.decisions.get((self.device.name, name))
        answer = choice.prior(*inputs) if known is None else known
        self.mark("decided", decision=name, answer=answer)
        return answer
