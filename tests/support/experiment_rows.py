"""Small experiments without runs, and rows of results written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.domain.experiment import Experiment
from engine.experiments.results.rows import Row

METHODS = {
    "name": "method",
    "path": "strategy",
    "values": ["single", {"value": "voltage", "label": "Voltage"}],
}
RATES = {
    "name": "rate",
    "title": "Rate of the links",
    "unit": "bit/s",
    "path": "cluster.links[*].bit_per_s",
    "values": [1e6, 1e7, 1e8],
}

FALLING = {
    ("single", 1e6): 2.0,
    ("single", 1e7): 2.0,
    ("single", 1e8): 2.0,
    ("voltage", 1e6): 8.0,
    ("voltage", 1e7): 4.0,
    ("voltage", 1e8): 1.0,
}
"""Voltage crosses single's 2 s between 1e7 and 1e8: log(4/2) = log 2 above, log(1/2) = -log 2 below: half way
on the logarithm, at 10^7.5.
"""


def experiment_of(*factors: Mapping[str, Any], **fields: Any) -> Experiment:
    made: Experiment = Experiment.parse(
        {"name": "test", "factors": factors or (METHODS, RATES), **fields}, "test"
    )
    return made


def rows_of(
    metric: str, values: Mapping[Sequence[Any], float | Sequence[float] | str], names: str = "method rate"
) -> list[Row]:
    """Coordinates → the metric's value, its values with seeds 0, 1, …, or the outcome of a run without one.

    A coordinate after the named factors is the world.
    """
    found = []
    for at, given in values.items():
        coordinates = dict(zip(names.split(), at, strict=False))
        world = at[len(coordinates)] if len(at) > len(coordinates) else "predicted"
        for seed, value in enumerate([given] if isinstance(given, float | int | str) else given):
            is_value = not isinstance(value, str)
            found.append(
                Row(
                    coordinates=coordinates,
                    seed=seed,
                    world=world,
                    digest="-".join(str(part) for part in (*at, seed)),
                    outcome="finished" if is_value else str(value),
                    sentence="" if is_value else f"It ended as {value}.",
                    metrics={metric: float(value)} if is_value else {},
                )
            )
    return found
