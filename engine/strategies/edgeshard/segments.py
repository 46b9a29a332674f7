"""Choose consecutive layers for each device so that latency, or the slowest stage or link, is minimal. Pure.

Zhang et al., "EdgeShard" (IEEE IoT Journal 2024), Algorithms 1 and 2. The paper's recurrence proceeds layer
by layer without recording the devices used. Here a state is (layers done, set of used devices, last device),
so that each device has one stage within its memory. The result is exact for up to `EXACT_DEVICES` devices;
`orders.py` searches among more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from engine.strategies.shared.stages import Stage

Objective = Literal["latency", "throughput"]
EXACT_DEVICES = 12


@dataclass(frozen=True)
class Profile:
    """The planner's input: times of N layers on M devices, in seconds.

    layer_s[j][i]: layer i on device j. hop_s[i][k][j]: the output of the first i layers from k to j.
    enter_s[j]: the input to j; infinite where the first layer may not be. return_s[j]: the result from j.
    max_layers[j]: how many layers device j has memory for.
    """

    layer_s: Sequence[Sequence[float]]
    hop_s: Sequence[Sequence[Sequence[float]]]
    enter_s: Sequence[float]
    return_s: Sequence[float]
    max_layers: Sequence[int]


def join(objective: Objective, *parts_s: float) -> float:
    """Join times by objective: latency is their sum, a pipeline is as slow as its slowest stage or link."""
    return sum(parts_s) if objective == "latency" else max(parts_s)


def cost_s(profile: Profile, stages: Sequence[Stage], objective: Objective) -> float:
    """Seconds of `stages`, which cover all layers in order, under `objective`."""
    first, last = stages[0], stages[-1]
    parts = [profile.enter_s[first.device], profile.return_s[last.device]]
    parts += [sum(profile.layer_s[stage.device][stage.start : stage.stop]) for stage in stages]
    parts += [profile.hop_s[after.start][before.device][after.device] for before, after in pairwise(stages)]
    return join(objective, *parts)


def best_segments(profile: Profile, objective: Objective) -> tuple[Stage, ...] | None:
    """The optimal stages; ties: fewer stages, then lower device numbers. None if memory is too small.

    O(N² · 2^M · M + N · 2^M · M²).
    """
    import numpy as np

    devices, layers = len(profile.layer_s), len(profile.layer_s[0])
    hop_s, add = np.array(profile.hop_s), np.add if objective == "latency" else np.maximum
    segment_s = segments_s(profile)
    best_s = np.full((1 << devices, layers + 1, devices), np.inf)
    for j in range(devices):
        best_s[1 << j, :, j] = add(profile.enter_s[j], segment_s[j, 0])
    for size in range(1, min(devices, layers)):
        masks = np.array([m for m in range(1 << devices) if m.bit_count() == size])
        masks = masks[np.isfinite(best_s[masks]).any(axis=(1, 2))]
        for j in range(devices):
            without = masks[masks & (1 << j) == 0]
            arrive_s = add(best_s[without], hop_s[None, :, :, j]).min(axis=2)
            for m in range(1, layers + 1):
                via_s = add(arrive_s[:, :m], segment_s[j, :m, m])
                best_s[without | (1 << j), m, j] = via_s.min(axis=1)
    total_s = add(best_s[:, layers, :], np.array(profile.return_s))
    least_s = total_s.min()
    if not np.isfinite(least_s):
        return None
    ties = np.argwhere(total_s <= least_s * (1 + 1e-9))
    mask, last = min((int(m).bit_count(), int(m), int(j)) for m, j in ties)[1:]
    return (*reversed([*_trace(best_s, hop_s, segment_s, add, mask, layers, last)]),)


def segments_s(profile: Profile) -> Any:
    """Seconds [j, i, m] of layers [i, m) on device j; infinite if none or more than it has memory for."""
    import numpy as np

    devices, layers = len(profile.layer_s), len(profile.layer_s[0])
    until_s = np.zeros((devices, layers + 1))
    until_s[:, 1:] = np.cumsum(np.array(profile.layer_s), axis=1)
    number = np.arange(layers + 1)
    length = number[None, :] - number[:, None]
    fits = (length > 0) & (length <= np.array(profile.max_layers)[:, None, None])
    return np.where(fits, until_s[:, None, :] - until_s[:, :, None], np.inf)


def _trace(
    best_s: Any, hop_s: Any, segment_s: Any, add: Any, mask: int, stop: int, j: int
) -> Iterator[Stage]:
    """The stages that led to a state, the last one first."""
    import numpy as np

    while mask != 1 << j:
        mask ^= 1 << j
        via_s = add(add(best_s[mask, :stop], hop_s[:stop, :, j]), segment_s[j, :stop, stop, None])
        k, start = (int(index) for index in np.unravel_index(np.argmin(via_s.T), via_s.T.shape))
        yield Stage(device=j, start=start, stop=stop)
        stop, j = start, k
    yield Stage(device=j, start=0, stop=stop)
