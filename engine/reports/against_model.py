"""Durations of a real run's operations against its device models: a pure comparison of two traces.

The expected durations come from the run's prediction, which is independent of pacing: the cost model gives
each operation's time from its shapes and its device. An operation of the run is compared with one of the
prediction that ran on the same device under the same name with as many FLOPs and bytes; a change of a
device's speed multiplies the expected time. Times are virtual seconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median_low, quantiles
from typing import Literal, NamedTuple

from engine.domain.trace import Mark, Span

Trace = Sequence[Span | Mark]
Operation = tuple[str, str, int, int]
"""Device, name, FLOPs and bytes: what decides how long an operation takes at a device's own speed."""

Phase = Literal["prefill", "decode"]

TYPICAL_OF = 5
"""Operations of one device and phase that it takes to call an error typical: one late one is not."""


class Deviation(NamedTuple):
    """Seconds that operations are expected to take, and Σ |duration - expected|."""

    expected_s: float
    error_s: float


class ModelComparison(NamedTuple):
    """How long operations took, compared with the model.

    operations   compute spans of the run
    compared     those among them that the prediction has too
    error_mean   Σ |duration - expected| / Σ expected over all compared operations; None if there is none
    error_p95    95 % of the compared operations have at most this relative error
    overlap_frac the part of the computing time in which a device ran more than one operation
    typical      by device and phase: half of the computing time went to operations with at most this relative
                 error. A few late operations do not move it; operations that are all too long do
    missing_frac by device: the part of the prediction's operations that the run has not
    by_device    what the operations of each device took in all
    """

    operations: int
    compared: int
    error_mean: float | None
    error_p95: float | None
    overlap_frac: float
    typical: Mapping[tuple[str, Phase], float] = {}
    missing_frac: Mapping[str, float] = {}
    by_device: Mapping[str, Deviation] = {}


def compare_with_model(run: Trace, prediction: Trace, change_grace_s: float = 0.0) -> ModelComparison:
    """Compare the compute spans of `run` with those of `prediction`, the same run in the simulated world.

    An operation that began at most `change_grace_s` after a change of its device's speed may have been priced
    before it: the nearest of the times counts. Time in which a device was frozen is not counted.
    """
    model_s = times_at_own_speed(prediction)
    speeds, pauses = _Slowdowns(run), _pauses(run)
    errors, expected, count = [], [], 0
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    by_phase: dict[tuple[str, Phase], list[tuple[float, float]]] = defaultdict(list)
    for span in _computed(run):
        own_s = model_s.get(operation_of(span))
        if own_s == 0:  # an operation without kernels takes no time, so there is nothing to compare
            continue
        count += 1
        if own_s:
            took_s = span.end_s - span.start_s - _paused_s(span, pauses[span.device])
            candidates = [own_s * factor for factor in speeds.around(span, change_grace_s)]
            nearest_s = min(candidates, key=lambda target_s: abs(took_s - target_s))
            expected.append(nearest_s)
            errors.append(abs(took_s - nearest_s))
            sums[span.device][0] += nearest_s
            sums[span.device][1] += errors[-1]
            phase: Phase = "decode" if span.token > 0 else "prefill"
            by_phase[span.device, phase].append((errors[-1] / nearest_s, nearest_s))
    relative = [error_s / target_s for error_s, target_s in zip(errors, expected, strict=True)]
    return ModelComparison(
        operations=count,
        compared=len(expected),
        error_mean=sum(errors) / sum(expected) if expected else None,
        error_p95=percentile_95(relative),
        overlap_frac=_overlap_frac(run),
        typical={key: _weighted_median(found) for key, found in by_phase.items() if len(found) >= TYPICAL_OF},
        missing_frac=_missing_frac(run, prediction),
        by_device={device: Deviation(*both) for device, both in sums.items()},
    )


def percentile_95(values: Sequence[float]) -> float | None:
    """The value that 95 % of `values` do not exceed (interpolated); None if there are none."""
    if len(values) < 2:
        return values[0] if values else None
    return quantiles(values, n=20, method="inclusive")[-1]


