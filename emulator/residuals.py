"""How far each compute model is off on this host: operations of whole models, predicted and timed.

`python -m emulator.residuals MODELS ROWS < calibration` times in a process of its own, with one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from emulator.host import ROOT, Calibration
from emulator.operations import time_operations
from engine.cluster import ComputeModel
from engine.cost import op_time_s
from engine.errors import HostError

COMPUTE_MODELS: tuple[ComputeModel, ...] = ("flops", "roofline", "measured")
QUICK_MODELS, QUICK_ROWS = ("bert-base", "tinyllama-42m"), (1, 34, 128)


class Comparison(NamedTuple):
    """An operation on `rows` rows: seconds that this host took, and those of each compute model, in order."""

    model: str
    operation: str
    rows: int
    seconds: float
    predicted_s: tuple[float, ...]

    def error(self, compute_model: ComputeModel) -> float:
        """predicted / measured - 1."""
        return self.predicted_s[COMPUTE_MODELS.index(compute_model)] / self.seconds - 1


class Residuals(NamedTuple):
    """Of several operations: median and 95th percentile of |error|, and the error of their sum."""

    median: float
    p95: float
    total: float


def residuals(comparisons: Sequence[Comparison], compute_model: ComputeModel) -> Residuals:
    """Raises `ValueError` if there is no operation."""
    errors = sorted(abs(item.error(compute_model)) for item in comparisons)
    if not errors:
        raise ValueError("no operation was timed: time at least one")
    predicted = sum(item.predicted_s[COMPUTE_MODELS.index(compute_model)] for item in comparisons)
    total = predicted / sum(item.seconds for item in comparisons) - 1
    return Residuals(errors[len(errors) // 2], errors[int(0.95 * (len(errors) - 1))], total)


def of_kind(comparisons: Sequence[Comparison], wanted: Callable[[Comparison], bool]) -> list[Comparison]:
    return [item for item in comparisons if wanted(item)]


def compare(
    calibration: Calibration, models: Sequence[str] = QUICK_MODELS, rows: Sequence[int] = QUICK_ROWS
) -> list[Comparison]:
    """Time the operations of `models` now. Raises `HostError` if that fails."""
    done = subprocess.run(
        [sys.executable, "-m", "emulator.residuals", ",".join(models), ",".join(map(str, rows))],
        input=calibration.to_json(), env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise HostError(f"Timing operations failed: {reason}.")
    return [
        Comparison(model, operation, count, seconds, tuple(predicted_s))
        for model, operation, count, seconds, predicted_s in json.loads(done.stdout)
    ]


def main(models: str, rows: str) -> int:
    calibration = Calibration.from_json(sys.stdin.read(), "calibration")
    comparisons = [
        Comparison(timed.model, timed.operation, timed.rows, timed.seconds, tuple(
            op_time_s(calibration.device, timed.kernels, calibration.profile, compute_model)
            for compute_model in COMPUTE_MODELS
        ))
        for timed in time_operations(models.split(","), [int(count) for count in rows.split(",")])
    ]
    json.dump(comparisons, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
