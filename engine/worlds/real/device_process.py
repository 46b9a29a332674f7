"""The life of one device process, from the fork to its end. Its parent is `engine/launch.py`.

Control and trace go over a Unix socket pair that works across network namespaces; tensors go over the
network that the run is about. Messages are JSON lines.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.domain.errors import EdgeLoomError, RunError
from engine.domain.events import to_json
from engine.domain.network import Network
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request

if TYPE_CHECKING:
    from engine.worlds.real.device import RealDevice

FLUSH_S = 0.025
CONNECT_CHECK_S = 0.05
PR_SET_PDEATHSIG = 1


class Assignment(NamedTuple):
    """What every device process is told, by inheritance from its parent."""

    spec: RunSpec
    plan: Plan
    requests: tuple[Request, ...]
    network: Network
    paced: bool
    results: Path


class Control(threading.Thread):
    """The child's end of its control socket. A parent that is gone ends this process."""

    def __init__(self, sock: socket.socket):
        super().__init__(name="control", daemon=True)
        self.sock = sock
        self.lock = threading.Lock()
        self.heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.on_message: Callable[[], None] = lambda: None
        self.start()

    def run(self) -> None:
        with self.sock.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                message = json.loads(line)
                if message["type"] == "ping":
                    self.tell({"type": "pong"})
                    continue
                self.heard.put(message)
                self.on_message()
        os._exit(1)

    def tell(self, message: dict[str, Any]) -> None:
        data = (json.dumps(message) + "\n").encode()
        with self.lock:
            self.sock.sendall(data)

    def hear(self, expected: str) -> dict[str, Any]:
        """The parent's next message."""
        message = self.heard.get()
        if message["type"] != expected:
            raise EdgeLoomError(f"a device process expected {expected!r}, got {message['type']!r}.")
        return message

    def poll(self) -> dict[str, Any] | None:
        """The parent's next message if it is there already."""
        return None if self.heard.empty() else self.heard.get()


class TraceWriter(threading.Thread):
    """Sends the trace to the parent in batches, so that tracing costs the run little."""

    def __init__(self, control: Control):
        super().__init__(name="trace", daemon=True)
        self.control = control
        self.buffer: deque[Span | Mark] = deque()
        self.flushing = threading.Lock()
        self.start()

    def run(self) -> None:
        while True:
            time.sleep(FLUSH_S)  # the period of a batch, not a wait for a condition
            self.flush()

    def flush(self) -> None:
        """All that was emitted is on its way when this returns, whichever thread sends it."""
        with self.flushing:
            batch = [self.buffer.popleft() for _ in range(len(self.buffer))]
            if batch:
                with contextlib.suppress(OSError):  # the parent is gone, and so is the run
                    self.control.tell({"type": "trace", "items": to_json(batch)})

    def emit(self, item: Span | Mark) -> None:
        self.buffer.append(item)


