"""Compares each compute model's predictions with the times of operations on this host."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.bench.rows import Table
from emulator.calibration.calibrate import Step
from emulator.calibration.operations import MODELS, ROWS, SHARDS
from emulator.calibration.report import measured_steps
from emulator.calibration.residuals import COMPUTE_MODELS, TimedPrediction, of_kind, residuals
from emulator.calibration.shapes import SHORT
from engine.cli.command import Environment
from engine.domain.units import human_s

LONG_S = 1e-3
"""Operations from this length on make up most of a run's time."""


def measure_compute(environment: Environment) -> Table:
    return residual_table(measured_steps(SHORT, models=MODELS, rows=ROWS).comparisons)


def measure_shards(environment: Environment) -> Table:
    """A layer cut into shards of few rows each, for which FLOPs alone predict worst."""
    timed = measured_steps(SHORT, models=("bert-large",), rows=(200,)).comparisons
    (block,) = of_kind(timed, lambda item: item.operation == "block")
    (shard,) = of_kind(timed, lambda item: item.operation == "position shard, reordered")
    ratios = [block.seconds / shard.seconds] + [
        whole / part for whole, part in zip(block.predicted_s, shard.predicted_s, strict=True)
    ]
    rows = (
        ("a layer", *map(human_s, (block.seconds, *block.predicted_s))),
        (f"one of {SHARDS} shards", *map(human_s, (shard.seconds, *shard.predicted_s))),
        ("ratio", *(f"{ratio:.2f}" for ratio in ratios)),
    )
    title = (
        "A layer of bert-large, 200 rows, and a position shard of it, products in the order of fewest FLOPs."
    )
    return Table(title, ("", "this host", *COMPUTE_MODELS), rows)


def steps_table(steps: Sequence[Step]) -> Table:
    """How far each step of a calibration is off."""
    rows = [
        (step.name, str(step.figures), f"{step.median:.1%}", f"{step.p95:.1%}", f"{step.total:+.1%}")
        for step in steps
    ]
    title = (
        "Steps of the calibration: median and 95 % of |predicted / measured - 1|, and of the sum of times."
    )
    return Table(title, ("step", "times", "median", "95 %", "sum"), tuple(rows))


def residual_table(comparisons: Sequence[TimedPrediction]) -> Table:
    """By kind of operation, the long ones by themselves."""
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
    return Table(title, ("operation", "shapes", *COMPUTE_MODELS), tuple(rows))


def _kind(item: TimedPrediction) -> str:
    return "position shard" if item.operation.startswith("position shard") else item.operation
