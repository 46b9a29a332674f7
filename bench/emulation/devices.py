"""Runs a benchmark's own program on real device processes, with the runtime that strategies run on."""

from __future__ import annotations

import json
import math
import os
import select
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
from engine.domain.parent import end_with
from engine.domain.plan import Plan, Slice
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.models import catalogue
from engine.runs.children import Child, end_all, ending_of
from engine.strategies.single import SingleLayout

if TYPE_CHECKING:  # torch takes a while to import
    from engine.worlds.real.device import RealDevice

START_LEAD_S = 0.1
LIMIT_S = 600.0
"""Wall seconds in which every device has to get ready, or to run its program."""

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
        """The summary of each device, by rank. Raises `HostError` if one fails, ends early or hangs."""
        children: list[Child] = []
        try:
            for rank in range(len(self.spec.cluster.devices)):
                children.append(self._fork(rank, children))
            return self._coordinate(children)
        finally:
            end_all(children, at_once=True)

    def _fork(self, rank: int, others: Sequence[Child]) -> Child:
        ours, theirs = socket.socketpair()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            end_with(parent)
            ours.close()
            for other in others:
                other.close()
            self._child_main(rank, theirs.makefile("rw"))
        theirs.close()
        return Child(rank, self.spec.cluster.devices[rank].name, pid, ours)

    def _coordinate(self, children: Sequence[Child]) -> list[Any]:
        ports = [said["port"] for said in self._next_of(children)]
        for child in children:
            to = [dst for src, dst in self.pairs if src == child.rank]
            child.send(
                peers=[[dst, self.network.address(dst), ports[dst]] for dst in to],
                expect=sum(dst == child.rank for _, dst in self.pairs),
            )
        self._next_of(children)
        children_in_real_time(but=getattr(self.network, "shells", frozenset()))
        start_s = time.monotonic() + START_LEAD_S
        for child in children:
            child.send(start_s=start_s)
        return [said["summary"] for said in self._next_of(children, last=True)]

    def _next_of(self, children: Sequence[Child], last: bool = False) -> list[Any]:
        """The next message of every device, by rank; after its `last` one a device may end.

        It watches all of them, since a device whose peer has ended waits for it and says nothing.
        """
        said: dict[int, Any] = {}
        deadline_s = time.monotonic() + LIMIT_S
        while len(said) < len(children):
            watched = {child.sock: child for child in children if not last or child.rank not in said}
            ready, _, _ = select.select([*watched], [], [], max(0.0, deadline_s - time.monotonic()))
            if not ready:
                late = ", ".join(child.name for child in children if child.rank not in said)
                raise HostError(f"{late} of a benchmark said nothing within {LIMIT_S:.0f} s of wall time.")
            for child in (watched[sock] for sock in ready):
                messages = child.receive()
                if messages is None:
                    raise HostError(f"{child.name} of a benchmark ended early: {ending_of(child.pid)}.")
                for message in messages:
                    if "error" in message:
                        raise HostError(f"{child.name} of a benchmark failed: {message['error']}")
                    said[child.rank] = message
        return [said[child.rank] for child in children]

    def _child_main(self, rank: int, file: Any) -> None:
        """Run the device in the forked process, send its summary or error, and exit."""
        status = 1
        try:
            self._send(file, summary=self._run_device(rank, file))
            status = 0
        except BaseException as error:
            self._send(file, error="".join(traceback.format_exception(error)))
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
        self._send(file, port=connections.port)
        told = json.loads(file.readline())
        connections.addresses = {peer: (host, port) for peer, host, port in told["peers"]}
        for peer in connections.addresses:
            connections.open(peer)
        while connections.num_connected < told["expect"]:
            connections.wait(1.0)
        device.warm_up()
        self._send(file, ready=True)
        start_s = json.loads(file.readline())["start_s"]
        device.set_clock(Clock(start_s, self.dilation))
        # its pings would make TCP retransmit lost packets earlier
        device.watchdog.limits = SilenceLimits(math.inf, math.inf)
        device.run(self.program(device), start_s)
        return self.summarise(device, trace)

    def _send(self, file: Any, **message: Any) -> None:
        file.write(json.dumps(message) + "\n")
        file.flush()
