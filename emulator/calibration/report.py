"""Measures this machine in a child process, and reports how far each step of its calibration is off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.calibration.calibrate import Measured, Raw, Step
from emulator.calibration.known import measured
from emulator.calibration.residuals import TimedPrediction
from emulator.calibration.shapes import Extent
from engine.domain.calibration import Calibration

HELD_OUT, HELD_OUT_ROWS = ("bert-base", "tinyllama-42m"), (1, 34, 128)
"""Models of the catalogue whose operations test a calibration: it has not seen their shapes."""


def measured_steps(
    extent: Extent,
    models: Sequence[str] = (),
    rows: Sequence[int] = (),
    progress: Callable[[str], None] = lambda what: None,
    check: Callable[[], None] = lambda: None,
) -> Measured:
    """Calibrate this host now, and time operations of `models` in turn with it. Raises `HostError`."""
    answer = measured(extent, models, rows, progress, check=check)
    return Measured(
        Calibration.parse(answer["calibration"], "calibration"),
        tuple(Step(*step) for step in answer["steps"]),
        tuple(
            TimedPrediction(model, operation, count, seconds, tuple(predicted_s))
            for model, operation, count, seconds, predicted_s in answer["comparisons"]
        ),
        Raw(**answer["raw"]),
    )
