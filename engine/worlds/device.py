"""What a device does alike in both worlds: its ledger, its costs, its mailbox, its spans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from typing import Any

from engine.cluster import ClusterSpec
from engine.cost import op_time_s, total_bytes, total_flops
from engine.errors import PlanError
from engine.frames import FRAME_HEADER_BYTES
from engine.memory import Ledger
from engine.models.ops import Cost, Op
from engine.plan import Plan, Slice
from engine.spec import RunSpec
from engine.tensors import Meta, Tensor, meta_of, payload_bytes
from engine.trace import Mark, Span
from engine.worlds.programs import Handle, Program

Emit = Callable[[Span | Mark], None]
Mailbox = dict[tuple[int, str], deque[Any]]


class Device(ABC):
    """The shared half of a `Ctx`. A world adds what happens when time passes.

    `current` is the program that is running right now; verbs act on its behalf and in its time.
    """

    def __init__(self, rank: int, spec: RunSpec, plan: Plan, emit: Emit):
        self.rank = rank
        self.spec = spec
        self.cluster = spec.cluster
        self.world_size = len(spec.cluster.devices)
        self.device = spec.cluster.devices[rank]
        self.model = spec.model
        self.emit = emit
        self.ledger = Ledger(self.device.name, self.device.memory_bytes, spec.model)
        self.current = Program(rank, None, 0.0)
        self.message_numbers: dict[int, int] = defaultdict(int)
        self.prices: dict[tuple[Op, tuple[Meta, ...], int], tuple[Cost, float]] = {}
        self.arrived: Mailbox = defaultdict(deque)
        self.expected: dict[tuple[int, str], deque[Handle]] = defaultdict(deque)
        for piece in plan.held_by(rank):
            self.ledger.load(piece)

    @property
    def now_s(self) -> float:
        return self.current.now_s

    def at(self, request: int, token: int) -> None:
        self.current.request, self.current.token = request, token
        self.emit(self.memory_mark(self.now_s))

    def spawn(self, program: Coroutine[Any, Any, Any]) -> Handle:
        child = Program(self.rank, program, self.now_s)
        child.request, child.token = self.current.request, self.current.token
        self.start(child)
        return child.handle

    @abstractmethod
    def start(self, program: Program) -> None:
        """Let `program` run, now or as soon as its time comes."""

    def mark(self, name: str, **facts: Any) -> None:
        self.emit(Mark(self.now_s, name, self.device.name, facts))

    def release(self, cache: str) -> None:
        self.ledger.release(cache)

    def evict(self, piece: Slice) -> None:
        self.ledger.evict(piece)
        self.span("evict", piece.part, piece.layer, self.now_s, self.now_s)

    def price(self, op: Op, inputs: tuple[Tensor, ...]) -> tuple[Cost, float]:
        """Cost of `op` now and its virtual seconds on this device; the ledger has taken it in."""
        metas = tuple(meta_of(x) for x in inputs)
        key = (op, metas, self.ledger.rows(op))
        if key not in self.prices:
            cost = op.cost(self.model, metas, key[2])
            duration_s = op_time_s(self.device, cost.kernels, self.spec.profile, self.spec.compute_model)
            self.prices[key] = cost, duration_s
        cost, duration_s = self.prices[key]
        self.ledger.run(op, metas, cost)
        return cost, duration_s

    def number_message(self, dst: int, tag: str) -> int:
        """The next message number of the pair (self, dst)."""
        if dst == self.rank or not 0 <= dst < self.world_size:
            raise PlanError(f"{self.device.name} sends {tag!r} to rank {dst}: name another device's rank.")
        self.message_numbers[dst] += 1
        return self.message_numbers[dst] - 1

    def receive(self, src: int, tag: str) -> Handle:
        """A handle for the next message with `tag` from `src`, arrived or not."""
        handle = Handle(f"recv {tag} from {self.cluster.devices[src].name}")
        queue = self.arrived[src, tag]
        if queue:
            handle.value, handle.time_s = queue.popleft()
            handle.done = True
        else:
            self.expected[src, tag].append(handle)
        return handle

    def deliver(self, src: int, tag: str, tensor: Tensor, time_s: float) -> Handle | None:
        """A message is usable from `time_s`; returns the handle that waited for it, if any."""
        waiting = self.expected[src, tag]
        if waiting:
            return waiting.popleft()
        self.arrived[src, tag].append((tensor, time_s))
        return None

    def span(self, kind: Any, name: str, layer: int, start_s: float, end_s: float, **more: Any) -> None:
        """Emit a span on behalf of the running program."""
        more.setdefault("request", self.current.request)
        more.setdefault("token", self.current.token)
        self.emit(Span(self.device.name, kind, name, layer, start_s, end_s, **more))

    def compute_facts(self, op: Op, cost: Cost) -> dict[str, Any]:
        """The fields of a compute span that both worlds must agree on."""
        return {
            "name": op.name, "layer": op.layer, "bytes": total_bytes(cost.kernels),
            "flops": total_flops(cost.kernels), "request": self.current.request, "token": self.current.token,
        }

    def message_facts(self, tensor: Tensor, tag: str, message: int) -> dict[str, Any]:
        """The fields of a send span that both worlds must agree on."""
        payload = payload_bytes(tensor)
        return {
            "name": tag, "layer": layer_of(tag), "payload_bytes": payload,
            "bytes": payload + FRAME_HEADER_BYTES, "message": message,
            "request": self.current.request, "token": self.current.token,
        }

    def waited(self, program: Program, handle: Handle) -> None:
        """Emit the wait span of a program that was blocked on a message."""
        if handle.what.startswith("recv") and handle.time_s > program.waiting_since_s:
            self.emit(Span(
                self.device.name, "wait", handle.what, -1, program.waiting_since_s, handle.time_s,
                request=program.request, token=program.token,
            ))

    def memory_mark(self, time_s: float) -> Mark:
        facts = {
            "resident_bytes": self.ledger.resident_bytes, "peak_bytes": self.ledger.peak_bytes,
            "weights_bytes": self.ledger.weights_bytes, "kv_bytes": self.ledger.kv_bytes,
        }
        return Mark(time_s, "memory", self.device.name, facts)


def takes_part(cluster: ClusterSpec, plan: Plan, rank: int) -> bool:
    """Whether a run of `plan` needs device `rank`."""
    return rank == cluster.source_rank or any(holding.device == rank for holding in plan.holdings)


def layer_of(tag: str) -> int:
    """Tags that belong to a layer start with `L<number>.`; others have layer -1."""
    head = tag.partition(".")[0]
    return int(head[1:]) if head[:1] == "L" and head[1:].isdigit() else -1
