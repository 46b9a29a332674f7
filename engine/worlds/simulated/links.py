"""Delay, packet loss and outages of a simulated cluster's links, as the scenario has changed them.

Rates are in `flows.py`, because flows share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from engine.domain.cluster import ClusterSpec
from engine.domain.outages import Outages
from engine.domain.scenario import Change, SetDelay, SetLoss, SetRate
from engine.worlds.simulated.flows import DirectedLink, Route


class LinkConditions:
    """The present conditions of all links: `delay_s` and `loss_frac` of every directed one, and those that
    are down.
    """

    def __init__(self, cluster: ClusterSpec):
        self.cluster = cluster
        self.delay_s: dict[DirectedLink, float] = {}
        self.loss_frac: dict[DirectedLink, float] = {}
        for index, link in enumerate(cluster.links):
            for forward in (True, False):
                self.delay_s[index, forward] = link.delay(forward)
                self.loss_frac[index, forward] = link.loss(forward)
        self.outages = Outages(cluster)

    def apply(self, change: Change) -> None:
        """Apply a change of delay, loss or state; a change of rate or speed has no effect here."""
        self.outages.apply(change)
        match change:
            case SetDelay():
                for link in self.changed(change):
                    self.delay_s[link] = change.delay_s
            case SetLoss():
                for link in self.changed(change):
                    self.loss_frac[link] = change.loss_frac

    def changed(self, change: SetRate | SetDelay | SetLoss) -> Iterable[DirectedLink]:
        """The directed links that `change` is about."""
        index = self.cluster.link_index(change.link)
        for forward, name in ((True, "forward"), (False, "backward")):
            if change.direction in ("both", name):
                yield index, forward

    @property
    def blocked(self) -> frozenset[int]:
        """The links that nothing passes: they are down, or lose all packets or all acknowledgements."""
        lost = {index for (index, _), loss_frac in self.loss_frac.items() if loss_frac >= 1}
        return self.outages.down | lost

    def path_delay_s(self, route: Route) -> float:
        return sum(self.delay_s[link] for link in route)

    def path_loss_frac(self, route: Route) -> float:
        """The fraction of packets that do not pass all links of `route`."""
        return 1 - prod(1 - self.loss_frac[link] for link in route)
