"""Measures the wall time from a live change of a busy link until it takes effect at the receiver."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bench.emulation.clusters import star
from bench.tables.rows import Table
from emulator.host.namespaces import inside
from emulator.host.priority import run_in_real_time
from emulator.network.measure import LinkTransfer, connect
from emulator.session.calls import call
from engine.domain.errors import HostError
from engine.domain.scenario import Change, LinkDown, LinkUp, SetDelay, SetLoss, SetRate
from engine.domain.units import human_s

if TYPE_CHECKING:
    from emulator.network.mininet_network import MininetNetwork

REPEATS = 5
LINK = "n0--hub"
FAST_BIT_PER_S, SLOW_BIT_PER_S = 20e6, 5e6
SHORT_S, LONG_S = 0.005, 0.05
LOSS_FRAC = 0.9
WINDOW_S, RATE_TOLERANCE = 0.06, 0.15
BEFORE_S, AFTER_S = 0.4, 0.8
PERIOD_S = 0.002
STAMP = struct.Struct("<d")


class Arrival(NamedTuple):
    """Data that arrived at the receiver: bytes of a stream, or a datagram sent at `sent_s`. Wall seconds."""

    at_s: float
    size: int
    sent_s: float = 0.0


class ChangeCase(NamedTuple):
    """A change that the next case undoes. `effect_s(arrivals, changed_s)` finds when it took effect."""

    name: str
    change: Change
    stream: bool
    effect_s: Callable[[Sequence[Arrival], float], float]


def measure_changes() -> Table:
    rows = []
    for name, times_s in [*call(plain_changes), *call(delay_changes)]:
        ordered = sorted(times_s)
        rows.append((name, human_s(ordered[len(ordered) // 2]), human_s(ordered[-1])))
    title = (
        f"Live changes of one of two links of {FAST_BIT_PER_S / 1e6:g} Mbit/s, {REPEATS} times each: wall "
        "time from the command until it takes effect at the receiver. Rates: of a TCP stream with full "
        f"queues, from when the next {WINDOW_S * 1e3:g} ms have the new rate, exact to some 10 ms; the "
        f"others: by datagrams, one each {PERIOD_S * 1e3:g} ms."
    )
    return Table(title, ("change", "in force, median", "longest"), tuple(rows))


def plain_changes() -> list[tuple[str, list[float]]]:
    """Seconds of changes of rate, loss and state."""

    def rate(bit_per_s: float) -> Change:
        return SetRate(at_s=0, link=LINK, bit_per_s=bit_per_s)

    def loss(loss_frac: float) -> Change:
        return SetLoss(at_s=0, link=LINK, loss_frac=loss_frac)

    slow, fast = f"{SLOW_BIT_PER_S / 1e6:g}", f"{FAST_BIT_PER_S / 1e6:g}"
    return _played(
        [
            ChangeCase(f"rate {fast} → {slow} Mbit/s", rate(SLOW_BIT_PER_S), True, _has_rate(SLOW_BIT_PER_S)),
            ChangeCase(f"rate {slow} → {fast} Mbit/s", rate(FAST_BIT_PER_S), True, _has_rate(FAST_BIT_PER_S)),
            ChangeCase(f"loss 0 → {LOSS_FRAC:.0%}", loss(LOSS_FRAC), False, _first_gap),
            ChangeCase(f"loss {LOSS_FRAC:.0%} → 0", loss(0.0), False, _last_gap),
            ChangeCase("link down", LinkDown(at_s=0, link=LINK), False, _last_arrival),
            ChangeCase("link up", LinkUp(at_s=0, link=LINK), False, _first_arrival),
        ]
    )


def delay_changes() -> list[tuple[str, list[float]]]:
    """Seconds of changes of delay, where TCP feels it: by netem or relays."""

    def delay(delay_s: float) -> Change:
        return SetDelay(at_s=0, link=LINK, delay_s=delay_s, direction="forward")

    middle_s = (SHORT_S + LONG_S) / 2
    return _played(
        [
            ChangeCase(
                "delay 5 → 50 ms", delay(LONG_S), False, _first_with(lambda a: a.at_s - a.sent_s > middle_s)
            ),
            ChangeCase(
                "delay 50 → 5 ms", delay(SHORT_S), False, _first_with(lambda a: a.at_s - a.sent_s < middle_s)
            ),
        ],
        delay_s=SHORT_S,
        jitter_s=1e-6,
    )


def _played(cases: Sequence[ChangeCase], **drawn: float) -> list[tuple[str, list[float]]]:
    from emulator.network.mininet_network import MininetNetwork

    cluster = star(2, 1e9, FAST_BIT_PER_S)
    links = tuple(link.model_copy(update=drawn if link.name == LINK else {}) for link in cluster.links)
    times_s: dict[str, list[float]] = {case.name: [] for case in cases}
    run_in_real_time(os.getpid())  # as devices do
    network = MininetNetwork(cluster.model_copy(update={"links": links}), 1.0)
    with network:
        for _ in range(REPEATS):
            for case in cases:
                times_s[case.name].append(_effect_s(network, case))
    return list(times_s.items())


def _effect_s(network: MininetNetwork, case: ChangeCase) -> float:
    with (_Stream if case.stream else _Datagrams)(network) as traffic:
        time.sleep(BEFORE_S)  # the traffic before and after the change is part of the experiment
        changed_s = time.monotonic()
        network.apply(case.change)
        time.sleep(AFTER_S)
        return case.effect_s(list(traffic.arrivals), changed_s) - changed_s


class _Traffic:
    """Sends from device 0 to device 1 until the block is left; `arrivals` are timed at the receiver."""

    def __init__(self, sender: socket.socket, receiver: socket.socket):
        self.sender, self.receiver = sender, receiver
        self.receiver.settimeout(PERIOD_S * 10)
        self.sender.settimeout(PERIOD_S * 10)
        self.arrivals: list[Arrival] = []
        self.over = threading.Event()
        self.threads = [
            threading.Thread(target=self._until_over, args=(step,)) for step in (self.send, self.receive)
        ]

    def send(self) -> None:
        raise NotImplementedError

    def receive(self) -> None:
        raise NotImplementedError

    def _until_over(self, step: Callable[[], None]) -> None:
        while not self.over.is_set():
            with contextlib.suppress(OSError):  # the link is down, or no data came for a while
                step()

    def __enter__(self) -> _Traffic:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()
        self.sender.close()
        self.receiver.close()


class _Stream(_Traffic):
    """A TCP stream that keeps all queues full."""

    def __init__(self, network: MininetNetwork):
        super().__init__(
            *connect(LinkTransfer(0, True, network.pid(0), network.pid(1), network.address(1), 1.0))
        )

    def send(self) -> None:
        self.sender.send(bytes(16 * 1024))

    def receive(self) -> None:
        size = len(self.receiver.recv(4096))
        self.arrivals.append(Arrival(time.monotonic(), size))


class _Datagrams(_Traffic):
    """A datagram every PERIOD_S that carries the time at which it was sent."""

    def __init__(self, network: MininetNetwork):
        sender, receiver = (
            inside(network.pid(rank), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for rank in (0, 1)
        )
        receiver.bind((network.address(1), 0))
        self.target = receiver.getsockname()
        super().__init__(sender, receiver)

    def send(self) -> None:
        time.sleep(PERIOD_S)
        self.sender.sendto(STAMP.pack(time.monotonic()), self.target)

    def receive(self) -> None:
        (sent_s,) = STAMP.unpack(self.receiver.recv(STAMP.size))
        self.arrivals.append(Arrival(time.monotonic(), STAMP.size, sent_s))


def _has_rate(bit_per_s: float) -> Callable[[Sequence[Arrival], float], float]:
    """Finds the start of the first window after the change that has this rate."""

    def effect_s(arrivals: Sequence[Arrival], changed_s: float) -> float:
        after = [arrival for arrival in arrivals if arrival.at_s >= changed_s]
        for index, first in enumerate(after):
            inside_window = [a for a in after[index + 1 :] if a.at_s <= first.at_s + WINDOW_S]
            rate = 8 * sum(arrival.size for arrival in inside_window) / WINDOW_S
            if abs(rate / bit_per_s - 1) < RATE_TOLERANCE:
                return first.at_s
        raise HostError(
            f"{LINK}: {bit_per_s:g} bit/s never came into force in {AFTER_S:g} s: see ./loom doctor."
        )

    return effect_s


def _first_with(true: Callable[[Arrival], bool]) -> Callable[[Sequence[Arrival], float], float]:
    """Finds when the first datagram after the change was sent for which `true` holds."""

    def effect_s(arrivals: Sequence[Arrival], changed_s: float) -> float:
        found = [arrival.sent_s for arrival in arrivals if arrival.sent_s >= changed_s and true(arrival)]
        if not found:
            raise HostError(f"{LINK}: a change never came into force in {AFTER_S:g} s: see ./loom doctor.")
        return found[0]

    return effect_s


def _first_arrival(arrivals: Sequence[Arrival], changed_s: float) -> float:
    return _first_with(lambda arrival: True)(arrivals, changed_s)


def _last_arrival(arrivals: Sequence[Arrival], changed_s: float) -> float:
    return max([changed_s, *(arrival.at_s for arrival in arrivals)])


def _gaps(arrivals: Sequence[Arrival], changed_s: float) -> list[tuple[float, float]]:
    """Ranges of sending times, ending after the change, of which no datagram arrived."""
    sent_s = [arrival.sent_s for arrival in arrivals]
    return [(a, b) for a, b in pairwise(sent_s) if b > changed_s and b - a > 5 * PERIOD_S]


def _first_gap(arrivals: Sequence[Arrival], changed_s: float) -> float:
    return max(
        changed_s, min((start for start, _ in _gaps(arrivals, changed_s)), default=changed_s + AFTER_S)
    )


def _last_gap(arrivals: Sequence[Arrival], changed_s: float) -> float:
    return max((stop for _, stop in _gaps(arrivals, changed_s)), default=changed_s)
