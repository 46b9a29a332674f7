"""Datagrams between two devices of an emulated network: how long each was on its way, and which were lost.

The kernel's clock says when a datagram came, so it does not matter when a busy host lets somebody read it.
What follows all others says that they have arrived or never will, so nobody guesses for how long to wait.
"""

import socket
import struct
import time

from emulator.host.namespaces import inside
from emulator.network.mininet_network import MininetNetwork

BURST = 50
"""Datagrams at a time: they fit into the queues of buckets, and pass them in much less than a millisecond."""
SO_TIMESTAMPNS = 35  # asm-generic/socket.h
AGAIN_S = 0.1
"""After so long a lossy link gets the datagram that follows all others once more."""
PATIENCE_S = 600.0


class Datagrams:
    """From device `src` to device `dst`; all namespaces share a clock."""

    def __init__(self, network: MininetNetwork, src: int = 0, dst: int = 1):
        self.sender, self.receiver = (
            inside(network.pid(rank), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for rank in (src, dst)
        )
        self.receiver.bind((network.address(dst), 0))
        self.receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.last = 0

    def __enter__(self) -> "Datagrams":
        return self

    def __exit__(self, *exc: object) -> None:
        self.sender.close()
        self.receiver.close()

    def one_by_one_s(self, count: int) -> list[float]:
        """Wall seconds of `count` datagrams over a link that loses none, each sent after the last came."""
        self.receiver.settimeout(PATIENCE_S)
        found = []
        for _ in range(count):
            self._send(0)
            found.append(self._received()[1])
        return found

    def in_bursts_s(self, count: int) -> list[float]:
        """Wall seconds of those of `count` datagrams that arrive."""
        self.receiver.settimeout(AGAIN_S)
        found: list[float] = []
        for start in range(0, count, BURST):
            for _ in range(min(BURST, count - start)):
                self._send(0)
            self.last += 1
            while not self._is_through(found):
                continue
        self.last += 1
        self._is_through(found)  # a link whose jitter changes the order lets the last one overtake
        return found

    def _is_through(self, found: list[float]) -> bool:
        """Send the datagram that follows all others; add what arrives before it. Whether it has arrived."""
        self._send(self.last)
        try:
            while True:
                number, taken_s = self._received()
                if number == self.last:
                    return True
                if not number:
                    found.append(taken_s)
        except TimeoutError:
            return False

    def _send(self, number: int) -> None:
        self.sender.sendto(f"{number} {time.time_ns()}".encode(), self.receiver.getsockname())

    def _received(self) -> tuple[int, float]:
        """The number of the next datagram, 0 for one that counts, and its seconds on the way."""
        text, ((_, _, stamp),), *_ = self.receiver.recvmsg(100, 100)
        number, sent_ns = map(int, text.split())
        seconds, nanoseconds = struct.unpack("qq", stamp)
        return number, (seconds * 10**9 + nanoseconds - sent_ns) / 1e9
