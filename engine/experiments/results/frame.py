"""Rows as a table of pandas or a cube of xarray, with named coordinates. Both load their library when
called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.domain.experiment import Experiment
from engine.experiments.results.rows import Row

if TYPE_CHECKING:
    import pandas
    import xarray


def frame(rows: Sequence[Row]) -> pandas.DataFrame:
    """One line per row: coordinates, seed, world, outcome and what else is known, then every metric in SI
    units.

    A metric that a row does not have is NaN.
    """
    import pandas

    return pandas.DataFrame([row.flat() for row in rows])


def dataset(experiment: Experiment, rows: Sequence[Row], metrics: Sequence[str]) -> xarray.Dataset:
    """The metrics over the dimensions (factors in their order, world, seed); NaN where there is no value."""

    names = [*(factor.name for factor in experiment.factors), "world", "seed"]
    finished = [row for row in rows if row.finished]
    table = frame(finished).reindex(columns=[*names, *metrics])
    found: xarray.Dataset = table.set_index(names)[list(metrics)].to_xarray()
    return found
