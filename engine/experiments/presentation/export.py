"""Numbers as files that other programs read, CSV, JSON and Parquet: of all points, of a figure, of a table.

All three formats have the same records; each record names the experiment that it is of.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from engine.domain.experiment import Experiment
from engine.domain.spreadsheet import harmless
from engine.experiments.presentation.figure_values import FigureData
from engine.experiments.presentation.origin import Origin
from engine.experiments.results.pivot import TableData
from engine.experiments.results.rows import Row

Record = dict[str, Any]


def records_of_rows(rows: Sequence[Row], origin: Origin) -> list[Record]:
    """Every row, in SI units."""
    return [row.flat() | origin.columns for row in rows]


def records_of_figure(figure: FigureData, origin: Origin) -> list[Record]:
    """The numbers that a figure shows, one per point: of `runs` runs, without `invalid` others.
    `same_as` names the level that it is one computation with.
    """
    return [
        {
            "facet": panel.label,
            figure.series_title or "series": line.label,
            "world": line.world,
            figure.x.name: spot.x,
            figure.y.name: spot.y,
            "low": spot.low,
            "high": spot.high,
            "runs": len(spot.repeats),
            "invalid": spot.invalid,
            "same_as": line.same_as,
            **origin.columns,
        }
        for panel in figure.panels
        for line in panel.lines
        for spot in line.spots
    ]


def records_of_table(table: TableData, origin: Origin) -> list[Record]:
    """The numbers that a table shows, one per cell."""
    return [
        {
            **dict(zip(table.row_titles, row.headings, strict=True)),
            **dict(zip(table.column_titles, headings, strict=True)),
            f"{table.quantity} ({table.unit})" if table.unit else table.quantity: cell.value,
            "low": cell.low,
            "high": cell.high,
            "runs": cell.number,
            "invalid": cell.invalid,
            "best": cell.best,
            "computation": cell.computation,
            **origin.columns,
        }
        for row in table.rows
        for headings, cell in zip(table.columns, row.cells, strict=True)
        if cell is not None
    ]


def csv_text(records: Sequence[Record]) -> str:
    """Comma-separated, a header first; every column of every record, empty where one has no such value."""
    columns = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({name: harmless(value) for name, value in record.items()} for record in records)
    return text.getvalue()


def parquet_bytes(records: Sequence[Record]) -> bytes:
    """The same columns; one with values of several types is text."""
    import pandas

    table = pandas.DataFrame(list(records))
    for name in table.columns:
        if table[name].map(type).nunique() > 1 and table[name].dtype == object:
            table[name] = table[name].map(lambda value: None if value is None else str(value))
    target = io.BytesIO()
    table.to_parquet(target, index=False)
    return target.getvalue()


def json_text(experiment: Experiment, rows: Sequence[Row], origin: Origin) -> str:
    """An object with the experiment, where it comes from, and its rows."""
    document = {
        "experiment": experiment.model_dump(mode="json"),
        "origin": origin.model_dump(mode="json"),
        "rows": [row.model_dump(mode="json") for row in rows],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
