"""Divide one feed-forward part in AdaptLink: the primary's share, and whole blocks of columns. Pure.

Hu et al., "AdaptLink: A Heterogeneity-Aware Adaptive Framework for Distributed MLLM Inference" (AAAI 2025
workshop), section "Dynamic Allocation Strategy". The paper balances p · F/P_pri against
(1 - p) · (F/P_sec + O/B), equation 5. Its factor (1 - p) on O/B does not hold for the real messages: a device
with a slice of the columns receives the whole input and returns a partial sum of full size, whatever its
share: `sides_s` counts either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, gcd
from typing import NamedTuple

from engine.domain.model import ModelSpec
from engine.strategies.shared.shares import largest_remainder

MAX_GRID = 64
TOLERANCE = 1e-9


class FfnTime(NamedTuple):
    """Seconds of a whole feed-forward part on one device, and of its output's way to the primary."""

    compute_s: float
    output_s: float = 0.0

    @property
    def total_s(self) -> float:
        """The paper's T of a secondary: F/P + O/B, one-way delays included."""
        return self.compute_s + self.output_s


def sides_s(shares: Sequence[float], times: Sequence[FfnTime], exact: bool) -> tuple[float, ...]:
    """Seconds of every side, the primary first: by equation 5, or with messages of full size."""
    return tuple(
        share * time.compute_s + (2 * time.output_s if exact else share * time.output_s) if share else 0.0
        for share, time in zip(shares, times, strict=True)
    )


def grid_size(model: ModelSpec) -> int:
    """Blocks q of the q×q grid: the largest divisor of both widths that is at most 64."""
    both = gcd(model.hidden_size, model.intermediate_size)
    return max(size for size in range(1, MAX_GRID + 1) if both % size == 0)


def fill_blocks(total: int, times_s: Sequence[float], caps: Sequence[int]) -> tuple[int, ...] | None:
    """`total` blocks in proportion to 1/times_s, no device more than its cap; None if the caps are too small.

    Water-filling: a device that would be over its cap gets the cap, the rest is divided among the others.
    Largest remainders, ties to the lower index. Everybody with room gets at least one block if there are
    enough, from the one that has most.
    """
    if sum(caps) < total:
        return None
    blocks = [0] * len(caps)
    free = [index for index, cap in enumerate(caps) if cap > 0]
    left = total
    while free:
        speed = sum(1 / times_s[index] for index in free)
        full = [i for i in free if left / times_s[i] / speed >= caps[i] - TOLERANCE]
        if not full:
            break
        for index in full:
            blocks[index] = min(caps[index], left)
            left -= blocks[index]
            free.remove(index)
    if free:
        for index, size in zip(free, largest_remainder(left, [1 / times_s[i] for i in free]), strict=True):
            blocks[index] = size
    for index in [i for i, cap in enumerate(caps) if cap > 0 and blocks[i] == 0]:
        most = max(range(len(blocks)), key=lambda i: (blocks[i], -i))
        if blocks[most] > 1:
            blocks[most] -= 1
            blocks[index] = 1
    return tuple(blocks)


class Primary(NamedTuple):
    """The primary's memory in bytes: what never moves, the movable part of one layer, and the limit."""

    fixed_bytes: float
    ffn_bytes: float
    num_layers: int
    usable_bytes: float

    @property
    def over_bytes(self) -> float:
        """Bytes that must move so that the primary can hold the rest."""
        return self.fixed_bytes + self.num_layers * self.ffn_bytes - self.usable_bytes

    def num_split(self, share: float) -> int:
        """Layers to split, last to first, so that the rest fits if the primary keeps `share` of each.

        May be more than there are.
        """
        if self.over_bytes <= 0:
            return 0
        freed_bytes = (1 - share) * self.ffn_bytes
        return max(1, ceil(self.over_bytes / freed_bytes - TOLERANCE)) if freed_bytes else self.num_layers + 1

    def most_blocks(self, num_split: int, grid: int) -> int:
        """Blocks of each split layer that it has memory for; negative if even without any it lacks memory."""
        share = 1 - self.over_bytes / (num_split * self.ffn_bytes)
        return min(grid, int(grid * share + TOLERANCE) if share >= 0 else -1)


class Split(NamedTuple):
    """The last `num_split` layers are split, each into `blocks` per device, the primary's first."""

    num_split: int
    blocks: tuple[int, ...]


def split_layers(
    primary: Primary, rooms_bytes: Sequence[float], times_s: Sequence[float], grid: int, share: float | None
) -> Split | None:
    """The division with as few split layers as the primary's memory needs, with shares in proportion to speed
    or `share`.

    `times_s` has the primary first, `rooms_bytes` only the secondaries. If the primary has to give away more
    than speed asks for, all layers are split and it keeps what fits, maybe nothing (then attention may
    have to move, too). None if the secondaries cannot take so much.
    """
    wanted = share
    if wanted is None:
        unlimited = fill_blocks(grid, times_s, [grid] * len(times_s))
        assert unlimited is not None
        wanted = unlimited[0] / grid
    first = max(1, min(primary.num_split(wanted), primary.num_layers))
    for num_split in range(first, primary.num_layers + 1):
        block_bytes = num_split * primary.ffn_bytes / grid
        caps = [int(min(grid, max(0.0, room / block_bytes + TOLERANCE))) for room in rooms_bytes]
        mine = max(0, primary.most_blocks(num_split, grid))
        if share is None:
            blocks = fill_blocks(grid, times_s, [mine, *caps])
        else:
            kept = min(mine, int(share * grid + TOLERANCE))
            others = fill_blocks(grid - kept, times_s[1:], caps)
            blocks = None if others is None else (kept, *others)
        if blocks is not None:
            return Split(min(num_split, primary.num_split(blocks[0] / grid)), blocks)
    return None
