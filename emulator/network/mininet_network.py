"""Builds a cluster as a shaped network of namespaces: implements `engine.domain.network.Network`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mininet.net import Mininet

from emulator.host.interfaces import set_down
from emulator.host.namespaces import NodeCommand, enter, inside, run_each
from emulator.network.backend import is_lossy
from emulator.network.counters import Counters
from emulator.network.impairments import Impairments
from emulator.network.layout import Interface, NetworkLayout, network_layout
from emulator.network.measure import LinkTransfer, measure_links
from emulator.network.measured_rates import MeasuredRates
from emulator.network.nodes import build_nodes, close_shells, end_nodes, join_nodes
from emulator.network.probe import Capabilities, probe
from emulator.network.relays import tap_lines
from emulator.network.shaping import apply_shapes, change_shapes, piece_limit
from emulator.network.sysctls import write_sysctls
from emulator.network.windows import tcp_wmem
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import HostError
from engine.domain.network import LinkMeasurement, LinkState, Network
from engine.domain.outages import Outages
from engine.domain.scenario import (
    Change,
    DropDevice,
    JoinDevice,
    LinkDown,
    LinkUp,
    SetDelay,
    SetJitter,
    SetLoss,
    SetRate,
)

DIRECTIONS = {"both": (True, False), "forward": (True,), "backward": (False,)}


class MininetNetwork:
    """One emulated cluster with dilation D. Use it inside private namespaces (`session.isolation`).

    `changes` are the timed changes of the run. Raises `HostError` if this machine cannot do what is asked,
    and on entering if the kernel applied other settings.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        dilation: float,
        capabilities: Capabilities | None = None,
        changes: Sequence[Change] = (),
    ):
        self.cluster = cluster
        self.dilation = dilation
        self.capabilities = capabilities or probe()
        self._lossy = any(map(is_lossy, cluster.links)) or any(
            isinstance(change, SetLoss) and change.loss_frac for change in changes
        )
        self._renewals = 0
        self.layout: NetworkLayout = network_layout(cluster, dilation, self._lossy)
        self._outages = Outages(cluster)
        self.directions = [(link, forward) for link in range(len(cluster.links)) for forward in (True, False)]
        self._carrying = [end for end in self.directions if cluster.carries(*end)]
        """Those with routes: packets of a measurement take no other."""
        self._measured = MeasuredRates(dilation)
        self._impairments = Impairments(cluster, self.layout, dilation, self.capabilities.has, changes)
        self.backend = self._impairments.name
        self._mininet: Mininet | None = None
        self._pids: dict[str, int] = {}
        self._counters: Counters | None = None

    def __enter__(self) -> Network:
        self.capabilities.require()
        self._mininet = build_nodes(self.layout)
        try:
            self._pids = {node.name: int(self._mininet[node.name].pid) for node in self.layout.nodes}
            join_nodes(self.layout, self._pids, without=self._impairments.backend.relayed)
            self._impairments.start(self._pids)
            self._configure()
            impairments = self._impairments
            apply_shapes(
                [(impairments.port(end), impairments.shape(end)) for pair in self.layout.ends for end in pair]
            )
            impairments.apply(self.directions)
            self._counters = Counters(self.layout, self._pids)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._measured.close()
        if self._counters is not None:
            self._counters.close()
        self._impairments.close()
        if self._mininet is not None:
            end_nodes(self._mininet)
        self._mininet = self._counters = None

    # what device processes need

    def enter(self, rank: int) -> None:
        """Move this process, which was forked for device `rank`, into that device's namespace."""
        enter(self.pid(rank))
        assert self._mininet is not None and self._counters is not None, "the network stands"
        close_shells(self._mininet)
        self._counters.close()

    def pid(self, rank: int) -> int:
        """A process in the network namespace of device `rank`."""
        return self._pids[self.layout.nodes[rank].name]

    @property
    def shells(self) -> frozenset[int]:
        """Processes that only keep the namespaces of the nodes."""
        return frozenset(self._pids.values())

    def address(self, rank: int) -> str:
        return self.layout.nodes[rank].address

    def holds_delay(self, link: int) -> bool:
        return self._impairments.is_held(link)

    def dilate(self, dilation: float) -> None:
        """Set all links to another dilation, before the run: rates, delays, and TCP's timers of open
        connections.
        """
        self.dilation = self._impairments.dilation = dilation
        self._measured = MeasuredRates(dilation)
        ends = [end for pair in self.layout.ends for end in pair]
        change_shapes([(self._impairments.port(end), self._impairments.shape(end)) for end in ends])
        self._impairments.apply(self.directions)
        self._renew_routes()

    # live changes

    def apply(self, change: Change) -> dict[str, Any]:
        """Apply a live change. Returns the links, and for a rate what the kernel reports (virtual bit/s).

        Raises `HostError` for a delay, jitter or loss that this machine cannot add to a running network.
        """
        if isinstance(change, SetRate):
            return self._set_rate(change)
        if isinstance(change, SetDelay | SetLoss | SetJitter):
            return self._set_impairment(change)
        if isinstance(change, LinkDown | LinkUp):
            links: Sequence[int] = [self.cluster.link_index(change.link)]
        elif isinstance(change, DropDevice | JoinDevice):
            links = self._outages.links_of(self.cluster.rank(change.device))
        else:
            return {}  # nothing of the network changes
        self._switch(change)
        return {
            "links": [self.cluster.links[index].name for index in links],
            "up": not self.down & set(links),
        }

    def _set_rate(self, change: SetRate) -> dict[str, Any]:
        link = self.cluster.link_index(change.link)
        directions = DIRECTIONS[change.direction]
        self._impairments.set(change)
        for forward in directions:
            self._measured.forget((link, forward))
        ends = [self.layout.sender(link, forward) for forward in directions]
        impairments = self._impairments
        actual = change_shapes([(impairments.port(end), impairments.shape(end)) for end in ends])
        in_force = [
            {"forward": forward, "bit_per_s": rate * self.dilation}
            for forward, rate in zip(directions, actual, strict=True)
        ]
        return {"link": self.cluster.links[link].name, "in_force": in_force}

    def _set_impairment(self, change: SetDelay | SetLoss | SetJitter) -> dict[str, Any]:
        link = self.cluster.link_index(change.link)
        self._impairments.set(change)
        if isinstance(change, SetLoss) and change.loss_frac and not self._lossy:
            self._expect_losses()
        way = "both" if isinstance(change, SetJitter) else change.direction
        self._impairments.apply([(link, forward) for forward in DIRECTIONS[way]])
        self.backend = self._impairments.name
        return {"link": self.cluster.links[link].name, "backend": self.backend}

    def _expect_losses(self) -> None:
        self._lossy = True
        self._renew_routes()

    def _renew_routes(self) -> None:
        """Set frames, timers and acknowledgements anew; flushing routes makes open connections use them."""
        self._renewals += 1
        self.layout = network_layout(self.cluster, self.dilation, self._lossy, self._renewals)
        up = [end for pair in self.layout.ends for end in pair if end.link not in self.down]
        self._ip(
            {
                end.name: (*self.layout.batches[end.name], self._piece_line(end), "route flush cache")
                for end in up
            }
        )

    @property
    def down(self) -> frozenset[int]:
        """The links that are down now."""
        return self._outages.down

    def _switch(self, change: Change) -> None:
        """Set both ends of links down, or up again with the routes that the kernel dropped."""
        before = self.down
        self._outages.apply(change)
        for link in sorted(self.down - before):
            for end in self.layout.ends[link]:
                inside(self._pids[end.node], partial(set_down, end.name))
        self._ip(
            {
                end.name: (*self.layout.batches[end.name], self._piece_line(end))
                for link in sorted(before - self.down)
                for end in self.layout.ends[link]
            }
        )

    # measuring

    def measure(self, only: Sequence[int] | None = None) -> list[LinkMeasurement]:
        """Measure all links before the run, or links `only` during it: briefly, on a thread.

        During a run the list is empty; `state` has the figures once they are measured.
        """
        if only is not None:
            ways = [way for way in self._carrying if way[0] in only and way[0] not in self.down]
            if self._counters is not None:
                self._measured.probe(ways, self._transfer, self._counters.sent)
            return []
        transfers = [transfer for way in self._carrying if (transfer := self._transfer(*way)) is not None]
        self._impairments.apply(self.directions, off=True)  # through TCP, delay and loss would show as well
        self._measured.note(measure_links(transfers))
        self._impairments.apply(self.directions)
        return [
            LinkMeasurement(link, forward, self._asked(link, forward), rate, self.backend)
            for (link, forward), rate in self._measured.bit_per_s.items()
        ]

    def notes(self) -> tuple[str, ...]:
        return ()

    def actual(self) -> None:
        return None

    def state(self) -> list[LinkState]:
        if self._counters is None:
            raise HostError("The network is not built: enter it first.")
        return [
            LinkState(
                reading.link,
                reading.forward,
                reading.sent_bytes,
                self._asked(reading.link, reading.forward),
                self._measured.bit_per_s.get((reading.link, reading.forward)),
                reading.link not in self.down,
                self._measured.probe_ends[reading.link, reading.forward],
            )
            for reading in self._counters.read()
        ]

    def _transfer(self, link: int, forward: bool) -> LinkTransfer | None:
        """What measures a direction; None if it is down, or the network is."""
        if self._counters is None or link in self.down:
            return None
        sender, receiver = self.layout.sender(link, forward), self.layout.receiver(link, forward)
        return LinkTransfer(
            link,
            forward,
            self._pids[sender.node],
            self._pids[receiver.node],
            self.layout.node(receiver.node).address,
            self._asked(link, forward) / self.dilation,
        )

    # building

    def _configure(self) -> None:
        for rank, node in enumerate(self.layout.nodes):
            is_device = rank < len(self.cluster.devices)
            buffers = tcp_wmem(self.cluster, rank) if is_device else None
            inside(self._pids[node.name], partial(write_sysctls, buffers))
        base = {node.name: self.layout.base_batch(node) for node in self.layout.nodes}
        for link, forward in self.directions:
            end = self.layout.sender(link, forward)
            if link in self._impairments.backend.relayed:
                base[end.node] += tap_lines(end)
            base[end.node] += (self._piece_line(end),)
        self._ip(base | self.layout.batches)

    def _piece_line(self, end: Interface) -> str:
        """The `ip -batch` line for how many frames TCP hands to `end` at once.

        One where packets are lost: a larger piece would be lost as a whole.
        """
        single = f"link set {end.name} gso_max_segs 1"
        return single if self._lossy else piece_limit(end.name, self._impairments.shape(end))

    def _ip(self, lines: dict[str, tuple[str, ...]]) -> None:
        """Run `ip -batch` once per node; keys are node or interface names (`d0`, `d0-eth1`)."""
        by_node: dict[str, list[str]] = {}
        for name, own in lines.items():
            by_node.setdefault(name.partition("-")[0], []).extend(own)
        run_each(
            [
                NodeCommand(self._pids[node], ("ip", "-batch", "-"), "\n".join(own) + "\n")
                for node, own in by_node.items()
            ]
        )

    def _asked(self, link: int, forward: bool) -> float:
        """The present setting of a direction's rate, in virtual bit/s."""
        return self._impairments.links[link].rate(forward)
