"""Measures the processor time of a function, since other processes may use this machine, and if they do.

Where a control group grants a part of a core only, it takes accordingly longer: that is the machine's speed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from engine.domain.granted import granted_frac

FIGURE_S = 0.1
"""Default time spent on one figure."""

MIN_SAMPLES = 4
KEPT_FRAC = 0.95


def processor_s() -> float:
    """Seconds that this thread has computed, at the pace that its control groups grant it."""
    return time.thread_time() / granted_frac()


class CoreShare:
    """Inside the `with` block this thread computes and waits for nothing: `frac` is then the part of that
    time for which it had a core.
    """

    frac = 1.0

    def __enter__(self) -> Self:
        self._began_s = time.perf_counter(), processor_s()
        return self

    def __exit__(self, *error: object) -> None:
        wall_s, thread_s = time.perf_counter() - self._began_s[0], processor_s() - self._began_s[1]
        self.frac = min(1.0, thread_s / wall_s)


def typical_s(work: Callable[[], Any], figure_s: float = FIGURE_S) -> float:
    """Lower quartile of the seconds of `work`, called in batches because reading the clock takes time too."""
    work()
    began_s = time.perf_counter()
    work()
    batch = max(1, int(figure_s / 20 / max(1e-9, time.perf_counter() - began_s)))
    times: list[float] = []
    end_s = time.perf_counter() + figure_s
    while time.perf_counter() < end_s or len(times) < MIN_SAMPLES:
        began_s = processor_s()
        for _ in range(batch):
            work()
        times.append((processor_s() - began_s) / batch)
    return quartile(times)


def in_place_s(work: Callable[[], Any], before: Callable[[], Any], figure_s: float = FIGURE_S) -> float:
    """Lower quartile of the seconds of `work` after `before`, which is not timed but changes the caches."""
    times: list[float] = []
    end_s = time.perf_counter() + figure_s
    while time.perf_counter() < end_s or len(times) < MIN_SAMPLES:
        before()
        began_s = processor_s()
        work()
        times.append(processor_s() - began_s)
    return max(0.0, quartile(times) - CLOCK_S)


def quartile(times: Sequence[float]) -> float:
    """The lower quartile: disturbances only add time."""
    return statistics.quantiles(times, n=4)[0]


def trimmed_mean(times: Iterable[float]) -> float:
    """The mean without the longest twentieth, in which the host did something else; 0 of nothing."""
    ordered = sorted(times)
    kept = ordered[: max(1, round(KEPT_FRAC * len(ordered)))]
    return statistics.fmean(kept) if kept else 0.0


def _clock_s() -> float:
    """Seconds that reading the clock adds to a measured time."""
    times = []
    for _ in range(200):
        began_s = processor_s()
        times.append(processor_s() - began_s)
    return statistics.median(times)


CLOCK_S = _clock_s()
