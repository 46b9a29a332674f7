"""Figures, tables, claims and comparisons of what is computed, by the functions of `engine/experiments`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.world import World
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.results.best import Best, best
from engine.experiments.results.claims import verdicts
from engine.experiments.results.pivot import table_data
from engine.experiments.results.published import compare_published
from engine.experiments.results.rows import REFUSED, Result, Row
from engine.experiments.results.sameness import notes_of
from webapp.clusters.validation import Problem
from webapp.experiments.models import Cell, Execution
from webapp.experiments.points import with_points
from webapp.experiments.schemas import AnalysisOut
from webapp.experiments.versions import reason_stale


def rows_of(execution: Execution) -> tuple[Row, ...]:
    """The rows that have an answer: results, and points that cannot be run."""
    found = (row_of(cell) for cell in with_points(execution.cells.all()))
    return tuple(row for row in found if row is not None)


def row_of(cell: Cell) -> Row | None:
    """The row of a cell; None for a point that is not computed yet, or failed for a reason that is not its
    own.
    """
    world = cast(World, cell.world)
    point = cell.run
    if point is None:
        result = Result(digest=cell.digest, world=world, outcome=REFUSED, sentence=cell.problem)
    elif point.result is not None:
        stored = {key: value for key, value in point.result.items() if key != "schema"}
        result = Result.model_validate(stored, extra="ignore", context={"extra": "ignore"})
    else:
        return None
    stale = point is not None and bool(reason_stale(world, point.code_version, result.calibration))
    run = str(point.pk) if point and point.listed else ""
    about = result.model_dump(exclude={"run"}) | {"run": run, "stale": stale}
    return Row(coordinates=cell.coordinates, seed=cell.seed, **about)


def analysis(experiment: Experiment, rows: Sequence[Row]) -> AnalysisOut:
    """A figure or table that cannot be drawn is a problem, and the others are there."""
    figures, tables, problems = [], [], []
    for index, figure in enumerate(experiment.figures):
        try:
            figures.append(figure_data(experiment, figure, rows))
        except SpecError as error:
            problems.append(Problem(path=f"figures[{index}]", message=str(error)))
    for index, table in enumerate(experiment.tables):
        try:
            tables.append(table_data(experiment, table, rows))
        except SpecError as error:
            problems.append(Problem(path=f"tables[{index}]", message=str(error)))
    return AnalysisOut(
        figures=figures,
        tables=tables,
        best=list(best_of_first(experiment, rows)),
        notes=list(notes_of(experiment, rows)),
        claims=list(verdicts(experiment, rows)),
        published=list(compare_published(experiment, rows)),
        problems=problems,
    )


def preview_figures(experiment: Experiment, rows: Sequence[Row]) -> AnalysisOut:
    return analysis(experiment.model_copy(update={"tables": (), "claims": (), "published": ()}), rows)


def best_of_first(experiment: Experiment, rows: Sequence[Row]) -> tuple[Best, ...]:
    """The best level of the first figure's series, at each of its places."""
    if not experiment.figures or not experiment.figures[0].series:
        return ()
    figure = experiment.figures[0]
    try:
        return best(experiment, rows, figure, figure.series, figure.where, figure.worlds)
    except SpecError:
        return ()  # `analysis` lists the figure's problem
