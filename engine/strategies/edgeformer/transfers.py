"""How fast the messages of an owner really travel, learnt from the run's own transfers.

The announced rates of links do not contain everything: losses, other traffic. Every reply of a neighbour
gives the time of its messages, as a multiple of what the announced rates promise. The first multiple of a
neighbour is what is usual; an average in which every new transfer counts half (EWMA, weight 0.5) of the later
ones relative to it is by how much the path is slower now. Small changes are noise and change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WEIGHT = 0.5
"""The weight of the newest transfer in the average."""
NOISE = 1.5
"""A path counts as changed if it is this many times slower or faster than usual."""


class Transfer(NamedTuple):
    """Messages to device `rank` and back took `ratio` times as long as the announced rates say."""

    rank: int
    ratio: float


class Transfers:
    """The transfers of one owner since the announced conditions last changed."""

    def __init__(self) -> None:
        self.usual: dict[int, float] = {}
        self.average: dict[int, float] = {}

    def observe(self, transfer: Transfer) -> None:
        rank, ratio = transfer
        usual = self.usual.setdefault(rank, ratio)
        self.average[rank] = (1 - WEIGHT) * self.average.get(rank, 1.0) + WEIGHT * ratio / usual

    def slowdowns(self) -> dict[int, float]:
        """Rank → how many times longer transfers take than usual; only those that changed."""
        return {rank: value for rank, value in self.average.items() if not 1 / NOISE < value < NOISE}

    def forget(self) -> None:
        """Start anew, as other conditions were announced."""
        self.usual.clear()
        self.average.clear()


class Observed:
    """What a device measured, as a decision: a prediction measures its own transfers, a replay repeats
    these.
    """

    def __init__(self, transfers: Sequence[Transfer]):
        self.transfers = [list(transfer) for transfer in transfers]

    def __call__(self) -> list[list[float]]:
        return self.transfers

    prior = __call__
