"""Bulk data between two devices of an emulated network, for tests inside its namespaces."""

import select
import socket
import threading
import time

from emulator.network.measure import LinkTransfer, connect, waiting_bytes
from emulator.network.mininet_network import MininetNetwork


def connection(network: MininetNetwork, src: int, dst: int) -> tuple[socket.socket, socket.socket]:
    return connect(LinkTransfer(0, True, network.pid(src), network.pid(dst), network.address(dst), 1.0))


class Stream:
    """Bulk data from one device to another until closed; counts what arrives."""

    def __init__(self, network: MininetNetwork, src: int, dst: int):
        self.sender, self.receiver = connection(network, src, dst)
        self.sender.settimeout(None)
        self.receiver.setblocking(False)
        self.arrived = 0
        self.reading = threading.Lock()
        self.threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self) -> None:
        data = bytes(16 * 1024)
        try:
            while True:
                self.sender.sendall(data)
        except OSError:
            return

    def _receive(self) -> None:
        buffer = bytearray(64 * 1024)
        try:
            while True:
                select.select([self.receiver], [], [])
                with self.reading:
                    count = self.receiver.recv_into(buffer)
                    self.arrived += count
                if not count:
                    return
        except OSError:
            return

    def wait_for(self, more: int, deadline_s: float = 60.0) -> None:
        """Until `more` bytes have arrived; raises if they never do."""
        began_s, goal = time.monotonic(), self.arrived + more
        while self.arrived < goal:
            if time.monotonic() - began_s > deadline_s:
                raise TimeoutError(f"{goal - self.arrived} bytes missing")
            time.sleep(0.002)

    def bit_per_s(self, size: int) -> float:
        """The rate at which about `size` more bytes come out of the network, whenever they are read."""
        began_s, before = time.monotonic(), self._come()
        self.wait_for(size)
        come = self._come() - before
        return come * 8 / (time.monotonic() - began_s)

    def _come(self) -> int:
        """Bytes that have been read or wait to be."""
        with self.reading:
            return self.arrived + waiting_bytes(self.receiver)

    def close(self) -> None:
        self.sender.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        self.sender.close()
        self.receiver.close()
