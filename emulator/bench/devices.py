"""Real devices that run a benchmark's own program instead of a strategy's: the same code, other words."""

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

if TYPE_CHECKING:  # torch takes a while to import
    from engine.worlds.real.device import RealDevice

START_LEAD_S = 0.1
SPAWNED = "tiny-gpt2"  # a model for programs that compute nothing

Program = Callable[["RealDevice"], Coroutine[Any, Any, Any]]
Tell = Callable[["RealDevice", list[Span | Mark]], Any]


class Devices:
    """One process per device of `network`, each running `program`; JSON of `tell` on its trace comes back.

    `pairs` are the (src, dst) that may send; `needs` are weights of `model` that every device has.
    """

    def __init__(
        self,
        network: Network,
        cluster: ClusterSpec,
        dilation: float,
        program: Program,
        tell: Tell,
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
        self.program, self.tell = program, tell

    def run(self) -> list[Any]:
        """What each device tells, by rank. Raises `HostError` if one fails."""
        children = []
        for rank in range(len(self.spec.cluster.devices)):
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                ours.close()
                self._be(rank, theirs.makefile("rw"))
            theirs.close()
            children.append((pid, ours, ours.makefile("rw")))
        try:
            return self._lead(children)
        finally:
            for pid, sock, file in children:
                file.close()
                sock.close()
                os.waitpid(pid, 0)

    def _lead(self, children: Sequence[tuple[int, socket.socket, Any]]) -> list[Any]:
        ports = [self._hear(rank, file) for rank, (_, _, file) in enumerate(children)]
        for rank, (_, _, file) in enumerate(children):
            peers = [[dst, self.network.address(dst), ports[dst]] for src, dst in self.pairs if src == rank]
            self._say(file, [peers, sum(dst == rank for _, dst in self.pairs)])
        for rank, (_, _, file) in enumerate(children):
            self._hear(rank, file)
        children_in_real_time(but=getattr(self.network, "shells", frozenset()))
        start_s = time.monotonic() + START_LEAD_S
        for _, _, file in children:
            self._say(file, start_s)
        return [self._hear(rank, file) for rank, (_, _, file) in enumerate(children)]

    def _be(self, rank: int, file: Any) -> None:
        """The life of a device process."""
        status = 1
        try:
            self._say(file, self._live(rank, file))
            status = 0
        except BaseException as error:
            self._say(file, {"error": "".join(traceback.format_exception(error))})
        finally:
            os._exit(status)

    def _live(self, rank: int, file: Any) -> Any:
        import torch

        from engine.models.weights.store import WeightStore
        from engine.worlds.real.connections import Connections
        from engine.worlds.real.device import RealDevice
        from engine.worlds.real.tasks import Clock

        spec = self.spec
        self.network.enter(rank)
        torch.set_num_threads(1)
        sys.setswitchinterval(5e-4)
        weights, trace = WeightStore(spec.model, spec.weights, 0), list[Span | Mark]()
        for piece in self.needs:
            weights.load(piece)
        held = frozenset(link for link in range(len(spec.cluster.links)) if self.network.holds_delay(link))
        plan = Plan(strategy="single", holdings=(), work=())
        connections = Connections(rank, self.network.address(rank))
        device = RealDevice(
            rank, spec, plan, trace.append, weights, True, held, connections, lambda: None, lambda _: None
        )
        device.silence.checked_s = math.inf  # its questions would make TCP send lost packets again earlier
        for piece in self.needs:
            device.ledger.load(piece)
        connections.dilate(self.dilation)
        connections.in_flight_bytes = {dst: device.paths.in_flight_bytes(dst) for dst in device.paths.paths}
        self._say(file, connections.port)
        peers, expect = json.loads(file.readline())
        connections.addresses = {peer: (host, port) for peer, host, port in peers}
        for peer, _, _ in peers:
            connections.open(peer)
        while connections.num_connected < expect:
            connections.wait(1.0)
        device.warm_up()
        self._say(file, "ready")
        start_s = json.loads(file.readline())
        device.set_clock(Clock(start_s, self.dilation))
        device.run(self.program(device), start_s)
        return self.tell(device, trace)

    def _hear(self, rank: int, file: Any) -> Any:
        line = file.readline()
        if not line:
            raise HostError(f"Device {rank} of a benchmark ended early.")
        said = json.loads(line)
        if isinstance(said, dict) and "error" in said:
            raise HostError(f"Device {rank} of a benchmark failed: {said['error']}")
        return said

    def _say(self, file: Any, what: Any) -> None:
        file.write(json.dumps(what) + "\n")
        file.flush()
