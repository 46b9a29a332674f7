"""Results as files that other programs read: CSV, JSON, Parquet, and tables for LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from engine.domain.experiment import Experiment
from engine.domain.spreadsheet import harmless
from engine.experiments.presentation.figure_values import FigureData
from engine.experiments.results.frame import frame
from engine.experiments.results.numbers_as_text import shown_in, unit_and_factor
from engine.experiments.results.pivot import TableCell, TableData
from engine.experiments.results.rows import Row

LATEX_SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
    }
)


def csv_text(rows: Sequence[Row]) -> str:
    """Comma-separated, a header first; every column of every row, empty where a row has no such value."""
    flat = [row.flat() for row in rows]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({name: harmless(value) for name, value in row.items()} for row in flat)
    return text.getvalue()


def json_text(experiment: Experiment, rows: Sequence[Row]) -> str:
    """An object with the experiment and its rows."""
    document = {
        "experiment": experiment.model_dump(mode="json"),
        "rows": [row.model_dump(mode="json") for row in rows],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def parquet_bytes(rows: Sequence[Row]) -> bytes:
    """A Parquet file with the columns of `frame`. A coordinate with values of several types is text."""
    table = frame(rows)
    for name in table.columns:
        if table[name].map(type).nunique() > 1 and table[name].dtype == object:
            table[name] = table[name].map(lambda value: None if value is None else str(value))
    target = io.BytesIO()
    table.to_parquet(target, index=False)
    return target.getvalue()


def latex(table: TableData) -> str:
    """A `tabular` with booktabs' rules, in one multiple of the unit; the best of each row is bold."""
    unit, factor = unit_and_factor(
        table.unit, [cell.value for row in table.rows for cell in row.cells if cell]
    )
    heads = len(table.row_titles)
    title = " ".join(table.title.split())  # a second line would be no comment
    lines = [
        f"% {title}: {table.quantity}{f' in {unit}' if unit else ''}, {table.statistic}",
        r"\begin{tabular}{" + "l" * heads + "r" * len(table.columns) + "}",
        r"\toprule",
    ]
    lines += [" & ".join(map(_tex, line)) + r" \\" for line in table.heads]
    lines.append(r"\midrule")
    for row in table.rows:
        cells = [_tex_cell(cell, factor) for cell in row.cells]
        lines.append(" & ".join([*map(_tex, row.headings), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def figure_csv(figure: FigureData) -> str:
    """The numbers that a figure shows, one line per point: for other plotting programs."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["facet", figure.series_title or "series", "world", figure.x.name, figure.y.name, "low", "high"]
    )
    for panel in figure.panels:
        for line in panel.lines:
            for spot in line.spots:
                values = [panel.label, line.label, line.world, spot.x, spot.y, spot.low, spot.high]
                writer.writerow("" if value is None else harmless(value) for value in values)
    return text.getvalue()


def _tex_cell(cell: TableCell | None, factor: float) -> str:
    if cell is None:
        return ""
    if cell.value is None:
        return _tex(cell.outcomes[0].replace("_", " ") if cell.outcomes else "--")
    text = shown_in(cell.value, factor)
    if cell.low is not None and cell.high is not None:
        text += rf" $\pm$ {shown_in((cell.high - cell.low) / 2, factor)}"
    return rf"\textbf{{{text}}}" if cell.best else text


def _tex(text: str) -> str:
    return text.translate(LATEX_SPECIAL)
