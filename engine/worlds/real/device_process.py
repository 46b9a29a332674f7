"""A device process, from the fork to its end. Its parent is the supervisor (`engine/runs/supervisor.py`).

The supervisor's messages and the trace go over a Unix socket pair, which works across network namespaces, as
JSON lines; tensors go over the emulated network.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.domain.errors import RunError
from engine.domain.network import Network, PairMeasurement
from engine.domain.parent import end_with
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.workload import Request
from engine.plugins.words import words_of
from engine.worlds.real.control_socket import ControlSocket
from engine.worlds.real.trace_writer import TraceWriter

if TYPE_CHECKING:
    from engine.models.weights.store import Source
    from engine.worlds.real.device import RealDevice
    from engine.worlds.real.loop import ControlMessage

CONNECT_CHECK_S = 0.05


class Assignment(NamedTuple):
    """What every device process gets from its parent by the fork."""

    spec: RunSpec
    plan: Plan
    requests: tuple[Request, ...]
    network: Network
    paced: bool
    results: Path
    source: Source | None = None
    """Where the weights are read from, in place of what `spec` names."""
    key: bytes = b""
    """What the devices prove to each other that they have, where others may reach them."""
    beside: tuple[int, ...] = ()
    """The devices on this one's machine, itself among them, where that does not run all."""
    given: tuple[PairMeasurement, ...] = ()
    """What the network gives, where nobody shapes it and messages are to take as long as it is drawn."""


def device_process(rank: int, assignment: Assignment, sock: socket.socket, parent: int) -> None:
    """Run device `rank` until the supervisor, the process `parent`, sends "exit". Never returns."""
    end_with(parent)
    write_stacks_on_request()
    control = ControlSocket(sock)
    status = 0
    try:
        _run_device(rank, assignment, control)
    except RunError as error:
        control.send(
            {
                "type": "error",
                "kind": type(error).__name__,
                "message": str(error),
                "device": error.device,
                "time_s": error.time_s,
            }
        )
        status = 3
    except Exception as error:  # the supervisor makes it the run's outcome; the log gets the traceback
        sys.excepthook(type(error), error, error.__traceback__)
        control.send({"type": "error", "kind": "failed", "message": words_of(error)})
        status = 1
    while status and control.received.get()["type"] != "exit":
        continue  # keep the connections open until "exit", or peers would report this device as failed
    sys.stderr.flush()
    os._exit(status)


def write_stacks_on_request() -> None:
    """Let SIGUSR1, which the parent blocked for the fork, write where every thread is, also while one
    computes or waits.
    """
    faulthandler.register(signal.SIGUSR1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})


def _run_device(rank: int, assignment: Assignment, control: ControlSocket) -> None:
    """Load the weights of the plan, then handle the supervisor's messages until "exit"."""
    import torch

    from engine.models.weights.store import WeightStore
    from engine.ops.torch_kernels.heap import keep_freed_memory
    from engine.worlds.real.connections import Connections
    from engine.worlds.real.device import RealDevice
    from engine.worlds.real.native import NativeDevice, keep_a_core

    spec, plan, network = assignment.spec, assignment.plan, assignment.network
    network.enter(rank)
    torch.set_num_threads(1)
    keep_freed_memory()
    sys.setswitchinterval(5e-4)
    trace = TraceWriter(control, holds=not assignment.paced and not spec.scenario.changes)
    stores = (assignment.results, spec.draft_weights, assignment.source)
    weights = WeightStore(spec.model, spec.weights, spec.seed, *stores)
    held = frozenset(link for link in range(len(spec.cluster.links)) if network.holds_delay(link))
    connections = Connections(rank, network.address(rank), assignment.key)
    control.on_message, control.served_s = connections.wake, lambda: connections.served_s
    kind = RealDevice if assignment.paced else NativeDevice
    device = kind(
        rank,
        spec,
        plan,
        trace.emit,
        weights,
        assignment.paced,
        held,
        connections,
        control,
        assignment.given,
    )
    if isinstance(device, NativeDevice):
        device.polls = keep_a_core(rank, assignment.beside or spec.cluster.workers)
    connections.in_flight_bytes = {dst: device.paths.in_flight_bytes(dst) for dst in device.paths.paths}
    control.send({"type": "listening", "port": connections.port})
    control.say(f"Process {os.getpid()} listens on {network.address(rank)}, port {connections.port}.")
    for piece in plan.held_by(rank):
        weights.load(piece)
    if not assignment.paced:
        weights.own()
    control.say(f"It holds {sum(1 for _ in plan.held_by(rank))} slices of the weights.")
    handler = _MessageHandler(device, assignment, control, trace)
    while not handler.exited:
        handler.handle_message(device.wait_for_message())


