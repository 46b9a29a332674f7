"""Chooses what adds delay, jitter and loss to links: netem, relay processes, nft or the receiver.

The choice is made once per run and named in its report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from emulator.host.namespaces import NodeCommand, run_each
from emulator.network.shaping import Port
from engine.domain.cluster import ClusterSpec, LinkSpec
from engine.domain.command_name import COMMAND
from engine.domain.conditions import changed_link
from engine.domain.errors import HostError
from engine.domain.scenario import Change, SetDelay, SetJitter, SetLoss

LOSS_STEPS = 1_000_000  # nft draws one of so many numbers per packet

Has = Callable[[str], bool]


class Backend(NamedTuple):
    """What delays and loses packets. `netem`: the kernel, on all links. `relayed`: relay processes do it on
    these links.

    On other links the receiving device waits for the delay, and nft drops packets.
    """

    netem: bool = False
    relayed: frozenset[int] = frozenset()

    def in_network(self, link: int) -> bool:
        """Whether packets on the wire are delayed and lost, so that TCP reacts to it."""
        return self.netem or link in self.relayed

    def name(self, links: Sequence[LinkSpec]) -> str:
        """Name for the report, such as `tbf+netem`, for the links as they are now."""
        others = [link for index, link in enumerate(links) if not self.in_network(index)]
        used = {
            "netem": self.netem,
            "relay": bool(self.relayed),
            "delay-line": any(map(is_delayed, others)),
            "nft": any(map(is_lossy, others)),
        }
        return "+".join(["tbf", *(word for word, is_used in used.items() if is_used)])


def choose_backend(cluster: ClusterSpec, has: Has, changes: Iterable[Change] = ()) -> Backend:
    """Choose by what the cluster and its timed changes need and what this machine `has`.

    Raises `HostError` if the machine cannot add a delay, jitter or loss that is asked for.
    """
    worst = _at_worst(cluster, changes)
    asked = [index for index, link in enumerate(worst) if is_delayed(link) or is_lossy(link) or link.jitter_s]
    if not asked:
        return Backend()
    if has("netem"):
        return Backend(netem=True)
    delayed, lossy = any(map(is_delayed, worst)), any(map(is_lossy, worst))
    jittered = next((link for link in worst if link.jitter_s), None)
    if not jittered and (not lossy or (not delayed and has("nft"))):
        return Backend()
    if has("tun"):
        return Backend(relayed=frozenset(asked))
    first = jittered or next(link for link in worst if is_lossy(link))
    figure = f"jitter_s {first.jitter_s:g}" if jittered else f"loss_frac {max(losses(first)):g}"
    raise HostError(
        f"link {first.name} has {figure}, which needs netem or TUN devices, and this machine has neither: "
        f"set it to 0, or see {COMMAND} doctor."
    )


def check_live(links: Sequence[LinkSpec], changed: int, backend: Backend, has: Has) -> None:
    """Check that a running network can take the change of `links[changed]`, which is not `in_network`.

    Raises `HostError` if not: without netem, a link gets its relay before the run starts or never.
    """
    link = links[changed]
    if link.jitter_s:
        raise HostError(
            f"link {link.name} cannot get jitter while the run goes on, without netem: draw the link with "
            "some, or make it a timed change."
        )
    others = [each for index, each in enumerate(links) if not backend.in_network(index)]
    if not any(map(is_lossy, others)):
        return
    if any(map(is_delayed, links)):
        raise HostError(
            f"link {link.name} cannot get this while the run goes on: TCP would not feel delay and loss "
            "together. Draw the link with some of each, or make it a timed change."
        )
    if not has("nft"):
        raise HostError(
            f"link {link.name} cannot lose packets while the run goes on, without nft and netem: install "
            "nftables, or make it a timed change."
        )


def is_delayed(link: LinkSpec) -> bool:
    return link.delay(True) > 0 or link.delay(False) > 0


def is_lossy(link: LinkSpec) -> bool:
    return max(losses(link)) > 0


def losses(link: LinkSpec) -> tuple[float, float]:
    return link.loss(True), link.loss(False)


def _at_worst(cluster: ClusterSpec, changes: Iterable[Change]) -> list[LinkSpec]:
    """The links with every impairment that the run ever asks for: a figure is 0 only if it stays 0."""
    links = list(cluster.links)
    for change in changes:
        figure = any(getattr(change, name, 0.0) for name in ("delay_s", "loss_frac", "jitter_s"))
        if isinstance(change, SetDelay | SetLoss | SetJitter) and figure:
            index = cluster.link_index(change.link)
            links[index] = changed_link(links[index], change)
    return links


def drop_at_random(losses_of: Mapping[Port, float]) -> None:
    """Drop these fractions of the packets that arrive at ports, before routing.

    Replaces all earlier rules in the namespaces of these ports.
    """
    by_pid: dict[int, list[str]] = {}
    for port, loss_frac in losses_of.items():
        steps = round(loss_frac * LOSS_STEPS)
        rules = by_pid.setdefault(port.pid, [])
        if steps:
            rule = f'iifname "{port.interface}" numgen random mod {LOSS_STEPS} < {steps} drop'
            rules.append(f"add rule inet edgeloom loss {rule}")
    table = [
        "add table inet edgeloom",
        "add chain inet edgeloom loss { type filter hook prerouting priority -300; }",
        "flush chain inet edgeloom loss",
    ]
    run_each(
        [
            NodeCommand(pid, ("nft", "-f", "-"), "\n".join([*table, *rules]) + "\n")
            for pid, rules in by_pid.items()
        ]
    )
