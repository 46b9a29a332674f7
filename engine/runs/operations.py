"""The judgement of a paced run's operations: their pace, their durations, and who is not judged.

A device that computes so little, together with all that compute as little, that it changes no time how long
that took, is not judged by its operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import fmean
from typing import Any, NamedTuple

from engine.domain.report import RunReport
from engine.domain.trace import Span
from engine.domain.units import human_s
from engine.reports.against_model import ModelComparison, Trace, percentile_95
from engine.worlds.real.dilation import (
    OP_HOST_S,
    coldness,
    enough_dilation,
    enough_dilation_for_latency,
)

COMPUTE_MEAN_LIMIT = 0.05
LATE_LIMIT = 0.05
MODEL_LIMIT = 0.1
OVERLAP_LIMIT = 0.05
COMPARED_LEAST = 0.9

NEGLIGIBLE_FRAC = 0.01
"""Of the time in which requests wait: devices that compute for no longer, all together, change no time by
more, however late their operations are. A method that reads its weights again for every token computes for a
ten-thousandth of its time: to keep the pace of these operations took five minutes of wall time.
"""


class Complaint(NamedTuple):
    """What makes a run invalid, as a sentence without its end, and the dilation that would be enough for it,
    if one would.
    """

    what: str
    enough_dilation: float | None = None

    def sentence(self, dilation: float) -> str:
        if self.enough_dilation is None:
            return f"{self.what}."
        return f"{self.what}: raise the dilation from {dilation:g} to {self.enough_dilation:g}."


class Lateness(NamedTuple):
    """How late the operations of devices ended: their number, the part that overran, each one's error."""

    operations: int
    late_frac: float
    errors: Sequence[float]

    @classmethod
    def of(cls, pacing: Mapping[str, Mapping[str, Any]]) -> Lateness:
        operations = sum(stats["operations"] for stats in pacing.values())
        late = sum(stats["late"] for stats in pacing.values())
        errors = [abs(error) for stats in pacing.values() for error in stats["errors"]]
        return cls(operations, late / operations if operations else 0.0, errors)

    @property
    def mean(self) -> float | None:
        return fmean(self.errors) if self.errors else None


def with_negligible_work(report: RunReport, trace: Trace, part: float = 1.0) -> frozenset[str]:
    """The devices that compute so little, all together, that it changes no time how long that took."""
    busy_s: dict[str, float] = defaultdict(float)
    for item in trace:
        if isinstance(item, Span) and item.kind == "compute":
            busy_s[item.device] += item.end_s - item.start_s
    return least_busy(busy_s, part * NEGLIGIBLE_FRAC * _under_way_s(report))


def least_busy(busy_s: Mapping[str, float], within_s: float) -> frozenset[str]:
    """As many devices as are busy for `within_s` together, the least busy first."""
    ordered = sorted(busy_s, key=lambda device: busy_s[device])
    sums_s = accumulate(busy_s[device] for device in ordered)
    return frozenset(device for device, sum_s in zip(ordered, sums_s, strict=True) if sum_s <= within_s)


def _under_way_s(report: RunReport) -> float:
    """Virtual seconds in which at least one request waited for a token."""
    ends_s = [
        (one.arrival_s, one.arrival_s + max((*one.token_s, one.answered_s or 0.0))) for one in report.requests
    ]
    total_s, reached_s = 0.0, 0.0
    for begin_s, end_s in sorted(ends_s):
        total_s += max(0.0, end_s - max(begin_s, reached_s))
        reached_s = max(reached_s, end_s)
    return total_s


def negligible_notes(report: RunReport, compared: ModelComparison, idle: frozenset[str]) -> tuple[str, ...]:
    """What a verdict leaves out that it would else complain about."""
    off = [
        (device, one.error_s)
        for device, one in sorted(compared.by_device.items())
        if device in idle and one.error_s > MODEL_LIMIT * one.expected_s
    ]
    if not off:
        return ()
    names, error_s = ", ".join(device for device, _ in off), sum(one for _, one in off)
    return (
        f"Operations of {names} took times that are more than {MODEL_LIMIT:.0%} off their model. They "
        f"are not judged, because they are so short: all together that makes {human_s(error_s)} of "
        f"{human_s(_under_way_s(report))}.",
    )


def pacing_complaints(
    dilation: float, pacing: Mapping[str, Mapping[str, Any]], idle: frozenset[str], part: float = 1.0
) -> list[Complaint]:
    """What is wrong with how devices kept their pace, but for those that are `idle`."""
    judged = {device: stats for device, stats in pacing.items() if device not in idle}
    lateness = Lateness.of(judged)
    mean, late_frac = lateness.mean, lateness.late_frac
    why = []
    if mean is not None and mean > part * COMPUTE_MEAN_LIMIT:
        why.append(
            f"operations ended {mean:.1%} of their time later than they were due "
            f"(limit {COMPUTE_MEAN_LIMIT:.0%})"
        )
    if late_frac > part * LATE_LIMIT:
        why.append(f"{late_frac:.1%} of the operations overran (limit {LATE_LIMIT:.0%})")
    return [Complaint(what, _enough(dilation, judged)) for what in why]


def model_complaints(
    compared: ModelComparison, disturbed: bool, dilation: float, idle: frozenset[str], part: float = 1.0
) -> list[Complaint]:
    """What is wrong with the durations, but for devices that are `idle`. After a failure plans differ, so
    fewer operations can be compared.

    Paced operations are never shorter than their model: this host has made them longer, by wall seconds that
    do not grow with the dilation.
    """

    limit = part * MODEL_LIMIT

    def off_by(error: float, what: str) -> Complaint:
        return Complaint(
            f"{what} (limit {MODEL_LIMIT:.0%})", enough_dilation_for_latency(dilation, error, limit)
        )

    why = []
    judged = [one for device, one in compared.by_device.items() if device not in idle]
    mean = sum(one.error_s for one in judged) / sum(one.expected_s for one in judged) if judged else 0.0
    if mean > limit:
        why.append(off_by(mean, f"operations took times that are {mean:.1%} off their device's model"))
    else:
        why += [
            off_by(
                error,
                f"most operations of {device} in the {phase} took times that are {error:.1%} off its model "
                "or more",
            )
            for (device, phase), error in sorted(compared.typical.items())
            if error > limit and device not in idle
        ]
    if compared.overlap_frac > OVERLAP_LIMIT:
        overlap = (
            f"devices ran two operations at once for {compared.overlap_frac:.1%} of their computing time"
        )
        why.append(Complaint(f"{overlap} (limit {OVERLAP_LIMIT:.0%})"))
    least = 1 if disturbed else COMPARED_LEAST * compared.operations
    if compared.operations and compared.compared < least:
        found = f"only {compared.compared} of {compared.operations} operations occur in the prediction"
        why.append(Complaint(f"{found}: the others cannot be compared with their device's model"))
    return why


def _enough(dilation: float, pacing: Mapping[str, Mapping[str, Any]]) -> float:
    """The dilation with which all but 5 % of what each device did would have had head-room."""
    op_s = OP_HOST_S * coldness(len(pacing))
    used = [_used_frac(stats, op_s) for stats in pacing.values()]
    return enough_dilation(dilation, max(used))


def _used_frac(stats: Mapping[str, Any], op_s: float) -> float:
    """The part of its time that a device's work took: 95 % of batches, and `op_s` more per operation."""
    work = percentile_95(stats["used"])
    return 0.0 if work is None else float(work + stats["operations"] * op_s / stats["target_s"])