def times_at_own_speed(prediction: Trace) -> dict[Operation, float]:
    """The predicted seconds of every operation on a device that nothing slows.

    The median, because an operation may begin after a change of speed and still have the time from before it.
    """
    speeds = _Slowdowns(prediction)
    times: dict[Operation, list[float]] = defaultdict(list)
    for span in _computed(prediction):
        factor = speeds.at(span.device, span.start_s)
        times[operation_of(span)].append((span.end_s - span.start_s) / factor)
    return {operation: median_low(found) for operation, found in times.items()}


def _weighted_median(pairs: Sequence[tuple[float, float]]) -> float:
    """The lowest value with at least half of the weight at or below it. Pairs are (value, weight)."""
    half, seen = sum(weight for _, weight in pairs) / 2, 0.0
    for value, weight in sorted(pairs):
        seen += weight
        if seen >= half:
            return value
    return max(pairs)[0]  # half of the weight was not reached because of rounding


def _missing_frac(run: Trace, prediction: Trace) -> dict[str, float]:
    """Device of `prediction` → the part of its operations that `run` has not, or not as often."""
    wanted = Counter(operation_of(span) for span in _computed(prediction))
    missing = wanted - Counter(operation_of(span) for span in _computed(run))
    totals: Counter[str] = Counter()
    lacking: Counter[str] = Counter()
    for operation, count in wanted.items():
        totals[operation[0]] += count
        lacking[operation[0]] += missing[operation]
    return {device: lacking[device] / total for device, total in totals.items()}


def _pauses(trace: Trace) -> dict[str, list[tuple[float, float]]]:
    """Device → the times in which it was frozen, from its freezing until it went on."""
    pauses: dict[str, list[tuple[float, float]]] = defaultdict(list)
    since_s: dict[str, float] = {}
    for item in trace:
        if isinstance(item, Mark) and item.name == "device_frozen":
            since_s.setdefault(item.device, item.time_s)
        elif isinstance(item, Mark) and item.name == "device_joined" and item.device in since_s:
            pauses[item.device].append((since_s.pop(item.device), item.time_s))
    return pauses


def _paused_s(span: Span, pauses: Sequence[tuple[float, float]]) -> float:
    return sum(max(0.0, min(span.end_s, end_s) - max(span.start_s, start_s)) for start_s, end_s in pauses)


def _computed(trace: Trace) -> Iterable[Span]:
    return (item for item in trace if isinstance(item, Span) and item.kind == "compute")


def operation_of(span: Span) -> Operation:
    return span.device, span.name, span.flops, span.bytes


def _overlap_frac(trace: Trace) -> float:
    """A device computes one operation at a time, so its spans should not overlap."""
    intervals: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for span in _computed(trace):
        intervals[span.device].append((span.start_s, span.end_s))
    busy_s = overlap_s = 0.0
    for spans in intervals.values():
        spans.sort()
        busy_s += sum(end_s - start_s for start_s, end_s in spans)
        overlap_s += sum(
            max(0.0, min(end_s, other_end_s) - other_s)
            for (_, end_s), (other_s, other_end_s) in pairwise(spans)
        )
    return overlap_s / busy_s if busy_s else 0.0


class _Slowdowns:
    """How many times longer each device's operations take, over time, by the marks of a trace."""

    def __init__(self, trace: Trace):
        self.changes: dict[str, list[tuple[float, float]]] = defaultdict(lambda: [(float("-inf"), 1.0)])
        for item in trace:
            if isinstance(item, Mark) and item.name == "device_changed":
                self.changes[item.device].append((item.time_s, item.facts["factor"]))

    def at(self, device: str, time_s: float) -> float:
        """The factor in force at `time_s`."""
        return [factor for since_s, factor in self.changes[device] if since_s <= time_s][-1]

    def around(self, span: Span, grace_s: float) -> set[float]:
        """The factors that may hold for an operation: in force at its start, or up to `grace_s` before."""
        between = {
            factor
            for since_s, factor in self.changes[span.device]
            if span.start_s - grace_s < since_s <= span.start_s
        }
        return {self.at(span.device, span.start_s - grace_s), *between}
