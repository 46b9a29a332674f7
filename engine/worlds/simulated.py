"""The simulated world: the same programs as the real one, on shapes instead of numbers, in virtual time.

A heap of (time, priority, serial, action) is the whole clock; the serial breaks ties, so a run is
deterministic. Compute and disk are FIFO resources of a device, links are shared max-min fair
(`flows.py`), messages of one (src, dst) pair keep their order. A program that nobody will ever resume
ends the run as a deadlock, not as silence.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from engine.errors import Cancelled, Deadlock, PeerLost, RunError
from engine.models.ops import Op
from engine.plan import Plan, Slice
from engine.scenario import Change, DropDevice, SetRate
from engine.spec import RunSpec
from engine.tensors import Meta, Tensor, meta_of
from engine.trace import Mark, Span
from engine.worlds.device import Device, takes_part
from engine.worlds.flows import Flow, SharedLinks
from engine.worlds.paths import sender_cost_s
from engine.worlds.programs import Handle, Program

EVENTS_BETWEEN_STOP_CHECKS = 2000


class SimulatedWorld:
    """Runs `programs` (one per rank) to their end; the trace goes to `emit` in order of happening."""

    def __init__(self, spec: RunSpec, plan: Plan, emit: Callable[[Span | Mark], None]):
        self.spec = spec
        self.plan = plan
        self.emit = emit
        self.now_s = 0.0
        self.heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self.serial = 0
        self.links = SharedLinks(spec.cluster)
        self.links_version = 0
        self.links_dirty = False
        self.connections: dict[tuple[int, int], deque[_Message]] = defaultdict(deque)
        self.routes: dict[tuple[int, int], tuple[tuple[tuple[int, bool], ...], float]] = {}
        self.live: set[Program] = set()
        self.devices = [SimulatedDevice(rank, self) for rank in range(len(spec.cluster.devices))]

    def run(
        self,
        programs: Iterable[tuple[int, Any]],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """`programs`: (rank, coroutine). Raises the first `RunError`, `Deadlock` or `Cancelled`."""
        for rank, coroutine in programs:
            self.devices[rank].start(Program(rank, coroutine, 0.0))
        for change in self.spec.scenario.changes:
            self.schedule(change.at_s, lambda change=change: self._apply(change))  # type: ignore[misc]
        try:
            self._loop(should_stop)
        finally:
            for program in self.live:
                program.close()
            for device in self.devices:
                self.emit(device.memory_mark(self.now_s))

    def _loop(self, should_stop: Callable[[], bool]) -> None:
        events = 0
        while self.live:
            if not self.heap:
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
        """Let a program run until it waits again; its error ends the run."""
        device = self.devices[program.rank]
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
        if error is not None:
            raise error
        self.finish(program.handle, program.handle.value)

    def finish(self, handle: Handle, value: Any) -> None:
        """`handle` is done now; whoever waits for it goes on."""
        handle.done, handle.value, handle.time_s = True, value, self.now_s
        waiters, handle.waiters = handle.waiters, []
        for program in waiters:
            self.resume(program, handle)

    def _deadlock(self) -> RunError:
        stalled = [flow for flow in self.links.flows if flow.rate == 0]
        if stalled:
            link = next(d[0] for d in stalled[0].path if d[0] in self.links.down)
            return self._silent(link)
        waits = ", ".join(sorted({
            f"{self.devices[p.rank].device.name} for {p.waiting_for.what if p.waiting_for else 'nothing'}"
            for p in self.live
        }))
        return Deadlock(f"Deadlock at {self.now_s:.6f} s: every device waits ({waits}).", time_s=self.now_s)

    # messages

    def route(self, src: int, dst: int) -> tuple[tuple[tuple[int, bool], ...], float]:
        """Directed links and total delay from `src` to `dst`."""
        if (src, dst) not in self.routes:
            hops = self.spec.cluster.path(src, dst)
            delay_s = sum(self.spec.cluster.links[hop.link].delay_s for hop in hops)
            self.routes[src, dst] = (tuple((hop.link, hop.forward) for hop in hops), delay_s)
        return self.routes[src, dst]

    def post(self, message: _Message) -> None:
        """Queue a message on its connection; the head of the queue is under way."""
        queue = self.connections[message.src, message.dst]
        queue.append(message)
        if len(queue) == 1:
            self._prepare(message)

    def _prepare(self, message: _Message) -> None:
        """Pay the sender's fixed cost and staging, then enter the links."""
        hold_s = sender_cost_s(self.spec.cluster.devices[message.src], message.size_bytes)
        self.schedule(self.now_s + hold_s, lambda: self._enter_links(message))

    def _enter_links(self, message: _Message) -> None:
        path, _ = self.route(message.src, message.dst)
        self._settle()
        self.links.flows.append(Flow(path, message.size_bytes, lambda: self._departed(message)))
        self._reshare()

    def _departed(self, message: _Message) -> None:
        """The last byte has left: free the connection, deliver after the path's delay."""
        queue = self.connections[message.src, message.dst]
        queue.popleft()
        if queue:
            self._prepare(queue[0])
        self.devices[message.src].emit(message.span("send", self, self.now_s))
        _, delay_s = self.route(message.src, message.dst)
        receiver = self.spec.cluster.devices[message.dst]
        if receiver.staging_byte_per_s:
            delay_s += message.size_bytes / receiver.staging_byte_per_s
        self.schedule(self.now_s + delay_s, lambda: self._arrived(message))
        self.finish(message.handle, None)

    def _arrived(self, message: _Message) -> None:
        device = self.devices[message.dst]
        device.emit(message.span("recv", self, self.now_s))
        waiting = device.deliver(message.src, message.tag, message.tensor, self.now_s)
        if waiting is not None:
            self.finish(waiting, message.tensor)

    # links

    def _settle(self) -> None:
        """Bring every flow to the present; those that are through depart."""
        for flow in self.links.advance(self.now_s):
            flow.on_done()

    def _reshare(self) -> None:
        """Recompute the rates once per instant, after everything else that happens at it."""
        if not self.links_dirty:
            self.links_dirty = True
            self.schedule(self.now_s, self._share, priority=1)

    def _share(self) -> None:
        self.links_dirty = False
        self._settle()
        self.links.share()
        self.links_version += 1
        version, end_s = self.links_version, self.links.next_end_s()
        if end_s is not None:
            self.schedule(max(end_s, self.now_s), lambda: self._flow_ends(version))

    def _flow_ends(self, version: int) -> None:
        if version == self.links_version:
            self._settle()
            self._reshare()

    # changes

    def _apply(self, change: Change) -> None:
        if isinstance(change, DropDevice):
            self._drop(change)
            return
        self._settle()
        link = self.spec.cluster.link_index(change.link)
        facts: dict[str, Any] = {"link": change.link}
        if isinstance(change, SetRate):
            for forward, name in ((True, "forward"), (False, "backward")):
                if change.direction in ("both", name):
                    self.links.capacity[link, forward] = change.bit_per_s
            facts |= {"bit_per_s": change.bit_per_s, "direction": change.direction}
            self.emit(Mark(self.now_s, "link_changed", facts=facts))
        elif change.kind == "link_down":
            self.links.down.add(link)
            self.emit(Mark(self.now_s, "link_down", facts=facts))
            self.schedule(self.now_s + self.spec.silence_s, lambda: self._check_silence(link))
        else:
            self.links.down.discard(link)
            self.emit(Mark(self.now_s, "link_up", facts=facts))
        self._reshare()

    def _drop(self, change: DropDevice) -> None:
        self.emit(Mark(self.now_s, "device_lost", change.device))
        rank = self.spec.cluster.rank(change.device)
        if takes_part(self.spec.cluster, self.plan, rank):
            raise PeerLost(
                f"{change.device} was lost at {self.now_s:.3f} s and holds a part of the plan.",
                change.device, self.now_s,
            )

    def _check_silence(self, link: int) -> None:
        ways = {(link, True), (link, False)}
        if link in self.links.down and any(ways & set(flow.path) for flow in self.links.flows):
            raise self._silent(link)

    def _silent(self, link: int) -> PeerLost:
        name = self.spec.cluster.links[link].name
        return PeerLost(
            f"No data crossed link {name} for {self.spec.silence_s:g} s: it is down.", name, self.now_s
        )


