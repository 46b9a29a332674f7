"""Finds the links of a cluster that carry nothing: those that were taken down, and all links of a dropped
device.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import Change, DropDevice, JoinDevice, LinkDown, LinkUp


class Outages:
    """A fold over the changes of a run. Every world and every device has its own copy.

    Dropping a device takes its links down until it joins. A link that a `link_down` took down stays down
    until a `link_up`, whatever happens to the devices at its ends; and a `link_up` of a dropped device's link
    has no effect before the device joins.
    """

    def __init__(self, cluster: ClusterSpec):
        self.cluster = cluster
        self._cut_s: dict[int, float] = {}
        self._dropped_s: dict[int, float] = {}

    def apply(self, change: Change) -> None:
        """Take `change` into account; changes of rates, delays, losses and speeds have no effect here."""
        match change:
            case LinkDown():
                self._cut_s.setdefault(self.cluster.link_index(change.link), change.at_s)
            case LinkUp():
                self._cut_s.pop(self.cluster.link_index(change.link), None)
            case DropDevice():
                self._dropped_s.setdefault(self.cluster.rank(change.device), change.at_s)
            case JoinDevice():
                self._dropped_s.pop(self.cluster.rank(change.device), None)

    @property
    def down(self) -> frozenset[int]:
        """The indices of all links that are down."""
        dropped = {link for rank in self._dropped_s for link in self.links_of(rank)}
        return frozenset(self._cut_s) | dropped

    def links_of(self, rank: int) -> tuple[int, ...]:
        """The links that end at device `rank`."""
        name = self.cluster.devices[rank].name
        return tuple(index for index, link in enumerate(self.cluster.links) if name in (link.a, link.b))

    def since_s(self, links: Iterable[int]) -> float | None:
        """The virtual time since which a link among `links` is down; None if all of them are up."""
        wanted = set(links)
        times_s = [at_s for link, at_s in self._cut_s.items() if link in wanted]
        times_s += [at_s for rank, at_s in self._dropped_s.items() if wanted & set(self.links_of(rank))]
        return min(times_s, default=None)


def reaches(cluster: ClusterSpec, blocked: Collection[int], a: int, b: int) -> bool:
    """Whether packets pass between ranks `a` and `b` in both directions while the links `blocked` carry
    nothing. Routes do not change when links fail.
    """
    return not any(hop.link in blocked for hop in (*cluster.path(a, b), *cluster.path(b, a)))
