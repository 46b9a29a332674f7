"""The interface between the engine and an emulated network, and a network of plain loopback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.scenario import Change


class LinkMeasurement(NamedTuple):
    """One direction of a link: the wanted and the measured rate (virtual bit/s), and the back end that shapes
    it.
    """

    link: int
    forward: bool
    asked_bit_per_s: float
    achieved_bit_per_s: float
    backend: str


class PairMeasurement(NamedTuple):
    """What the network gives from device `src` to device `dst`: the rate of one connection, half of the least
    round trip, and the part of the segments that were lost while few were on their way.
    """

    src: int
    dst: int
    bit_per_s: float
    delay_s: float
    loss_frac: float


class Actual(NamedTuple):
    """What stands in place of what was drawn: every pair of devices, both ways, and each device's calibrated
    row, None where there is none. `slowed`: where more is there than drawn, messages take as long as drawn.
    """

    pairs: tuple[PairMeasurement, ...]
    devices: tuple[DeviceSpec | None, ...]
    slowed: bool = False


class LinkState(NamedTuple):
    """One direction of a link now: bytes of frames sent so far, the wanted and the last measured rate
    (virtual).

    `probe_ends` is the number of times that a measurement of this direction has begun or ended: while it is
    odd, `sent_bytes` also counts the bytes of a measurement.
    """

    link: int
    forward: bool
    sent_bytes: int
    set_bit_per_s: float
    measured_bit_per_s: float | None
    up: bool
    probe_ends: int = 0


class Network(Protocol):
    """The network of one run with dilation D: links have rate / D and D × delay, in wall time.

    The rates that its methods return are virtual. Entering the context manager builds the network, leaving it
    removes everything that was made.
    """

    cluster: ClusterSpec
    backend: str

    def __enter__(self) -> Network: ...

    def __exit__(self, *exc: object) -> None: ...

    def enter(self, rank: int) -> None:
        """Move the calling process, freshly forked for device `rank`, into the device's namespace."""

    def address(self, rank: int) -> str:
        """IP address on which device `rank` listens, reachable from every other device."""

    def holds_delay(self, link: int) -> bool:
        """Whether receivers must hold messages for the delay of a link, because the network cannot."""

    def dilate(self, dilation: float) -> None:
        """Set all links to another dilation; nothing was measured of them then."""

    def apply(self, change: Change) -> dict[str, Any]:
        """Apply a live change; returns what the kernel reports, for the acknowledgement."""

    def measure(self, only: Sequence[int] | None = None) -> list[LinkMeasurement]:
        """Send real data over each direction of each link (or of links `only`); 1–2 s in all at most."""

    def state(self) -> list[LinkState]:
        """Every direction of every link as it is now; cheap enough for several readings per second."""

    def notes(self) -> tuple[str, ...]:
        """Sentences on it for the report."""

    def actual(self) -> Actual | None:
        """What real machines and the network between them are, once measured; None: all is as drawn."""


class LoopbackNetwork:
    """All devices on 127.0.0.1, unshaped: no root, no Mininet. For correctness, bytes and native speed."""

    backend = "loopback"

    def __init__(self, cluster: ClusterSpec):
        self.cluster = cluster

    def __enter__(self) -> LoopbackNetwork:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def enter(self, rank: int) -> None:
        pass

    def address(self, rank: int) -> str:
        return "127.0.0.1"

    def holds_delay(self, link: int) -> bool:
        return False

    def dilate(self, dilation: float) -> None:
        pass

    def apply(self, change: Change) -> dict[str, Any]:
        return {}

    def measure(self, only: Sequence[int] | None = None) -> list[LinkMeasurement]:
        return []

    def state(self) -> list[LinkState]:
        return []

    def notes(self) -> tuple[str, ...]:
        return ()

    def actual(self) -> Actual | None:
        return None
