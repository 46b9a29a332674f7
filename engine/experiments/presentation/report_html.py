"""One HTML file with all that an experiment found: figures, tables, claims, published values. It opens
without a server and loads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.domain.experiment import Experiment
from engine.domain.numbers_as_text import half_in, shown, shown_in, unit_and_factor
from engine.domain.quantity import Quantity
from engine.experiments.design.expand import Point
from engine.experiments.design.files import dump_toml
from engine.experiments.design.seeds import seed_changes
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.figure_values import FigureData
from engine.experiments.presentation.origin import Origin
from engine.experiments.presentation.plot import svg
from engine.experiments.results.best import best
from engine.experiments.results.cells import place_text
from engine.experiments.results.claims import verdicts
from engine.experiments.results.pivot import TableCell, TableData, table_data, tables_of
from engine.experiments.results.published import PublishedRow, compare_published
from engine.experiments.results.rows import Row
from engine.experiments.results.sameness import notes_of
from engine.experiments.results.units import unit_of_quantity

TEMPLATE = Path(__file__).with_name("report.html.jinja")
MAX_PROBLEMS = 200


def html_report(
    experiment: Experiment,
    points: Sequence[Point],
    rows: Sequence[Row],
    origin: Origin,
    figures: Mapping[str, tuple[FigureData, str]],
) -> str:
    """The page of an experiment with its `drawn_figures`; what has no results yet is shown without values.
    Raises `SpecError` as tables do.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        experiment=experiment,
        title=experiment.title or experiment.name,
        summary=summary(experiment, points, rows),
        figures=[(data, _inline(drawn)) for data, drawn in figures.values()],
        tables=[_table(table_data(experiment, table, rows)) for table in tables_of(experiment)],
        notes=notes_of(experiment, rows),
        best=_best(experiment, rows),
        claims=verdicts(experiment, rows),
        published=[_published(experiment, row) for row in compare_published(experiment, rows)],
        problems=_problems(experiment, rows),
        versions=f"{origin.text}." if rows else "There are no results yet.",
        seed_changes=", ".join(seed_changes(points)) or "nothing, so repeats are the same run",
        toml=dump_toml(experiment),
    )
    return page + "\n"


def drawn_figures(
    experiment: Experiment, rows: Sequence[Row], origin: Origin
) -> dict[str, tuple[FigureData, str]]:
    """The data and the SVG of every figure, by name. Raises `SpecError` as figures do."""
    named = zip(experiment.figures, figures_of(experiment, rows), strict=True)
    return {figure.name: (data, svg(data, origin)) for figure, data in named}


def summary(experiment: Experiment, points: Sequence[Point], rows: Sequence[Row]) -> str:
    """How many points there are, and how many of them have results in each world."""
    done = [
        f"{sum(row.finished for row in rows if row.world == world)} of {len(points)} {world}"
        for world in experiment.worlds
    ]
    stale = sum(row.stale for row in rows)
    invalid = sum(not row.valid for row in rows)
    more = f"; {stale} made by another version of the code or another calibration" if stale else ""
    more += f"; {invalid} with times that are not valid" if invalid else ""
    missed = sum(row.metrics.get("changes_missed", 0) > 0 for row in rows)
    more += f"; {missed} that ended before a change of their scenario" if missed else ""
    seeds = "1 seed" if len(experiment.seeds) == 1 else f"{len(experiment.seeds)} seeds"
    return f"{len(points)} points ({seeds}): {', '.join(done)} finished{more}."


def _inline(text: str) -> str:
    """The `<svg>` element alone, for a place inside a page."""
    return text[text.index("<svg") :]


def _table(table: TableData) -> dict[str, Any]:
    unit, factor = unit_and_factor(
        table.unit, [cell.value for row in table.rows for cell in row.cells if cell]
    )
    return {
        "title": table.heading,
        "quantity": table.quantity,
        "shown_unit": unit,
        "statistic": "mean ± half of the 95 % interval" if table.statistic == "interval" else table.statistic,
        "better": table.better,
        "num_headings": len(table.row_titles),
        "heads": table.heads,
        "rows": [
            {"headings": row.headings, "cells": [_cell(cell, factor) for cell in row.cells]}
            for row in table.rows
        ],
    }


def _cell(cell: TableCell | None, factor: float) -> dict[str, Any]:
    return {
        "text": cell_text(cell, factor),
        "best": bool(cell and cell.best),
        "problem": cell.problem if cell else "",
    }


def cell_text(cell: TableCell | None, factor: float) -> str:
    """The number in multiples of `factor`, or the outcome in words where there is none."""
    if cell is None:
        return ""
    if cell.value is None:
        return "not valid" if cell.invalid else cell.outcomes[0].replace("_", " ") if cell.outcomes else "–"
    text = shown_in(cell.value, factor)
    if cell.low is not None and cell.high is not None:
        text += f" ± {half_in((cell.high - cell.low) / 2, cell.value, factor)}"
    return text


def _best(experiment: Experiment, rows: Sequence[Row]) -> list[dict[str, str]]:
    """The best level at every place of the first figure that has a series."""
    figure = next((one for one in experiment.figures if one.series not in ("", "world")), None)
    if figure is None:
        return []
    unit = unit_of_quantity(figure)
    quantity = Quantity(metric=figure.metric, relation=figure.relation, relative_to=figure.relative_to)
    return [
        {
            "place": place_text(experiment, one.coordinates),
            "winners": one.told,
            "value": shown(one.mean, unit),
            "next": one.next,
            "next_value": "" if one.next_mean is None else shown(one.next_mean, unit),
        }
        for one in best(experiment, rows, quantity, figure.series, figure.where, figure.worlds)
    ]


def _published(experiment: Experiment, row: PublishedRow) -> dict[str, str]:
    if row.published_outcome:
        ours = ", ".join(dict.fromkeys(row.outcomes)) or "no result"
        agrees = {True: "the same", False: "another", None: ""}[row.agrees]
        published, deviation = row.published_outcome, agrees
    else:
        ends = (row.published_low, row.published_high) if row.published is None else (row.published,)
        published = " to ".join(shown(end, row.unit) for end in ends if end is not None)
        ours = shown(row.ours, row.unit) if row.ours is not None else row.problem
        deviation = "" if row.deviation is None else f"{row.deviation:+.1%}"
    return {
        "where": row.where or row.id,
        "place": place_text(experiment, row.coordinates),
        "world": row.world,
        "published": published.replace("_", " "),
        "ours": ours.replace("_", " "),
        "deviation": deviation,
    }


def _problems(experiment: Experiment, rows: Sequence[Row]) -> list[dict[str, str]]:
    return [
        {
            "place": place_text(experiment, row.coordinates),
            "world": row.world,
            "outcome": row.outcome.replace("_", " "),
            "sentence": row.sentence,
        }
        for row in rows
        if not row.finished
    ][:MAX_PROBLEMS]


def figures_of(experiment: Experiment, rows: Sequence[Row]) -> tuple[FigureData, ...]:
    """Every figure of the experiment, in its order."""
    return tuple(figure_data(experiment, figure, rows) for figure in experiment.figures)
