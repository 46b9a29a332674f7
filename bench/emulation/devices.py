"""Runs a benchmark's own program on real device processes, with the runtime that strategies run on."""

from __future__ import annotations

import json
import math
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from emulator.host.priority import children_in_real_time
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import HostError
from engine.domain.network import Network
from engine.domain.plan import Plan, Slice
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.models import catalogue
from engine.strategies.single import SingleLayout

if TYPE_CHECKING:  # torch takes a while to import
    from engine.worlds.real.device import RealDevice

START_LEAD_S = 0.1
SPAWNED = "tiny-gpt2"  # a model for programs that compute nothing

Program = Callable[["RealDevice"], Coroutine[Any, Any, Any]]
Summarise = Callable[["RealDevice", list[Span | Mark]], Any]


class _NoSupervisor:
    """A supervisor that sends and receives nothing."""

    def has_message(self) -> bool:
        return False

    def receive(self) -> None:
        return None

    def send(self, message: dict[str, Any]) -> None:
        return


class Devices:
    """One process per device of `network`. Each runs `program` and sends `summarise(device, trace)` as JSON.

    `pairs` are the (src, dst) that may send; `needs` are weights of `model` that every device has.
    """

    def __init__(
        self,
        network: Network,
        cluster: ClusterSpec,
        dilation: float,
        program: Program,
        summarise: Summarise,
        pairs: Sequence[tuple[int, int]] = (),
        model: str = SPAWNED,
        needs: Sequence[Slice] = (),
    ):
        model_spec, weights = catalogue.resolve(model, "random")
        self.spec = RunSpec(
            cluster=cluster,
            model=model_spec,
            weights=weights,
            strategy="single",
            dilation=dilation,
            silence_s=600.0,
        )
        self.network, self.dilation, self.pairs, self.needs = network, dilation, pairs, tuple(needs)
        self.program, self.summarise = program, summarise

    def run(self) -> list[Any]:
        """The summary of each device, by rank. Raises `HostError` if one fails."""
        children = []
        for rank in range(len(self.spec.cluster.devices)):
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                ours.close()
                self._child_main(rank, theirs.makefile("rw"))
            theirs.close()
            children.append((pid, ours, ours.makefile("rw")))
        try:
            return self._coordinate(children)
        finally:
            for pid, sock, file in children:
                file.close()
                sock.close()
                os.waitpid(pid, 0)

    def _coordinate(self, children: Sequence[tuple[int, socket.socket, Any]]) -> list[Any]:
        ports = [self._receive(rank, file) for rank, (_, _, file) in enumerate(children)]
        for rank, (_, _, file) in enumerate(children):
            peers = [[dst, self.network.address(dst), ports[dst]] for src, dst in self.pairs if src == rank]
            self._send(file, [peers, sum(dst == rank for _, dst in self.pairs)])
        for rank, (_, _, file) in enumerate(children):
            self._receive(rank, file)
        children_in_real_time(but=getattr(self.network, "shells", frozenset()))
        start_s = time.monotonic() + START_LEAD_S
        for _, _, file in children:
            self._send(file, start_s)
        return [self._receive(rank, file) for rank, (_, _, file) in enumerate(children)]

    def _child_main(self, rank: int, file: Any) -> None:
        """Run the device in the forked process, send its summary or error, and exit."""
        status = 1
        try:
            self._send(file, self._run_device(rank, file))
            status = 0
        except BaseException as error:
            self._send(file, {"error": "".join(traceback.format_exception(error))})
        finally:
            os._exit(status)

    def _run_device(self, rank: int, file: Any) -> Any:
        import torch

        from engine.models.weights.store import WeightStore
        from engine.worlds.real.connections import Connections
        from engine.worlds.real.device import RealDevice
        from engine.worlds.real.tasks import Clock
        from engine.worlds.real.watchdog import SilenceLimits

        spec = self.spec
        self.network.enter(rank)
        torch.set_num_threads(1)
        sys.setswitchinterval(5e-4)
        weights, trace = WeightStore(spec.model, spec.weights, 0), list[Span | Mark]()
        for piece in self.needs:
            weights.load(piece)
        held = frozenset(link for link in range(len(spec.cluster.links)) if self.network.holds_delay(link))
        plan = Plan(strategy="single", holdings=(), work=(), layout=SingleLayout(device=0))
        connections = Connections(rank, self.network.address(rank))
        device = RealDevice(rank, spec, plan, trace.append, weights, True, held, connections, _NoSupervisor())
        for piece in self.needs:
            device.ledger.load(piece)
        connections.dilate(self.dilation)
        connections.in_flight_bytes = {dst: device.paths.in_flight_bytes(dst) for dst in device.paths.paths}
        self._send(file, connections.port)
        peers, expect = json.loads(file.readline())
        connections.addresses = {peer: (host, port) for peer, host, port in peers}
        for peer, _, _ in peers:
            connections.open(peer)
        while connections.num_connected < expect:
            connections.wait(1.0)
        device.warm_up()
        self._send(file, "ready")
        start_s = json.loads(file.readline())
        device.set_clock(Clock(start_s, self.dilation))
        # its pings would make TCP retransmit lost packets earlier
        device.watchdog.limits = SilenceLimits(math.inf, math.inf)
        device.run(self.program(device), start_s)
        return self.summarise(device, trace)

    def _receive(self, rank: int, file: Any) -> Any:
        line = file.readline()
        if not line:
            raise HostError(f"Device {rank} of a benchmark ended early.")
        message = json.loads(line)
        if isinstance(message, dict) and "error" in message:
            raise HostError(f"Device {rank} of a benchmark failed: {message['error']}")
        return message

    def _send(self, file: Any, message: Any) -> None:
        file.write(json.dumps(message) + "\n")
        file.flush()
