"""How long an all-reduce takes on a cluster by each algorithm, and which one is fastest. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.program.collectives import AllReduce
from engine.strategies.shared.messages import fixed_s

AllReduceChoice = Literal["auto", "ring", "direct", "tree", "star"]
"""auto: ring or direct, whichever is predicted to be faster; prompts and single tokens have one each."""

ALL_REDUCE_HELP = (
    "How partial sums are added up: ring has the fewest bytes, direct one hop, star and tree few messages; "
    "auto takes ring or direct, for prompts and for tokens the faster one."
)
"""Description of the parameter `all_reduce`."""

HOP_S = 100e-6
"""The least that a message costs beside its bytes and the links' delay, also where a device states no cost
per message: two system calls and waking a process.
"""


def all_reduce_s(how: AllReduce, members: int, size_bytes: float, bit_per_s: float, delay_s: float) -> float:
    """Seconds of an all-reduce of `size_bytes` over equal links: `delay_s` is one path's delay.

    star    the first member's link carries (K-1)·z in, then (K-1)·z out.
    ring    2(K-1) steps of z/K.
    tree    2·⌈log₂ K⌉ steps of z.
    direct  every member's link carries (K-1)·z out and as much in, at once.
    """
    if members == 1:
        return 0.0
    z_s = 8 * size_bytes / bit_per_s
    return {
        "star": 2 * ((members - 1) * z_s + delay_s),
        "ring": 2 * (members - 1) * (z_s / members + delay_s),
        "tree": 2 * (members - 1).bit_length() * (z_s + delay_s),
        "direct": (members - 1) * z_s + delay_s,
    }[how]


def cluster_all_reduce_s(
    cluster: ClusterSpec, group: Sequence[int], size_bytes: int, how: AllReduce, least_hop_s: float = 0.0
) -> float:
    """Seconds of an all_reduce as if every path were like the worst one to or from the first member; a hop
    costs `least_hop_s` at least.
    """
    first, *others = group
    if not others:
        return 0.0
    ways = [way for peer in others for way in ((first, peer), (peer, first))]
    hops = [hop for src, dst in ways for hop in cluster.path(src, dst)]
    bit_per_s = min(cluster.links[hop.link].rate(hop.forward) for hop in hops)
    delay_s = max(fixed_s(cluster, src, dst) for src, dst in ways)
    return all_reduce_s(how, 1 + len(others), size_bytes, bit_per_s, max(delay_s, least_hop_s))


def chosen_all_reduce(
    cluster: ClusterSpec, group: Sequence[int], size_bytes: int, choice: AllReduceChoice
) -> AllReduce:
    """The algorithm for sums of `size_bytes`: `choice` itself unless it is auto."""
    if choice != "auto":
        return choice
    ways: tuple[AllReduce, ...] = ("ring", "direct")
    return min(ways, key=lambda how: cluster_all_reduce_s(cluster, group, size_bytes, how, HOP_S))
