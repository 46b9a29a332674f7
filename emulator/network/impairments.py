"""Holds the present settings of all links (rate, delay, jitter, loss), and applies them to the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from emulator.network.backend import Backend, Has, check_live, choose_backend, drop_at_random
from emulator.network.layout import Direction, Interface, NetworkLayout
from emulator.network.relays import Impairment, Relays
from emulator.network.shaping import Port, Shape, change_shapes
from engine.domain.cluster import ClusterSpec
from engine.domain.conditions import changed_link
from engine.domain.scenario import Change, SetDelay, SetJitter, SetLoss, SetRate


class Impairments:
    """Delays and losses of all links, by whichever back end there is. `set` changes the wanted `links`;
    `apply` changes the network. Call `start` first and `close` last.

    Raises `HostError` if this machine cannot do what the cluster and its timed `changes` ask for.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        layout: NetworkLayout,
        dilation: float,
        has: Has,
        changes: Iterable[Change],
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
        """Whether the receiving device waits for this link's delay, present or future."""
        return not self.backend.in_network(link) and not self.has("netem")

    def set(self, change: SetRate | SetDelay | SetLoss | SetJitter) -> None:
        """Change the settings in `links`. Raises `HostError` if a running network cannot apply the change."""
        index = self.index(change.link)
        links = [*self.links[:index], changed_link(self.links[index], change), *self.links[index + 1 :]]
        if not isinstance(change, SetRate) and not self.backend.in_network(index):
            if self.has("netem"):  # netem can be added to a running network
                self.backend = self.backend._replace(netem=True)
            else:
                check_live(links, index, self.backend, self.has)
        self.links = links

    def apply(self, directions: Sequence[Direction], off: bool = False) -> None:
        """Apply delay, jitter and loss of `links` to these directions, or none (`off`)."""
        if self.backend.netem:
            ends = [self.layout.sender(*direction) for direction in directions]
            change_shapes([(self.port(end), self.shape(end, off)) for end in ends])
            return
        relayed = [direction for direction in directions if direction[0] in self.backend.relayed]
        if self._relays is not None and relayed:
            self._relays.set({key: Impairment() if off else self._impairment(*key) for key in relayed})
        if not off:
            self._drop(directions)

    def shape(self, end: Interface, plain: bool = False) -> Shape:
        """The shape of the frames that the interface `end` sends; `plain`: no delay, jitter or loss."""
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

    def _drop(self, directions: Sequence[Direction]) -> None:
        """Let nft drop packets of these directions on arrival, and set all rules of their nodes again."""
        nodes = {self.layout.receiver(*direction).node for direction in directions}
        losses = {}
        for pair in self.layout.ends:
            for sender, receiver in (pair, pair[::-1]):
                if receiver.node in nodes and not self.backend.in_network(sender.link):
                    losses[self.port(receiver)] = self.links[sender.link].loss(sender.forward)
        self._dropping |= {port.pid for port, loss_frac in losses.items() if loss_frac}
        drop_at_random({port: loss for port, loss in losses.items() if port.pid in self._dropping})
