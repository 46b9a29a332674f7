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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from engine.errors import EdgeLoomError, RunError
from engine.network import Network
from engine.plan import Plan
from engine.spec import RunSpec
from engine.trace import Mark, Span, to_json
from engine.workload import Request

FLUSH_S = 0.025
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
        self.on_rate: Callable[[int, bool, float], None] = lambda link, forward, bit_per_s: None
        self.start()

    def run(self) -> None:
        with self.sock.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                message = json.loads(line)
                if message["type"] == "rate":
                    self.on_rate(message["link"], message["forward"], message["bit_per_s"])
                else:
                    self.heard.put(message)
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
            batch = [to_json(self.buffer.popleft()) for _ in range(len(self.buffer))]
            if batch:
                with contextlib.suppress(OSError):  # the parent is gone, and so is the run
                    self.control.tell({"type": "trace", "items": batch})

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
        control.tell({
            "type": "error", "kind": type(error).__name__, "message": str(error),
            "device": error.device, "time_s": error.time_s,
        })
        status = 3
    except Exception as error:  # the parent turns it into the run's outcome; the log gets the details
        sys.excepthook(type(error), error, error.__traceback__)
        control.tell({"type": "error", "kind": "failed", "message": f"{type(error).__name__}: {error}"})
        status = 1
    control.heard.get()  # stay until told to exit, so that peers do not see a lost device
    sys.stderr.flush()
    os._exit(status)


def _live(rank: int, assignment: Assignment, control: Control) -> None:
    import torch

    from engine.models.weights import WeightStore
    from engine.serve import serve
    from engine.strategies.registry import strategy
    from engine.worlds.connections import Connections
    from engine.worlds.real import Clock, RealDevice
    from engine.worlds.source import RealSource

    spec, plan, network = assignment.spec, assignment.plan, assignment.network
    network.enter(rank)
    torch.set_num_threads(1)
    sys.setswitchinterval(5e-4)
    trace = TraceWriter(control)
    weights = WeightStore(spec.model, spec.weights, spec.seed)
    delays_s = {src: network.delay_s(src, rank) for src in range(len(spec.cluster.devices)) if src != rank}
    connections = Connections(rank, network.address(rank))
    device = RealDevice(rank, spec, plan, trace.emit, weights, assignment.paced, delays_s, connections)
    control.tell({"type": "listening", "port": connections.port})

    for piece in plan.held_by(rank):
        weights.load(piece)
    told = control.hear("connect")

    connections.open([tuple(peer) for peer in told["peers"]], told["expect"])
    device.warm_up()
    control.tell({"type": "ready"})

    start = control.hear("start")
    source = RealSource(device) if device.rank == spec.cluster.source_rank else None
    chosen = strategy(spec.strategy)
    program = serve(device, chosen, plan, spec.workload, assignment.requests, source)
    control.on_rate = device.paths.set_rate
    device.run(program, Clock(start["start_s"], start["dilation"]))
    if source is not None:
        source.save(assignment.results / "outputs.safetensors")
    trace.flush()
    control.tell({"type": "finished", "pacing": device.compute_pacer.stats()._asdict()})
