"""A process that forwards Ethernet frames between TAP interfaces with delay, jitter and loss.

It replaces netem on kernels without it. Rates stay the kernel's: each interface has a token bucket. Usage:
`relay.py FD DIRECTIONS`. DIRECTIONS is JSON, one `[from, to, seed]` (file descriptors) per direction. FD is a
socket that takes lines of JSON, `[direction, delay_s, jitter_s, loss_frac]` in wall seconds, and answers each
with the same line once it is in force. Frames of a direction keep their order, so that TCP does not mistake
jitter (uniform, delay ± jitter) for loss.

It imports the standard library only, so it starts within some 20 ms. It ends when its socket closes.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import select
import socket
import sys
import time
from collections.abc import Sequence

FRAME_BYTES = 66_000  # more than TCP's largest piece, which comes uncut, with an Ethernet and a virtio header
READ_TURN = 32  # frames read from one direction before the next direction is read

EARLY_S = 50e-6
"""`select` wakes this long before a frame is due, since it wakes 40 µs late. Frames due within twice this
time are sent too: each sleep avoided saves 27 µs of processor time."""


class RelayedDirection:
    """One direction of a link."""

    __slots__ = ("delay_s", "jitter_s", "last_s", "loss_frac", "random", "source", "target")

    def __init__(self, source: int, target: int, seed: str):
        self.source, self.target = source, target
        self.random = random.Random(seed)
        self.delay_s = self.jitter_s = self.loss_frac = self.last_s = 0.0

    def due_s(self, now_s: float) -> float | None:
        """When to forward a frame that arrives now; None if it is lost."""
        if self.loss_frac and self.random.random() < self.loss_frac:
            return None
        delay_s = self.delay_s
        if self.jitter_s:
            delay_s = max(0.0, delay_s + self.random.uniform(-self.jitter_s, self.jitter_s))
        self.last_s = max(self.last_s, now_s + delay_s)
        return self.last_s


class Relay:
    """All directions of one process, and a heap of the frames that wait, the earliest due first."""

    def __init__(self, control: socket.socket, directions: Sequence[RelayedDirection]):
        self.control = control
        self.directions = list(directions)
        self.by_source = {direction.source: direction for direction in directions}
        self.heap: list[tuple[float, int, int, bytes]] = []
        self.serial = 0
        self.pending = b""
        self.watching = select.epoll()
        """All descriptors: their numbers may be higher than those that `select` takes."""
        for descriptor in (control.fileno(), *self.by_source):
            self.watching.register(descriptor, select.EPOLLIN)

    def run(self) -> None:
        """Forward frames until the control socket closes."""
        while True:
            now_s = time.monotonic()
            while self.heap and self.heap[0][0] <= now_s + 2 * EARLY_S:
                _, _, target, frame = heapq.heappop(self.heap)
                write_frame(target, frame)
            # select of that one, because it alone has a resolution of microseconds
            timeout_s = max(0.0, self.heap[0][0] - EARLY_S - time.monotonic()) if self.heap else None
            if not select.select([self.watching], [], [], timeout_s)[0]:
                continue
            for ready, _ in self.watching.poll(0):
                if ready in self.by_source:
                    self._forward(self.by_source[ready])
                elif not self._handle_control():
                    return

    def _forward(self, direction: RelayedDirection) -> None:
        for _ in range(READ_TURN):
            try:
                frame = os.read(direction.source, FRAME_BYTES)
            except OSError:  # nothing more, or the interface is down
                return
            now_s = time.monotonic()
            due_s = direction.due_s(now_s)
            if due_s is None:
                continue
            if due_s <= now_s:
                write_frame(direction.target, frame)
                continue
            self.serial += 1
            heapq.heappush(self.heap, (due_s, self.serial, direction.target, frame))

    def _handle_control(self) -> bool:
        """Apply and acknowledge settings; False once the control socket is closed."""
        data = self.control.recv(1 << 16)
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            index, delay_s, jitter_s, loss_frac = json.loads(line)
            direction = self.directions[index]
            direction.delay_s, direction.jitter_s, direction.loss_frac = delay_s, jitter_s, loss_frac
            self.control.sendall(line + b"\n")
        return bool(data)


def write_frame(target: int, frame: bytes) -> None:
    try:
        os.write(target, frame)
    except OSError:  # the other end is down: a cut link loses what is on it
        return


def main(descriptor: int, directions: str) -> None:
    Relay(
        socket.socket(fileno=descriptor),
        [RelayedDirection(*direction) for direction in json.loads(directions)],
    ).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
