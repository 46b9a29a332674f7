"""Kernel settings of every node: forwarding, static paths, and TCP as on long-lived connections."""

from __future__ import annotations

from pathlib import Path

from emulator.network.windows import TCP_RMEM

SYSCTLS = {
    "ipv4/ip_forward": "1",
    # Paths follow the cluster file, which may lead there and back by different links.
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
    # After a pause a connection would begin with slow start, and a message take 2-3 times too long.
    "ipv4/tcp_slow_start_after_idle": "0",
    # BBR, the default of some hosts, paces frames over a round trip, also in connections that leave it.
    "ipv4/tcp_congestion_control": "reno",
    # Where pieces are single frames, corking would keep the end of a message back until the rest has left,
    # and other messages would pass it. A board's TCP hands over two frames as one piece.
    "ipv4/tcp_autocorking": "0",
    # A new connection's receive window would grow only as frames arrive, and delay the first long messages.
    "ipv4/tcp_rmem": TCP_RMEM,
    # Nothing uses IPv6; its neighbour discovery would be counted as traffic.
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
}


def write_sysctls(tcp_wmem: str | None = None) -> None:
    """Apply `SYSCTLS`, and send buffers, in the network namespace of the calling thread."""
    settings = SYSCTLS if tcp_wmem is None else SYSCTLS | {"ipv4/tcp_wmem": tcp_wmem}
    for name, value in settings.items():
        path = Path("/proc/sys/net") / name
        if path.exists():  # a kernel without IPv6 has no switch for it
            path.write_text(value)
