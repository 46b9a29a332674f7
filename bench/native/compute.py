"""Compares each compute model's predictions with the times of operations on this host."""

from __future__ import annotations

from bench.tables.rows import Table
from emulator.calibration.operations import MODELS, ROWS, SHARDS
from emulator.calibration.report import measured_steps
from emulator.calibration.residuals import COMPUTE_MODELS, of_kind
from emulator.calibration.shapes import SHORT
from emulator.calibration.shown import residuals_shown
from engine.domain.units import human_s


def measure_compute() -> Table:
    return Table(*residuals_shown(measured_steps(SHORT, models=MODELS, rows=ROWS).comparisons))


def measure_shards() -> Table:
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
