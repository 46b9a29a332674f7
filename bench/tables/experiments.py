"""An experiment's tables side by side: a row for each place, a column for each table and column of it.

Results are kept in `results`, as those of `./loom experiment`, so that a call that was stopped goes on.
"""

from __future__ import annotations

from pathlib import Path

from bench.tables.rows import Table
from emulator.cli.main import ENVIRONMENT
from engine.cli.experiment_command import campaign_of, carry_out_tasks
from engine.domain.numbers_as_text import unit_and_factor
from engine.experiments.design.files import load_file
from engine.experiments.presentation.report_html import cell_text
from engine.experiments.results.pivot import TableCell, TableData, table_data

RESULTS = Path("results")


def measure_experiment(file: Path) -> Table:
    """Carry out what has no result of this code yet; the tables of `file` have the same rows."""
    campaign = campaign_of(load_file(file), ENVIRONMENT, RESULTS)
    tasks = campaign.tasks(retry=True, repeat_stale=True)
    carry_out_tasks(campaign, tasks, len(tasks), jobs=1)
    found, experiment = campaign.rows(), campaign.experiment
    first, *others = [table_data(experiment, each, found) for each in experiment.tables]
    parts = [_columns(each) for each in (first, *others)]
    columns = [*first.row_titles, *(name for names, _ in parts for name in names)]
    rows = (
        (*row.headings, *(cell for _, cells in parts for cell in cells[place]))
        for place, row in enumerate(first.rows)
    )
    worlds = " and ".join(experiment.worlds)
    return Table(f"{experiment.description} {worlds.capitalize()}.", tuple(columns), tuple(rows))


def _columns(data: TableData) -> tuple[list[str], list[list[str]]]:
    """The heads of a table's columns, with its unit, and the cells of every row."""
    unit, factor = unit_and_factor(data.unit, [cell.value for row in data.rows for cell in row.cells if cell])
    names = [" ".join((data.title, *column)) + (f" ({unit})" if unit else "") for column in data.columns]
    return names, [[_text(cell, factor) for cell in row.cells] for row in data.rows]


def _text(cell: TableCell | None, factor: float) -> str:
    """Nothing where a run that finished has no such figure, as a lossless one has no divergence."""
    if cell is None or cell.value is not None or cell.invalid or set(cell.outcomes) != {"finished"}:
        return cell_text(cell, factor)
    return ""
