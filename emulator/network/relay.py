"""Carries frames between pairs of TAP interfaces, late and not all of them: `relay.py FD WAYS`.

It does for the kernels that lack netem what TCP must feel: delay, jitter, loss. Rates stay the kernel's: a
token bucket sits on each interface. WAYS is JSON, one `[from, to, seed]` (file descriptors) per direction;
FD is a socket with lines of JSON: `[way, delay_s, jitter_s, loss_frac]` in wall seconds, each answered with
the same line once it is in force. Frames of a way keep their order, so jitter (uniform, delay ± jitter)
never looks like loss to TCP.

It imports the standard library only: it is up within some 20 ms, and ends when its socket closes.
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
READ_TURN = 32  # frames of one way before the others have theirs

EARLY_S = 50e-6
"""Sleeps aim at so much before a frame is due, since they end 40 µs late. What is due within this time after
it goes along: each sleep that is spared saves 27 µs of processor time."""


class Way:
    """One direction of a link."""

    __slots__ = ("delay_s", "jitter_s", "last_s", "loss_frac", "random", "source", "target")

    def __init__(self, source: int, target: int, seed: str):
        self.source, self.target = source, target
        self.random = random.Random(seed)
        self.delay_s = self.jitter_s = self.loss_frac = self.last_s = 0.0

    def due_s(self, now_s: float) -> float | None:
        """When a frame that comes now is to go on; None if it is lost."""
        if self.loss_frac and self.random.random() < self.loss_frac:
            return None
        delay_s = self.delay_s
        if self.jitter_s:
            delay_s = max(0.0, delay_s + self.random.uniform(-self.jitter_s, self.jitter_s))
        self.last_s = max(self.last_s, now_s + delay_s)
        return self.last_s


class Relay:
    """All ways of one process, and the frames on them, the earliest first."""

    def __init__(self, control: socket.socket, ways: Sequence[Way]):
        self.control = control
        self.ways = list(ways)
        self.by_source = {way.source: way for way in ways}
        self.heap: list[tuple[float, int, int, bytes]] = []
        self.serial = 0
        self.pending = b""

    def run(self) -> None:
        """Until the control socket closes."""
        watched: list[int | socket.socket] = [self.control, *self.by_source]
        while True:
            now_s = time.monotonic()
            while self.heap and self.heap[0][0] <= now_s + 2 * EARLY_S:
                _, _, target, frame = heapq.heappop(self.heap)
                put(target, frame)
            # select, because it alone has a resolution of microseconds
            timeout_s = max(0.0, self.heap[0][0] - EARLY_S - time.monotonic()) if self.heap else None
            for ready in select.select(watched, [], [], timeout_s)[0]:
                if isinstance(ready, int):
                    self._carry(self.by_source[ready])
                elif not self._obey():
                    return

    def _carry(self, way: Way) -> None:
        for _ in range(READ_TURN):
            try:
                frame = os.read(way.source, FRAME_BYTES)
            except OSError:  # nothing more, or the interface is down
                return
            now_s = time.monotonic()
            due_s = way.due_s(now_s)
            if due_s is None:
                continue
            if due_s <= now_s:
                put(way.target, frame)
                continue
            self.serial += 1
            heapq.heappush(self.heap, (due_s, self.serial, way.target, frame))

    def _obey(self) -> bool:
        """Take settings and answer; False when nobody is there any more."""
        data = self.control.recv(1 << 16)
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            index, delay_s, jitter_s, loss_frac = json.loads(line)
            way = self.ways[index]
            way.delay_s, way.jitter_s, way.loss_frac = delay_s, jitter_s, loss_frac
            self.control.sendall(line + b"\n")
        return bool(data)


def put(target: int, frame: bytes) -> None:
    try:
        os.write(target, frame)
    except OSError:  # the other end is down: a cut link loses what is on it
        return


def main(descriptor: int, ways: str) -> None:
    Relay(socket.socket(fileno=descriptor), [Way(*way) for way in json.loads(ways)]).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
