"""A cluster made real on this machine: implements `engine.domain.network.Network` with Mininet."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mininet.net import Mininet

from emulator.host.namespaces import Command, enter, inside, run_each
from emulator.network.backend import is_lossy
from emulator.network.counters import Counters
from emulator.network.impairments import Impairments
from emulator.network.layout import Interface, Layout, lay_out
from emulator.network.measure import Achieved, Stretch, measure_busy, measure_stretches
from emulator.network.nodes import build_nodes, end_nodes, join_nodes
from emulator.network.probe import Capabilities, probe
from emulator.network.relays import tap_lines
from emulator.network.shaping import apply_shapes, change_shapes, piece_limit
from emulator.network.windows import TCP_RMEM
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import HostError
from engine.domain.network import LinkMeasurement, LinkState, Network
from engine.domain.scenario import Change, DropDevice, LinkDown, LinkUp, SetDelay, SetLoss, SetRate

SYSCTLS = {
    "ipv4/ip_forward": "1",
    # Paths follow the cluster file, which may lead there and back by different links.
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
    # After a pause a connection would start slowly again, and a message take 2-3 times too long.
    "ipv4/tcp_slow_start_after_idle": "0",
    # BBR, some hosts' default, spreads frames over a round trip, even if a connection leaves it for another.
    "ipv4/tcp_congestion_control": "reno",
    # A new connection's window would grow only as frames come, and stop the first long messages.
    "ipv4/tcp_rmem": TCP_RMEM,
    # Nobody speaks IPv6 here; its neighbour discovery would be counted as traffic.
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
}


DIRECTIONS = {"both": (True, False), "forward": (True,), "backward": (False,)}


class MininetNetwork:
    """One emulated cluster with dilation D. Enter it inside private namespaces (`session.isolation`).

    `changes` are the timed ones that will come. Raises `HostError` if the machine cannot do what is asked;
    entering it does if the machine did something else.
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
        self.layout: Layout = lay_out(cluster, dilation, self._lossy)
        self.down: set[int] = set()
        self.ways = [(link, forward) for link in range(len(cluster.links)) for forward in (True, False)]
        self.measured: dict[tuple[int, bool], float] = {}
        self._impairments = Impairments(cluster, self.layout, dilation, self.capabilities.has, changes)
        self.backend = self._impairments.name
        self._mininet: Mininet | None = None
        self._pids: dict[str, int] = {}
        self._counters: Counters | None = None
        self._measuring: list[threading.Thread] = []

    def __enter__(self) -> Network:
        self.capabilities.require()
        self._mininet = build_nodes(self.layout)
        try:
            self._pids = {node.name: int(self._mininet[node.name].pid) for node in self.layout.nodes}
            join_nodes(self.layout, self._pids, without=self._impairments.backend.relayed)
            self._impairments.start(self._pids)
            self._configure()
            ask = self._impairments
            apply_shapes([(ask.port(end), ask.shape(end)) for pair in self.layout.ends for end in pair])
            ask.apply(self.ways)
            self._counters = Counters(self.layout, self._pids)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for thread in self._measuring:
            thread.join()
        if self._counters is not None:
            self._counters.close()
        self._impairments.close()
        if self._mininet is not None:
            end_nodes(self._mininet)
        self._mininet = self._counters = None

    # what device processes need

    def enter(self, rank: int) -> None:
        enter(self.pid(rank))

    def pid(self, rank: int) -> int:
        """A process whose network namespace is that of device `rank`."""
        return self._pids[self.layout.nodes[rank].name]

    @property
    def shells(self) -> frozenset[int]:
        """Processes that only hold up the namespaces of the nodes."""
        return frozenset(self._pids.values())

    def address(self, rank: int) -> str:
        return self.layout.nodes[rank].address

    def holds_delay(self, link: int) -> bool:
        return self._impairments.is_held(link)

    # live changes

    def apply(self, change: Change) -> dict[str, Any]:
        """Facts: which links, and for a rate what the kernel reads back (virtual bit/s per direction).

        Raises `HostError` for a delay or loss that this machine cannot add to a running network.
        """
        if isinstance(change, SetRate):
            return self._set_rate(change)
        if isinstance(change, SetDelay | SetLoss):
            return self._set_impairment(change)
        if isinstance(change, LinkDown | LinkUp):
            links = [self.cluster.link_index(change.link)]
        elif not isinstance(change, DropDevice):
            return {}  # nothing of the network changes
        else:
            links = [
                index for index, link in enumerate(self.cluster.links) if change.device in (link.a, link.b)
            ]
        up = isinstance(change, LinkUp)
        self._switch(links, up)
        return {"links": [self.cluster.links[index].name for index in links], "up": up}

    def _set_rate(self, change: SetRate) -> dict[str, Any]:
        link = self.cluster.link_index(change.link)
        directions = DIRECTIONS[change.direction]
        self._impairments.set(change)
        for forward in directions:
            self.measured.pop((link, forward), None)
        ends = [self.layout.sender(link, forward) for forward in directions]
        ask = self._impairments
        actual = change_shapes([(ask.port(end), ask.shape(end)) for end in ends])
        in_force = [
            {"forward": forward, "bit_per_s": rate * self.dilation}
            for forward, rate in zip(directions, actual, strict=True)
        ]
        return {"link": self.cluster.links[link].name, "in_force": in_force}

    def _set_impairment(self, change: SetDelay | SetLoss) -> dict[str, Any]:
        link = self.cluster.link_index(change.link)
        self._impairments.set(change)
        if isinstance(change, SetLoss) and change.loss_frac and not self._lossy:
            self._expect_losses()
        self._impairments.apply([(link, forward) for forward in DIRECTIONS[change.direction]])
        self.backend = self._impairments.name
        return {"link": self.cluster.links[link].name, "backend": self.backend}

    def _expect_losses(self) -> None:
        """Connections learn of other pieces and timers when they look up their routes again."""
        self._lossy = True
        self.layout = lay_out(self.cluster, self.dilation, lossy=True)
        up = [end for pair in self.layout.ends for end in pair if end.link not in self.down]
        self._ip(
            {
                end.name: (*self.layout.batches[end.name], self._piece_line(end), "route flush cache")
                for end in up
            }
        )

    def _switch(self, links: list[int], up: bool) -> None:
        """Interfaces of both ends down, or up again with the routes that the kernel forgot."""
        changed = [link for link in links if (link in self.down) == up]
        ends = [end for link in changed for end in self.layout.ends[link]]
        self._ip(
            {
                end.name: self.layout.batches[end.name] if up else (f"link set {end.name} down",)
                for end in ends
            }
        )
        self.down = self.down - set(changed) if up else self.down | set(changed)

    # what was asked against what is

    def measure(self, only: Sequence[int] | None = None) -> list[LinkMeasurement]:
        """All links before the run. Of links `only`, in the middle of one: shortly, in the background.

        Then the list is empty, and `state` has the figures when they are there.
        """
        if only is None:
            stretches = [self._stretch(*way) for way in self.ways if way[0] not in self.down]
            self._impairments.apply(self.ways, off=True)  # through TCP, delay and loss would show as well
            self._note(measure_stretches(stretches))
            self._impairments.apply(self.ways)
            return [
                LinkMeasurement(link, forward, self._asked(link, forward), rate, self.backend)
                for (link, forward), rate in self.measured.items()
            ]
        keys = [way for way in self.ways if way[0] in only and way[0] not in self.down]
        thread = threading.Thread(target=self._measure_live, args=(keys,), name="measure")
        self._measuring = [*(t for t in self._measuring if t.is_alive()), thread]
        thread.start()
        return []

    def state(self) -> list[LinkState]:
        if self._counters is None:
            raise HostError("The network is not built: enter it first.")
        return [
            LinkState(
                reading.link,
                reading.forward,
                reading.sent_bytes,
                self._asked(reading.link, reading.forward),
                self.measured.get((reading.link, reading.forward)),
                reading.link not in self.down,
            )
            for reading in self._counters.read()
        ]

    def _measure_live(self, keys: list[tuple[int, bool]]) -> None:
        """One direction after the other, and only what still has the rate that was measured."""
        counters = self._counters
        for key in keys:
            asked = self._asked(*key)
            if counters is None or key[0] in self.down:
                return
            achieved = measure_busy(self._stretch(*key), lambda key=key: counters.sent(*key))  # type: ignore[misc]
            if achieved is not None and self._asked(*key) == asked:
                self._note({key: achieved})

    def _stretch(self, link: int, forward: bool) -> Stretch:
        sender, receiver = self.layout.sender(link, forward), self.layout.receiver(link, forward)
        return Stretch(
            link,
            forward,
            self._pids[sender.node],
            self._pids[receiver.node],
            self.layout.node(receiver.node).address,
            self._asked(link, forward) / self.dilation,
        )

    def _note(self, achieved: Achieved) -> None:
        self.measured = self.measured | {key: rate * self.dilation for key, rate in achieved.items()}

    # building

    def _configure(self) -> None:
        for pid in self._pids.values():
            inside(pid, _write_sysctls)
        base = {node.name: self.layout.base_batch(node) for node in self.layout.nodes}
        for link, forward in self.ways:
            end = self.layout.sender(link, forward)
            if link in self._impairments.backend.relayed:
                base[end.node] += tap_lines(end)
            base[end.node] += (self._piece_line(end),)
        self._ip(base | self.layout.batches)

    def _piece_line(self, end: Interface) -> str:
        """The `ip -batch` line for the pieces in which TCP hands over what `end` sends.

        Where packets are lost a piece is one frame, or several would be lost as one.
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
                Command(self._pids[node], ("ip", "-batch", "-"), "\n".join(own) + "\n")
                for node, own in by_node.items()
            ]
        )

    def _asked(self, link: int, forward: bool) -> float:
        """Virtual bit/s of a direction now."""
        return self._impairments.links[link].rate(forward)


def _write_sysctls() -> None:
    for name, value in SYSCTLS.items():
        path = Path("/proc/sys/net") / name
        if path.exists():  # a kernel without IPv6 has no switch for it
            path.write_text(value)
