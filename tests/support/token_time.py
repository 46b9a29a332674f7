"""The time of a token when weights are loaded through a window during the all-reduces, by the paper.

Li et al., "TPI-LLM: Serving 70B-scale LLMs Efficiently on Low-resource Edge Devices" (arXiv:2410.00531),
the sliding-window memory scheduler (Propositions 3 and 4) and the all-reduce latency analysis.
Blocks are attention and feed-forward parts in turn; each ends with an all-reduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class BlockTime(NamedTuple):
    """One block on one device. `load_s` is None if its weights stay in memory."""

    compute_s: float
    load_s: float | None = None


def token_ends_s(
    devices: Sequence[Sequence[BlockTime]], all_reduce_s: float, window: int, tokens: int = 1
) -> tuple[float, ...]:
    """When each of `tokens` consecutive tokens is through, all devices having the same number of blocks.

    load_end[b] = max(load_end[b-1], compute_end[b-w]) + load, compute_end[b] = max(ar_end[b-1],
    load_end[b]) + compute, ar_end[b] = the slowest device's compute_end[b] + all-reduce; only blocks that
    stream count in a window, and the first token waits for its first loads.
    """
    loaded_s = [0.0] * len(devices)
    released_s: list[list[float]] = [[0.0] * window for _ in devices]
    reduced_s, ends_s = 0.0, []
    for _ in range(tokens):
        for block in range(len(devices[0])):
            computed_s = []
            for index, blocks in enumerate(devices):
                compute_s, load_s = blocks[block]
                ready_s = reduced_s
                if load_s is not None:
                    loaded_s[index] = max(loaded_s[index], released_s[index][-window]) + load_s
                    ready_s = max(ready_s, loaded_s[index])
                computed_s.append(ready_s + compute_s)
                if load_s is not None:
                    released_s[index].append(computed_s[-1])
            reduced_s = max(computed_s) + all_reduce_s
        ends_s.append(reduced_s)
    return tuple(ends_s)


def steady_token_s(
    devices: Sequence[Sequence[BlockTime]], all_reduce_s: float, window: int, tokens: int = 4
) -> float:
    """Seconds between the last two of `tokens` tokens: the steady state, without the start."""
    ends_s = token_ends_s(devices, all_reduce_s, window, tokens)
    return ends_s[-1] - ends_s[-2]
