"""The part of a device that both worlds share: memory ledger, costs, mailbox, spans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.conditions import Conditions, absent_at_start
from engine.domain.errors import PeerFailed, PlanError, RunError
from engine.domain.plan import Plan, Slice, covers
from engine.domain.scenario import Change, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.ops.cost import KernelTime, op_time, runtime_s
from engine.ops.layers import Layers
from engine.ops.ledger import Ledger, working_bytes
from engine.ops.operation import Cost, Op, Share, alike_in_cost, costs_of, share_of
from engine.ops.ragged import Ragged
from engine.ops.shapes import check_shapes
from engine.ops.tensors import Meta, Tensor, meta_of, payload_bytes
from engine.program.ctx import Note
from engine.program.frames import framed_bytes
from engine.program.strategy import Step
from engine.worlds.common.programs import Handle, Program

Emit = Callable[[Span | Mark], None]
Message = tuple[Note, Tensor]
Mailbox = dict[tuple[int, str], deque[tuple[Message, float]]]
Sequences = dict[tuple[int, str], Iterator[int]]


class Receipt(Handle):
    """Waits for a message; its value is the tensor, or `(note, tensor)` if `noted`."""

    __slots__ = ("noted", "peer", "tag")

    def __init__(self, tag: str, peer: str, noted: bool):
        super().__init__("recv")
        self.tag, self.peer, self.noted = tag, peer, noted

    def name(self) -> str:
        return f"recv {self.tag} from {self.peer}"

    def wanted(self, message: Message) -> Any:
        return message if self.noted else message[1]


class Price(NamedTuple):
    """What an operation costs on one device now, from its shapes alone: the same on all layers of a kind.

    `bytes` and `flops` are those of its kernels; `working_bytes` are its inputs, its output and its scratch,
    `share` what it computes of its layer.
    """

    duration_s: float
    output: Meta
    bytes: int
    flops: int
    working_bytes: int
    kv_rows: int
    kv_bytes: int
    share: Share | None


OnShapes = tuple[Op, tuple[Meta, ...]]


class Prices:
    """The known prices of an operation and all alike on inputs of the same shapes, by the number of rows in
    its KV cache; its cost by that number, and the times of the kernels of the last price.
    """

    __slots__ = ("by_rows", "cost", "kernels")

    def __init__(self, cost: Callable[[int], Cost]):
        self.by_rows: dict[int, Price] = {}
        self.cost = cost
        self.kernels: list[KernelTime] = []


class Device(ABC):
    """The shared part of a `Ctx` (`engine/program/ctx.py`). Each world adds how time passes.

    `current` is the program that is running right now: methods act for it, at its time.
    """

    def __init__(self, rank: int, spec: RunSpec, plan: Plan, emit: Emit):
        self.rank = rank
        self.spec = spec
        self.cluster = spec.cluster
        self.world_size = len(spec.cluster.devices)
        self.device = spec.cluster.devices[rank]
        self.model = spec.model
        self.memory: dict[str, Any] = {}
        self.conditions = Conditions(spec.cluster, absent_at_start(spec.cluster, spec.scenario))
        self.emit = emit
        self.traced = True
        self.ledger = Ledger(
            self.device.name, self.device.usable_bytes, spec.model, self.device.on_chip_weight_bytes
        )
        self.current = Program(rank, None, 0.0)
        self.message_numbers: dict[int, int] = defaultdict(int)
        self.sequences: Sequences = defaultdict(count)  # of messages to send, by receiver and tag
        self.due_sequences: Sequences = defaultdict(count)  # of messages to come, by sender and tag
        self.prices: dict[OnShapes, Prices] = {}  # of one operation for all alike
        self._prices_of: dict[OnShapes, Prices] = {}
        self._of_step: tuple[Ragged | None, dict[OnShapes, Prices]] = (None, {})
        self.arrived: Mailbox = defaultdict(deque)
        self.expected: dict[tuple[int, str], deque[Receipt]] = defaultdict(deque)
        for piece in plan.held_by(rank):
            self.ledger.load(piece)

    @property
    def now_s(self) -> float:
        return self.current.now_s

    @property
    def cluster_now(self) -> ClusterSpec:
        return self.conditions.cluster

    @property
    def failed(self) -> frozenset[int]:
        return self.conditions.failed

    def change(self, change: Change) -> None:
        """Take a change of a link or of a device's speed into account."""
        self.conditions.apply(change)
        if isinstance(change, SlowDevice):
            self.use_prices({}, {})

    def use_prices(self, alike: dict[OnShapes, Prices], each: dict[OnShapes, Prices]) -> None:
        """Use, and add to, prices that other devices of this kind know, of operations that are alike and of
        each.
        """
        self.prices, self._prices_of = alike, each
        self._of_step = (None, {})

    def halt(self) -> None:
        """Drop the messages and KV caches of all programs; weights stay."""
        self.arrived.clear()
        self.expected.clear()
        self.sequences.clear()
        self.due_sequences.clear()
        self.ledger.release_all()

    def empty(self) -> None:
        """Clear the memory, as a restart does: weights, KV caches, and what the strategy has kept."""
        self.halt()
        self.memory.clear()
        self.ledger.empty()

    def adopt(self, plan: Plan) -> tuple[Slice, ...]:
        """Evict all weights that `plan` does not use here; return the slices that it must load.

        What it uses of a larger slice is kept and the rest of that slice goes: planners count no surplus.
        """
        needed, resident = plan.held_by(self.rank), list(self.ledger.resident)
        kept = [
            need
            for need in needed
            if need not in resident and not need.bits and any(covers(have, need) for have in resident)
        ]
        for piece in kept:
            self.cut_out(piece)
        for have in resident:
            if have not in needed:
                self.evict(have)
        for piece in kept:
            self.ledger.load(piece)
        return tuple(need for need in needed if need not in self.ledger.resident)

    def cut_out(self, piece: Slice) -> None:  # noqa: B027  (nothing, on shapes)
        """Copy `piece` out of a larger slice that is in memory, into memory of its own."""

    def fail_waiting(self, rank: int, time_s: float) -> None:
        """Raise `PeerFailed` in the programs that wait for device `rank`, which has failed."""
        waiting = [queue for (src, _), queue in self.expected.items() if src == rank]
        for queue in waiting:
            while queue:
                self.fail(queue.popleft(), self._peer_failed(rank, time_s), time_s)

    def _peer_failed(self, rank: int, time_s: float) -> PeerFailed:
        name = self.cluster.devices[rank].name
        sentence = f"{name} failed while {self.device.name} needed it, at {time_s:.3f} s."
        return PeerFailed(sentence, name, time_s)

    def at(self, request: int, token: int) -> None:
        self.current.request, self.current.token = request, token
        if self.traced:
            self.emit(self.memory_mark(self.now_s))

    def spawn(self, program: Coroutine[Any, Any, Any]) -> Handle:
        child = Program(self.rank, program, self.now_s)
        child.request, child.token = self.current.request, self.current.token
        self.start(child)
        return child.handle

    def until(self, time_s: float) -> Handle:
        handle = Handle("a request")
        if time_s <= self.now_s:
            handle.done, handle.time_s = True, self.now_s
        else:
            self.finish_at(handle, time_s)
        return handle

    @abstractmethod
    def finish_at(self, handle: Handle, time_s: float) -> None:
        """End `handle` at virtual time `time_s`, which is later than now."""

    @abstractmethod
    def occupy(self, duration_s: float) -> None:
        """Keep the compute resource busy for so many virtual seconds, after what it has to do already."""

    @abstractmethod
    def start(self, program: Program) -> None:
        """Start `program`, now or when its time has come."""

    def mark(self, name: str, **facts: Any) -> None:
        self.emit(Mark(self.now_s, name, self.device.name, facts))

    def result_came(self, step: Step) -> None:  # noqa: B027  (what was computed is compared at the end)
        """Take note, at the source, of the result of `step`."""

    def keep_logits(self, requests: Sequence[int], index: int, start: int, logits: Tensor) -> None:  # noqa: B027
        """Do nothing, as shapes prove nothing; devices with tensors override this."""

    def reserve(self, name: str, size_bytes: int) -> None:
        self.ledger.reserve(name, size_bytes)

    def release(self, cache: str) -> None:
        self.record(self._released, cache)

    def _released(self, cache: str) -> None:
        self.ledger.release(cache)

    def drop_rows(self, cache: str, layer: int) -> None:
        self._evict_rows(cache, layer, self.ledger.drop_rows(cache, layer))

    def _evict_rows(self, cache: str, layer: int, rows: int) -> None:  # noqa: B027  (nothing, on shapes)
        """Remove the oldest `rows` rows from memory; nothing to do where only shapes are simulated."""

    def evict(self, piece: Slice) -> None:
        self.ledger.evict(piece)
        program = self.current
        at_s, request, token = program.now_s, program.request, program.token
        name, part, layer = self.device.name, piece.part, piece.layer
        self.emit(Span(name, "evict", part, layer, at_s, at_s, request=request, token=token))

    def holds(self, piece: Slice) -> bool:
        return piece in self.ledger.resident

    @abstractmethod
    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        """Start `op` on the compute resource."""

    async def compute_layers(self, layers: Layers, x: Tensor) -> Tensor:
        for op in layers.ops:
            x = await self.compute(op, x)
        return x

    def price(self, op: Op, inputs: tuple[Tensor, ...]) -> Price:
        """The cost of `op` and its virtual seconds on this device now. Enters `op` in the memory ledger."""
        metas = tuple([x if type(x) is Meta else meta_of(x) for x in inputs])
        if isinstance(op.cache, Ragged):
            return self.enter(op, metas, self.prices_of(op, metas))
        prices = self._prices_of.get((op, metas))
        if prices is None:
            prices = self._prices_of[op, metas] = self.prices_of(op, metas)
        return self.enter(op, metas, prices)

    def prices_of(self, op: Op, metas: tuple[Meta, ...]) -> Prices:
        """The known prices of `op` and all that are alike on inputs of these shapes."""
        check_shapes(op, self.model, metas, self.device.name)
        key = alike_in_cost(op, self.model), metas
        known = self._known(op.cache) if isinstance(op.cache, Ragged) else self.prices
        prices = known.get(key)
        if prices is None:
            prices = known[key] = Prices(costs_of(key[0], self.model, metas))
        return prices

    def _known(self, ragged: Ragged) -> dict[OnShapes, Prices]:
        """The prices of a ragged batch, kept for the layers of one step: no other step has the same rows."""
        if self._of_step[0] != ragged:
            self._of_step = ragged, {}
        return self._of_step[1]

    def enter(self, op: Op, metas: tuple[Meta, ...], prices: Prices) -> Price:
        """The price of `op` with the rows in its KV cache now. Enters `op` in the memory ledger."""
        price = self.price_at(op, metas, prices, self.ledger.rows(op) if op.cache else 0)
        self.ledger.enter(op, price.working_bytes, price.kv_rows, price.kv_bytes)
        return price

    def price_at(self, op: Op, metas: tuple[Meta, ...], prices: Prices, rows: int) -> Price:
        """The price of `op` with so many rows in its KV cache."""
        price = prices.by_rows.get(rows)
        if price is None:
            price = prices.by_rows[rows] = self._priced(op, metas, prices, rows)
        return price

    def _priced(self, op: Op, metas: tuple[Meta, ...], prices: Prices, rows: int) -> Price:
        try:
            cost = prices.cost(rows)
        except PlanError:
            cost = op.cost(self.model, metas, rows)  # its sentence names the layer
        device = self.cluster_now.devices[self.rank].for_family(self.model.family)
        time_s, flops, moved = op_time(
            device, cost.kernels, self.spec.profile, self.spec.compute_model, prices.kernels
        )
        return Price(
            duration_s=time_s / cost.speed + runtime_s(device, flops),
            output=cost.output,
            bytes=moved,
            flops=flops,
            working_bytes=working_bytes(metas, cost),
            kv_rows=cost.kv_rows,
            kv_bytes=cost.kv_bytes,
            share=share_of(op, self.model, metas),
        )

    def number_message(self, dst: int, tag: str) -> tuple[int, int]:
        """The next message number of the pair (self, dst), and the next sequence number of `tag` on it."""
        if dst == self.rank or not 0 <= dst < self.world_size:
            raise PlanError(f"{self.device.name} sends {tag!r} to rank {dst}: name another device's rank.")
        self.message_numbers[dst] += 1
        return self.message_numbers[dst] - 1, next(self.sequences[dst, tag])

    def recv(self, src: int, tag: str) -> Handle:
        return self._receive(src, tag, noted=False)

    def recv_noted(self, src: int, tag: str) -> Handle:
        return self._receive(src, tag, noted=True)

    def _receive(self, src: int, tag: str, noted: bool) -> Handle:
        """A handle for the next message with `tag` from `src`, arrived or not."""
        handle = self._receipt(src, tag, noted)
        queue = self.arrived[src, tag]
        if queue:
            message, time_s = queue.popleft()
            handle.done, handle.value, handle.time_s = True, handle.wanted(message), time_s
        elif src in self.failed:
            handle.done, handle.time_s = True, self.now_s
            handle.error = self._peer_failed(src, self.now_s)
        else:
            self.expected[src, tag].append(handle)
        return handle

    def _receipt(self, src: int, tag: str, noted: bool) -> Receipt:
        return Receipt(tag, self.cluster.devices[src].name, noted)

    def deliver(self, src: int, tag: str, sequence: int, message: Message, time_s: float) -> None:
        """Give a message that is usable from `time_s` to the program that waits for it, or keep it.

        Raises `RunError` if it is not the next of its sender and tag: results would be wrong without a trace.
        """
        due = next(self.due_sequences[src, tag])
        if sequence != due:
            peer, me = self.cluster.devices[src].name, self.device.name
            raise RunError(
                f"{me} got message {sequence} of {tag!r} from {peer} at {time_s:.3f} s, where message {due} "
                "is next: EdgeLoom has lost messages or changed their order, which is a fault of EdgeLoom; "
                "report it with this run's spec.",
                me,
                time_s,
            )
        waiting = self.expected[src, tag]
        if waiting:
            handle = waiting.popleft()
            self.finish(handle, handle.wanted(message), time_s)
        else:
            self.arrived[src, tag].append((message, time_s))

    @abstractmethod
    def finish(self, handle: Handle, value: Any, time_s: float) -> None:
        """Resume the programs that wait for `handle`, which was done at `time_s`."""

    def fail(self, handle: Handle, error: RunError, time_s: float) -> None:
        """Raise `error` in the programs that wait for `handle`, which will never be done."""
        handle.error = error
        self.finish(handle, None, time_s)

    def span(self, kind: Any, name: str, layer: int, start_s: float, end_s: float, **more: Any) -> None:
        """Emit a span on behalf of the running program."""
        more.setdefault("request", self.current.request)
        more.setdefault("token", self.current.token)
        self.emit(Span(self.device.name, kind, name, layer, start_s, end_s, **more))

    def compute_facts(self, op: Op, price: Price) -> dict[str, Any]:
        """The fields of a compute span that must be equal in both worlds."""
        return {
            "name": op.name,
            "layer": op.layer,
            "bytes": price.bytes,
            "flops": price.flops,
            "request": self.current.request,
            "token": self.current.token,
        }

    def message_facts(self, tensor: Tensor, tag: str, note: Note, message: int) -> dict[str, Any]:
        """The fields of a send span that must be equal in both worlds."""
        payload = payload_bytes(tensor)
        return {
            "name": tag,
            "layer": layer_of(tag),
            "payload_bytes": payload,
            "bytes": framed_bytes(payload, len(note)),
            "message": message,
            "request": self.current.request,
            "token": self.current.token,
        }

    def waited(self, program: Program, handle: Handle) -> None:
        """Emit the wait span of a program that was blocked on a message."""
        since_s = program.waiting_since_s
        if self.traced and isinstance(handle, Receipt) and handle.time_s > since_s:
            self.record(self._waited, handle, since_s, program.request, program.token)

    def _waited(self, handle: Receipt, since_s: float, request: int, token: int) -> None:
        name, until_s = handle.name(), handle.time_s
        self.emit(Span(self.device.name, "wait", name, -1, since_s, until_s, request=request, token=token))

    def record(self, entry: Callable[..., None], *facts: Any) -> None:
        """Write something into the trace or the ledger, by calling `entry(*facts)` now or later."""
        entry(*facts)

    def memory_mark(self, time_s: float) -> Mark:
        facts = {
            "resident_bytes": self.ledger.resident_bytes,
            "peak_bytes": self.ledger.peak_bytes,
            "weights_bytes": self.ledger.weights_bytes,
            "kv_bytes": self.ledger.kv_bytes,
        }
        return Mark(time_s, "memory", self.device.name, facts)


def takes_part(cluster: ClusterSpec, plan: Plan, rank: int) -> bool:
    """Whether a run of `plan` needs device `rank`."""
    return rank == cluster.source_rank or any(holding.device == rank for holding in plan.holdings)


@lru_cache(maxsize=65536)
def layer_of(tag: str) -> int:
    """The layer of a tag, which starts with `L<number>.`; -1 for others."""
    head = tag.partition(".")[0]
    return int(head[1:]) if head[:1] == "L" and head[1:].isdigit() else -1
