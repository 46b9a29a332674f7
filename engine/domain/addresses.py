"""Where a board may say that others connect to it.

What a board says is somebody else's word, and other boards and this server's processes connect there: it must
not lead them to services that answer only this machine.
"""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

LEAST_PORT = 1024
"""Of what a board listens at, which its system has chosen: lower ones are of services."""

Address = IPv4Address | IPv6Address


class Origin(NamedTuple):
    """Where the connection of a board to the server came from, "" if that is unknown, and the server's own
    addresses. The server says it to a run's session on the board's socket, before anything of the board's.
    """

    address: str
    own: tuple[str, ...] = ()

    def line(self) -> bytes:
        return json.dumps({"type": "origin"} | self._asdict()).encode() + b"\n"

    def why_not(self, said: str) -> str:
        """Why others must not connect to a board at the address that it has said; "" if they may."""
        address, source = read(said), read(self.address)
        if address is None:
            return "which is no IP address"
        if address == source:
            return ""
        ours = {read(one) for one in self.own}
        if address.is_loopback or address in ours:
            is_here = source is not None and (source.is_loopback or source in ours)
            return "" if is_here else "which is the server's own"
        unusual = (address.is_link_local, address.is_multicast, address.is_unspecified, address.is_reserved)
        return "which is that of no machine in a network" if any(unusual) else ""


def read(text: str) -> Address | None:
    """The address that a text is, in its plain form: ::ffff:127.0.0.1 is 127.0.0.1. None if it is none."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def own_addresses(proc: Path = Path("/proc/net")) -> tuple[str, ...]:
    """The addresses of this machine, as its kernel has them (Documentation/networking/fib_trie.rst)."""
    found = re.findall(r"\|-- (\S+)\n\s+/32 host LOCAL", (proc / "fib_trie").read_text())
    of_six = proc / "if_inet6"  # absent without IPv6
    lines = of_six.read_text().splitlines() if of_six.exists() else []
    return (*dict.fromkeys(found), *(str(IPv6Address(int(line.split()[0], 16))) for line in lines))
