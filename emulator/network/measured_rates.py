"""The measured rates of a network's links, and brief probes that measure them while a run goes on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

from emulator.network.measure import Achieved, LinkTransfer, measure_busy

Direction = tuple[int, bool]
"""A link and whether forward."""


class MeasuredRates:
    """The rates of links as last measured. `bit_per_s` are virtual, by direction; `probe_ends` counts the
    beginnings and ends of probes.
    """

    def __init__(self, dilation: float):
        self.dilation = dilation
        self.bit_per_s: dict[Direction, float] = {}
        self.probe_ends: Counter[Direction] = Counter()
        self._probing: list[threading.Thread] = []

    def note(self, achieved: Achieved) -> None:
        """Wall bit/s that were measured."""
        self.bit_per_s = self.bit_per_s | {key: rate * self.dilation for key, rate in achieved.items()}

    def forget(self, direction: Direction) -> None:
        self.bit_per_s.pop(direction, None)

    def probe(
        self,
        directions: Sequence[Direction],
        transfer_of: Callable[[int, bool], LinkTransfer | None],
        sent: Callable[[int, bool], int],
    ) -> None:
        """Measure one direction after the other, on a thread.

        `transfer_of` is None once a direction cannot be measured; `sent` counts what the kernel has sent.
        """
        thread = threading.Thread(target=self._probe, args=(directions, transfer_of, sent), name="measure")
        self._probing = [*(thread for thread in self._probing if thread.is_alive()), thread]
        thread.start()

    def close(self) -> None:
        """Wait for the probes under way."""
        for thread in self._probing:
            thread.join()

    def _probe(
        self,
        directions: Sequence[Direction],
        transfer_of: Callable[[int, bool], LinkTransfer | None],
        sent: Callable[[int, bool], int],
    ) -> None:
        """Measure directions one after the other; a figure is dropped if the rate was changed meanwhile."""
        for direction in directions:
            transfer = transfer_of(*direction)
            if transfer is None:
                return
            self.probe_ends[direction] += 1
            try:
                achieved = measure_busy(transfer, lambda direction=direction: sent(*direction))  # type: ignore[misc]
            finally:
                self.probe_ends[direction] += 1
            after = transfer_of(*direction)
            if achieved is not None and after is not None and after.bit_per_s == transfer.bit_per_s:
                self.note({direction: achieved})