class SimulatedDevice(Device):
    """A `Ctx` whose verbs schedule events."""

    def __init__(self, rank: int, world: SimulatedWorld):
        super().__init__(rank, world.spec, world.plan, world.emit)
        self.world = world
        self.compute_free_s = 0.0
        self.disk_free_s = 0.0

    def start(self, program: Program) -> None:
        self.world.live.add(program)
        self.world.schedule(program.now_s, lambda: self.world.resume(program))

    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        cost, duration_s = self.price(op, inputs)
        start_s = max(self.now_s, self.compute_free_s)
        self.compute_free_s = end_s = start_s + duration_s
        span = Span(self.device.name, "compute", start_s=start_s, end_s=end_s, **self.compute_facts(op, cost))
        return self._later(end_s, cost.output, span, op.name)

    def load(self, piece: Slice) -> Handle:
        size = self.ledger.load(piece)
        start_s = max(self.now_s, self.disk_free_s)
        self.disk_free_s = end_s = start_s + size / self.device.disk_byte_per_s
        span = Span(
            self.device.name, "load", piece.part, piece.layer, start_s, end_s, size,
            request=self.current.request, token=self.current.token,
        )
        return self._later(end_s, None, span, "load")

    def _later(self, end_s: float, value: Any, span: Span, what: str) -> Handle:
        handle = Handle(what)

        def end() -> None:
            self.emit(span)
            self.world.finish(handle, value)

        self.world.schedule(end_s, end)
        return handle

    def send(self, tensor: Tensor, dst: int, tag: str) -> Handle:
        facts = self.message_facts(tensor, tag, self.number_message(dst, tag))
        message = _Message(self.rank, dst, tag, meta_of(tensor), self.now_s, facts)
        self.world.post(message)
        return message.handle

    def recv(self, src: int, tag: str) -> Handle:
        return self.receive(src, tag)

    def decide(self, name: str, fn: Callable[..., Any], *inputs: Tensor) -> Any:
        return fn.prior(*inputs)  # type: ignore[attr-defined]  # a stated prior is part of the contract


class _Message:
    """A tensor's shape on its way."""

    def __init__(self, src: int, dst: int, tag: str, tensor: Meta, sent_s: float, facts: dict[str, Any]):
        self.src, self.dst, self.tag = src, dst, tag
        self.tensor = tensor
        self.sent_s = sent_s
        self.facts = facts
        self.size_bytes: int = facts["bytes"]
        self.handle = Handle(f"send {tag}")

    def span(self, kind: Any, world: SimulatedWorld, end_s: float) -> Span:
        names = (world.spec.cluster.devices[self.src].name, world.spec.cluster.devices[self.dst].name)
        me, peer = names if kind == "send" else names[::-1]
        return Span(me, kind, start_s=self.sent_s, end_s=end_s, peer=peer, **self.facts)
