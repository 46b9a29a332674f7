"""How far a calibration is off, as rows of text: for `./loom calibrate` and for benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from emulator.calibration.calibrate import Step
from emulator.calibration.residuals import COMPUTE_MODELS, TimedPrediction, of_kind, residuals
from engine.domain.units import human_s

LONG_S = 1e-3
"""The length from which on operations make up most of a run's time."""


class Shown(NamedTuple):
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def steps_shown(steps: Sequence[Step]) -> Shown:
    """How far each step of a calibration is off."""
    rows = [
        (step.name, str(step.figures), f"{step.median:.1%}", f"{step.p95:.1%}", f"{step.total:+.1%}")
        for step in steps
    ]
    title = (
        "Steps of the calibration: median and 95 % of |predicted / measured - 1|, and of the sum of times."
    )
    return Shown(title, ("step", "times", "median", "95 %", "sum"), tuple(rows))


def residuals_shown(comparisons: Sequence[TimedPrediction]) -> Shown:
    """Residuals by kind of operation, those of long ones by themselves."""
    groups = [
        (f"from {human_s(LONG_S)}", of_kind(comparisons, lambda item: item.seconds >= LONG_S)),
        ("shorter", of_kind(comparisons, lambda item: item.seconds < LONG_S)),
    ]
    for kind in dict.fromkeys(_kind(item) for item in comparisons):
        groups.append((kind, of_kind(comparisons, lambda item, kind=kind: _kind(item) == kind)))  # type: ignore[misc]
    rows = []
    for name, group in groups:
        if group:
            off = [residuals(group, compute_model) for compute_model in COMPUTE_MODELS]
            cells = [f"{item.median:.0%} / {item.p95:.0%} / {item.total:+.0%}" for item in off]
            rows.append((name, str(len(group)), *cells))
    models = ", ".join(dict.fromkeys(item.model for item in comparisons))
    title = (
        f"Operations of {models}: how far each compute model is off on this host, as median and 95 % of "
        "|predicted / measured - 1|, and of the sum of all times."
    )
    return Shown(title, ("operation", "shapes", *COMPUTE_MODELS), tuple(rows))


def _kind(item: TimedPrediction) -> str:
    return "position shard" if item.operation.startswith("position shard") else item.operation