def device_process(rank: int, assignment: Assignment, sock: socket.socket) -> None:
    """Be device `rank` until the parent says exit. Never returns."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    control = Control(sock)
    status = 0
    try:
        _live(rank, assignment, control)
    except RunError as error:
        control.tell(
            {
                "type": "error",
                "kind": type(error).__name__,
                "message": str(error),
                "device": error.device,
                "time_s": error.time_s,
            }
        )
        status = 3
    except Exception as error:  # the parent turns it into the run's outcome; the log gets the details
        sys.excepthook(type(error), error, error.__traceback__)
        control.tell({"type": "error", "kind": "failed", "message": f"{type(error).__name__}: {error}"})
        status = 1
    while status and control.heard.get()["type"] != "exit":
        continue  # stay until told to exit, so that peers do not see a lost device
    sys.stderr.flush()
    os._exit(status)


def _live(rank: int, assignment: Assignment, control: Control) -> None:
    """Come up, then do what the parent says until it says exit."""
    import torch

    from engine.models.weights.store import WeightStore
    from engine.worlds.real.connections import Connections
    from engine.worlds.real.device import RealDevice

    spec, plan, network = assignment.spec, assignment.plan, assignment.network
    network.enter(rank)
    torch.set_num_threads(1)
    sys.setswitchinterval(5e-4)
    trace = TraceWriter(control)
    weights = WeightStore(spec.model, spec.weights, spec.seed, assignment.results)
    held = frozenset(link for link in range(len(spec.cluster.links)) if network.holds_delay(link))
    connections = Connections(rank, network.address(rank))
    control.on_message = connections.wake
    device = RealDevice(
        rank,
        spec,
        plan,
        trace.emit,
        weights,
        assignment.paced,
        held,
        connections,
        control.poll,
        control.tell,
    )
    connections.in_flight_bytes = {dst: device.paths.in_flight_bytes(dst) for dst in device.paths.paths}
    control.tell({"type": "listening", "port": connections.port})
    for piece in plan.held_by(rank):
        weights.load(piece)
    life = _Life(device, assignment, control, trace)
    while not life.over:
        life.heed(device.idle())


class _Life:
    """What a device process does at each word of its parent."""

    def __init__(self, device: RealDevice, assignment: Assignment, control: Control, trace: TraceWriter):
        from engine.strategies.registry import strategy
        from engine.worlds.common.source import RealSource

        self.device, self.assignment, self.control, self.trace = device, assignment, control, trace
        self.strategy = strategy(assignment.spec.strategy)
        at_source = device.rank == assignment.spec.cluster.source_rank
        self.source = RealSource(device) if at_source else None
        self.warm = self.over = False
        self.program: Coroutine[Any, Any, None] | None = None

    def heed(self, told: dict[str, Any]) -> None:
        match told["type"]:
            case "exit":
                self.over = True
            case "connect":
                if self._connect(told):
                    self._prepare_first()
            case "resume":
                if self._connect(told):
                    self._prepare_next(told)
            case "start":
                self._run(told)
            case "halt":
                self.device.halt()
                self.trace.flush()
                self.control.tell({"type": "halted"})
            case _:
                self.device.heed(told)

    def _connect(self, told: dict[str, Any]) -> bool:
        """Open what is missing and wait for the others to do so, unless the parent changes its mind."""
        device = self.device
        device.connections.addresses = {rank: (host, port) for rank, host, port in told["addresses"]}
        for peer in told["peers"]:
            if not device.connections.open(peer):
                device.silence.suspect(peer)
        while device.connections.num_connected < told["expect"]:
            word = self.control.poll()
            if word is None:
                device.connections.wait(CONNECT_CHECK_S)
                continue
            self.heed(word)
            if word["type"] in ("halt", "exit"):
                return False
        if not self.warm:
            device.warm_up()
            self.warm = True
        return True

    def _prepare_first(self) -> None:
        from engine.program.serve import serve

        told = self.assignment
        self.program = serve(
            self.device, self.strategy, told.plan, told.spec.workload, told.requests, self.source
        )
        self.control.tell({"type": "ready"})

    def _prepare_next(self, told: dict[str, Any]) -> None:
        from engine.program.serve import go_on

        plan = Plan.model_validate(told["plan"])
        requests = tuple(Request.model_validate(request) for request in told["requests"])
        device = self.device
        device.epoch = told["epoch"]
        for rank in device.lost - set(told["lost"]):
            device.conditions.join(rank)
            device.silence.suspected.discard(rank)
        for rank in set(told["lost"]) - device.lost:
            device.conditions.lose(rank)
        self.program = go_on(
            device,
            self.strategy,
            plan,
            device.adopt(plan),
            self.assignment.spec.workload,
            requests,
            self.source,
        )
        self.control.tell({"type": "ready"})

    def _run(self, told: dict[str, Any]) -> None:
        from engine.worlds.real.tasks import Clock

        assert self.program is not None, "a device starts what it has prepared"
        if self.device.clock.start_s == 0.0:
            self.device.set_clock(Clock(told["start_s"], told["dilation"]))
            self.device.connections.dilate(told["dilation"])
        ending = self.device.run(self.program, told["begin_s"])
        if ending == "finished" and self.source is not None:
            self.source.save(self.assignment.results / "outputs.safetensors")
        self.trace.flush()
        self.control.tell({"type": ending, "pacing": self.device.compute_pacer.stats()._asdict()})
