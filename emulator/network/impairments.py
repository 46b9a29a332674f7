"""The links of a running network as they are asked for now, and their delay, jitter and loss made real."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from emulator.network.backend import Backend, Has, check_live, choose_backend, drop_at_random
from emulator.network.layout import Interface, Layout
from emulator.network.relays import Impairment, Relays
from emulator.network.shaping import Port, Shape, change_shapes
from engine.domain.cluster import ClusterSpec
from engine.domain.conditions import changed_link
from engine.domain.scenario import Change, SetDelay, SetLoss, SetRate

Way = tuple[int, bool]
"""A link's index and whether a→b."""


class Impairments:
    """Between `start` and `close`, `links` change with `change`, and `apply` makes them so.

    Raises `HostError` at once if this machine cannot do what the cluster and its timed `changes` ask.
    """

    def __init__(
        self, cluster: ClusterSpec, layout: Layout, dilation: float, has: Has, changes: Iterable[Change]
    ):
        self.layout = layout
        self.dilation = dilation
        self.has = has
        self.links = list(cluster.links)
        self.index = cluster.link_index
        self.backend: Backend = choose_backend(cluster, has, changes)
        self.pids: Mapping[str, int] = {}
        self._relays: Relays | None = None
        self._dropping: set[int] = set()  # processes in whose namespaces nft has rules

    @property
    def name(self) -> str:
        return self.backend.name(self.links)

    def start(self, pids: Mapping[str, int]) -> None:
        """Make the interfaces of relayed links, in the namespaces of `pids` by node."""
        self.pids = pids
        if self.backend.relayed:
            self._relays = Relays([self.layout.ends[link] for link in sorted(self.backend.relayed)], pids)

    def close(self) -> None:
        if self._relays is not None:
            self._relays.close()
        self._relays = None

    def is_held(self, link: int) -> bool:
        """Whether a delay of this link, drawn or to come, is the receiver's to keep."""
        return not self.backend.in_network(link) and not self.has("netem")

    def set(self, change: SetRate | SetDelay | SetLoss) -> None:
        """Ask for something else; raises `HostError` for what a running network cannot take."""
        index = self.index(change.link)
        links = [*self.links[:index], changed_link(self.links[index], change), *self.links[index + 1 :]]
        if not isinstance(change, SetRate) and not self.backend.in_network(index):
            if self.has("netem"):  # from here on all links have it
                self.backend = self.backend._replace(netem=True)
            else:
                check_live(links, index, self.backend, self.has)
        self.links = links

    def apply(self, ways: Sequence[Way], off: bool = False) -> None:
        """Delay, jitter and lose as `links` say, or (`off`) not at all. Receivers do what is left."""
        if self.backend.netem:
            ends = [self.layout.sender(*way) for way in ways]
            change_shapes([(self.port(end), self.shape(end, off)) for end in ends])
            return
        relayed = [way for way in ways if way[0] in self.backend.relayed]
        if self._relays is not None and relayed:
            self._relays.set({way: Impairment() if off else self._impairment(*way) for way in relayed})
        if not off:
            self._drop(ways)

    def shape(self, end: Interface, plain: bool = False) -> Shape:
        """Of the direction that `end` sends; `plain` is without delay, jitter and loss."""
        rate = self.links[end.link].rate(end.forward) / self.dilation
        if not self.backend.netem:
            return Shape(rate)
        return Shape(rate, True, *(Impairment() if plain else self._impairment(end.link, end.forward)))

    def port(self, end: Interface) -> Port:
        link = self.links[end.link]
        label = f"{link.a}→{link.b}" if end.forward else f"{link.b}→{link.a}"
        return Port(self.pids[end.node], end.name, label)

    def _impairment(self, link: int, forward: bool) -> Impairment:
        spec, dilation = self.links[link], self.dilation
        return Impairment(spec.delay(forward) * dilation, spec.jitter_s * dilation, spec.loss(forward))

    def _drop(self, ways: Sequence[Way]) -> None:
        """What these directions lose on arrival, by nft; rules are renewed node by node."""
        nodes = {self.layout.receiver(*way).node for way in ways}
        losses = {}
        for pair in self.layout.ends:
            for sender, receiver in (pair, pair[::-1]):
                if receiver.node in nodes and not self.backend.in_network(sender.link):
                    losses[self.port(receiver)] = self.links[sender.link].loss(sender.forward)
        self._dropping |= {port.pid for port, loss_frac in losses.items() if loss_frac}
        drop_at_random({port: loss for port, loss in losses.items() if port.pid in self._dropping})
