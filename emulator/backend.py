"""Who realises delay, jitter and loss on this machine: decided once per run, and named in its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from emulator.namespaces import Command, run_each
from emulator.shaping import Port, Shape
from engine.cluster import ClusterSpec, LinkSpec
from engine.errors import HostError

LOSS_STEPS = 1_000_000  # nft draws one of so many numbers per packet


class Backend(NamedTuple):
    """`name` goes into the report. Without netem, delays are the receiver's to keep (`holds_delay`)."""

    name: str
    has_netem: bool
    holds_delay: bool
    drops_by_nft: bool

    def shape(self, link: LinkSpec, bit_per_s: float, dilation: float) -> Shape:
        """What the kernel shall do for one direction: virtual figures in, wall-clock ones out."""
        if not self.has_netem:
            return Shape(bit_per_s / dilation)
        return Shape(bit_per_s / dilation, link.delay_s * dilation, link.jitter_s * dilation, link.loss_frac)


def choose_backend(cluster: ClusterSpec, has: Callable[[str], bool]) -> Backend:
    """Pick by what the cluster asks and the machine `has`; raises `HostError` rather than ignore a figure."""
    delayed = _first(cluster, lambda link: link.delay_s > 0)
    jittered = _first(cluster, lambda link: link.jitter_s > 0)
    lossy = _first(cluster, lambda link: link.loss_frac > 0)
    if not (delayed or jittered or lossy):
        return Backend("tbf", False, False, False)
    if has("netem"):
        return Backend("tbf+netem", True, False, False)
    if jittered:
        raise HostError(
            f"link {jittered.name} has jitter_s {jittered.jitter_s:g}, and this kernel has no netem: "
            "set it to 0, or use a host with sch_netem."
        )
    if lossy and delayed:
        raise HostError(
            f"link {lossy.name} has loss_frac {lossy.loss_frac:g} and link {delayed.name} has delay_s "
            f"{delayed.delay_s:g}, and this kernel has no netem, without which TCP would not feel the two "
            "together: set one of them to 0, or use a host with sch_netem."
        )
    if lossy and not has("nft"):
        raise HostError(
            f"link {lossy.name} has loss_frac {lossy.loss_frac:g}, and this machine has neither netem nor "
            "nft: install nftables, or set it to 0."
        )
    if lossy:
        return Backend("tbf+nft", False, False, True)
    return Backend("tbf+delay-line", False, True, False)


def drop_at_random(losses: Sequence[tuple[Port, float]]) -> None:
    """Drop a fraction of the packets that arrive at each port, before they are forwarded or delivered."""
    by_pid: dict[int, list[str]] = {}
    for port, loss_frac in losses:
        steps = round(loss_frac * LOSS_STEPS)
        rule = f'iifname "{port.interface}" numgen random mod {LOSS_STEPS} < {steps} drop'
        by_pid.setdefault(port.pid, []).append(f"add rule inet edgeloom loss {rule}")
    table = [
        "add table inet edgeloom",
        "add chain inet edgeloom loss { type filter hook prerouting priority -300; }",
    ]
    run_each([
        Command(pid, ("nft", "-f", "-"), "\n".join([*table, *rules]) + "\n") for pid, rules in by_pid.items()
    ])


def _first(cluster: ClusterSpec, asks: Callable[[LinkSpec], bool]) -> LinkSpec | None:
    return next((link for link in cluster.links if asks(link)), None)
