"""Compares each compute model's predicted times of operations with those measured on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from emulator.calibration.operations import TimedOperation
from engine.domain.calibration import Calibration
from engine.domain.cluster import ComputeModel
from engine.ops.cost import op_time_s

COMPUTE_MODELS: tuple[ComputeModel, ...] = ("flops", "roofline", "measured")


class TimedPrediction(NamedTuple):
    """An operation on `rows` rows: seconds that this host took, and those of each compute model, in order."""

    model: str
    operation: str
    rows: int
    seconds: float
    predicted_s: tuple[float, ...]

    def error(self, compute_model: ComputeModel) -> float:
        """The error of a prediction: predicted / measured - 1."""
        return self.predicted_s[COMPUTE_MODELS.index(compute_model)] / self.seconds - 1


class Residuals(NamedTuple):
    """Errors of several operations: median and 95th percentile of |error|, and the error of their sum."""

    median: float
    p95: float
    total: float


def residuals(comparisons: Sequence[TimedPrediction], compute_model: ComputeModel) -> Residuals:
    """How far one compute model is from the times measured. Raises `ValueError` if there is no operation."""
    errors = sorted(abs(item.error(compute_model)) for item in comparisons)
    if not errors:
        raise ValueError("no operation was timed: time at least one")
    predicted = sum(item.predicted_s[COMPUTE_MODELS.index(compute_model)] for item in comparisons)
    total = predicted / sum(item.seconds for item in comparisons) - 1
    return Residuals(errors[len(errors) // 2], errors[int(0.95 * (len(errors) - 1))], total)


def of_kind(
    comparisons: Sequence[TimedPrediction], wanted: Callable[[TimedPrediction], bool]
) -> list[TimedPrediction]:
    return [item for item in comparisons if wanted(item)]


def compare(calibration: Calibration, timed: Iterable[TimedOperation]) -> list[TimedPrediction]:
    return [
        TimedPrediction(
            item.model,
            item.operation,
            item.rows,
            item.seconds,
            tuple(
                op_time_s(calibration.device, item.kernels, calibration.profile, compute_model)
                for compute_model in COMPUTE_MODELS
            ),
        )
        for item in timed
    ]
