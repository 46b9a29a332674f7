"""Times one message over two shaped hops on an idle connection and compares it with size / bandwidth."""

from __future__ import annotations

import os
import socket
import statistics
import threading
import time

from bench.emulation.clusters import star
from bench.tables.rows import Table
from emulator.host.priority import run_in_real_time
from emulator.network.measure import LinkTransfer, connect, fill
from emulator.session.calls import call
from engine.domain.units import human, human_s, transfer_s

RATES = (1e6, 10e6, 100e6, 1000e6)
SIZES = (4 * 1024, 64 * 1024, 1024 * 1024)
MAX_MESSAGE_S = 4.0  # a megabyte at 1 Mbit/s would take 8
REPEATS = 7
IDLE_S = 0.02


def measure_links() -> Table:
    rows = []
    for rate in RATES:
        for size, median_s, low_s, high_s in call(message_times, rate):
            ideal_s = transfer_s(size, rate)
            rows.append(
                (
                    human(rate, "bit/s"),
                    human(size, "B"),
                    human_s(ideal_s),
                    human_s(median_s),
                    f"{median_s / ideal_s:.3f}",
                    f"{low_s / ideal_s:.3f}…{high_s / ideal_s:.3f}",
                )
            )
    title = f"One message over two hops, median of {REPEATS}; ratio to size / bandwidth, and its range."
    return Table(title, ("rate", "size", "size / rate", "took", "ratio", "range"), tuple(rows))


def message_times(rate: float) -> list[tuple[int, float, float, float]]:
    """Times of messages: (size, median, shortest, longest seconds) of every size that is not too long at this
    rate.
    """
    from emulator.network.mininet_network import MininetNetwork

    results = []
    run_in_real_time(os.getpid())  # as devices do
    network = MininetNetwork(star(2, 1e9, rate), 1.0)
    with network:
        pids = [network.pid(rank) for rank in (0, 1)]
        sender, receiver = connect(LinkTransfer(0, True, pids[0], pids[1], network.address(1), rate))
        with sender, receiver:
            for size in SIZES:
                if transfer_s(size, rate) <= MAX_MESSAGE_S:
                    times = [_message_s(sender, receiver, size) for _ in range(REPEATS + 1)][1:]
                    results.append((size, statistics.median(times), min(times), max(times)))
    return results


def _message_s(sender: socket.socket, receiver: socket.socket, size: int) -> float:
    """Seconds from the start of sending to the arrival of the last byte, after a pause."""
    buffer, arrived = bytearray(size), [0.0]

    def receive() -> None:
        fill(receiver, buffer)
        arrived[0] = time.monotonic()

    thread = threading.Thread(target=receive)
    thread.start()
    time.sleep(IDLE_S)  # the measurement needs an idle connection: this is no wait for a condition
    began_s = time.monotonic()
    sender.sendall(buffer)
    thread.join()
    return arrived[0] - began_s