def _used(ending: str) -> str:
    """How the program ended, and what the process has used so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (
        f"Program {ending}: {used.ru_utime + used.ru_stime:.2f} s of processor time and up to "
        f"{used.ru_maxrss / 1024:.0f} MiB of memory since the fork."
    )


class _MessageHandler:
    """Handles the supervisor's messages: one method per type of message."""

    def __init__(
        self, device: RealDevice, assignment: Assignment, control: ControlSocket, trace: TraceWriter
    ):
        from engine.strategies.registry import strategy
        from engine.worlds.common.source import RealSource

        self.device, self.assignment, self.control, self.trace = device, assignment, control, trace
        self.strategy = strategy(assignment.spec.strategy)
        at_source = device.rank == assignment.spec.cluster.source_rank
        self.source = RealSource(device) if at_source else None
        if self.source is not None:
            device.on_request = self.source.handle
        self.warm = self.exited = False
        self.program: Coroutine[Any, Any, None] | None = None

    def handle_message(self, message: ControlMessage) -> None:
        match message["type"]:
            case "exit":
                self.exited = True
            case "connect":
                if self._connect(message):
                    self._prepare_first()
            case "resume":
                if self._connect(message):
                    self._prepare_next(message)
            case "rehearse":
                self._rehearse(message)
            case "start":
                self._run(message)
            case "halt":
                self.device.halt()
                self.trace.finish()
                self.control.send({"type": "halted"})
            case _:
                self.device.handle_message(message)

    def _connect(self, message: ControlMessage) -> bool:
        """Open the connections in `message` and wait for those of the peers. False after "halt" or "exit"."""
        device = self.device
        device.connections.addresses = {rank: (host, port) for rank, host, port in message["addresses"]}
        unopened, told = set(message["peers"]), False
        while True:
            unopened = {peer for peer in unopened if not device.connections.open(peer)}
            if message["type"] == "resume":
                for peer in unopened:
                    device.watchdog.suspect(peer)
                unopened.clear()
            if unopened and not told:  # before a run starts no device has failed: this machine is busy
                away = ", ".join(self.assignment.spec.cluster.devices[peer].name for peer in sorted(unopened))
                self.control.say(f"It cannot reach {away} yet, and tries again.")
                told = True
            if not unopened and device.connections.num_connected >= message["expect"]:
                break
            newer = self.control.receive()
            if newer is None:
                device.connections.wait(CONNECT_CHECK_S)
                continue
            self.handle_message(newer)
            if newer["type"] in ("halt", "exit"):
                return False
        names = [self.assignment.spec.cluster.devices[peer].name for peer in message["peers"]]
        self.control.say(
            f"It has opened connections to {', '.join(names) or 'nobody'} "
            f"and has {device.connections.num_connected} from others."
        )
        if not self.warm:
            device.warm_up()
            self.warm = True
            gc.freeze()  # a collection of all that torch has made takes a tenth of a second
        return True

    def _prepare_first(self) -> None:
        from engine.program.serve import serve

        given = self.assignment
        self.program = serve(
            self.device, self.strategy, given.plan, given.spec.workload, given.requests, self.source
        )
        self.control.send({"type": "ready"})

    def _prepare_next(self, message: ControlMessage) -> None:
        from engine.program.serve import go_on

        plan = Plan.model_validate(message["plan"])
        requests = tuple(Request.model_validate(request) for request in message["requests"])
        device = self.device
        device.epoch = message["epoch"]
        for rank in device.failed - set(message["lost"]):
            device.conditions.join(rank)
            device.watchdog.trust(rank, time.monotonic())
        for rank in set(message["lost"]) - device.failed:
            device.conditions.mark_failed(rank)
        self.program = go_on(
            device,
            self.strategy,
            plan,
            device.adopt(plan),
            self.assignment.spec.workload,
            requests,
            self.source,
        )
        self.control.send({"type": "ready"})

    def _rehearse(self, message: ControlMessage) -> None:
        from engine.worlds.real.rehearsing import rehearse

        requests = tuple(Request.model_validate(request) for request in message["requests"])
        given = (message["epoch"], message["start_s"], message["dilation"])
        self.control.send(rehearse(self.device, self.strategy, self.assignment.plan, requests, *given))

    def _run(self, message: ControlMessage) -> None:
        from engine.worlds.common.proof import save_pieces
        from engine.worlds.real.tasks import Clock

        assert self.program is not None, "a device starts what it has prepared"
        if self.device.clock.start_s == 0.0:
            self.device.set_clock(Clock(message["start_s"], message["dilation"]))
            self.device.connections.dilate(message["dilation"])
        ending = self.device.run(self.program, message["begin_s"])
        if ending == "finished" and self.source is not None:
            self.source.save(self.assignment.results / "outputs.safetensors")
        if self.device.kept:
            save_pieces(self.assignment.results, self.device.rank, self.device.kept)
        self.trace.finish()
        self.control.say(_used(ending))
        self.control.send({"type": ending, "pacing": self.device.compute_pacer.stats()._asdict()})
