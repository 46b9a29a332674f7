"""Pivot tables and the data of figures against numbers worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from engine.domain.errors import SpecError
from engine.domain.presented import Figure, Table
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.figure_values import number_text
from engine.experiments.results.pivot import table_data
from tests.support.experiment_rows import FALLING, experiment_of, rows_of


def test_a_pivot_table_has_the_levels_in_their_order_and_marks_the_best_of_each_row() -> None:
    rows = rows_of("latency_s", dict(reversed(FALLING.items())))
    table = Table(name="t", rows=("rate",), columns=("method",), metric="latency_s")
    made = table_data(experiment_of(), table, rows)
    assert (made.columns, made.row_titles, made.unit) == (
        (("single",), ("Voltage",)),
        ("Rate of the links",),
        "s",
    )
    shown = {row.headings: [(cell.value, cell.best) for cell in row.cells if cell] for row in made.rows}
    assert list(shown) == [("1 Mbit/s",), ("10 Mbit/s",), ("100 Mbit/s",)]
    assert shown["100 Mbit/s",] == [(2.0, False), (1.0, True)]
    assert shown["1 Mbit/s",] == [(2.0, True), (8.0, False)]


def test_all_numbers_that_read_like_the_best_of_their_row_are_marked() -> None:
    table = Table(name="t", rows=("rate",), columns=("method",), metric="latency_s")

    def marked(single: float, voltage: float) -> list[bool]:
        rows = rows_of("latency_s", {("single", 1e6): single, ("voltage", 1e6): voltage})
        return [cell.best for cell in table_data(experiment_of(), table, rows).rows[0].cells if cell]

    assert marked(0.55512, 0.55483) == [True, True], "both are 555 ms"
    assert marked(0.5556, 0.55483) == [False, True], "556 and 555 ms"


@pytest.mark.parametrize(
    ("statistic", "value"),
    [("mean", 3.0), ("median", 2.0), ("min", 1.0), ("max", 6.0), ("std", 7**0.5), ("interval", 3.0)],
)
def test_a_table_takes_the_statistic_over_all_that_falls_into_a_cell(statistic: Any, value: float) -> None:
    rows = rows_of("latency_s", {("single", 1e6): [1.0, 2.0], ("single", 1e7): [6.0]})
    table = Table(name="t", rows=("method",), metric="latency_s", statistic=statistic)
    (row,) = table_data(experiment_of(), table, rows).rows
    (cell,) = row.cells
    assert cell is not None and cell.value == pytest.approx(value) and cell.number == 3
    assert (cell.low is not None) == (statistic == "interval")


def test_a_figure_has_a_line_per_level_and_world_and_published_marks_of_their_own() -> None:
    values = {**FALLING, ("voltage", 1e8, "emulated"): 1.1}
    published = [{"coordinates": {"method": "voltage", "rate": 1e7}, "value": 4.5, "where": "Fig. 1"}]
    experiment = experiment_of(worlds=["predicted", "emulated"], published=published)
    made = figure_data(
        experiment, Figure(name="f", x="rate", series="method", log_x=True), rows_of("latency_s", values)
    )
    (panel,) = made.panels
    lines = {(line.label, line.world): [(spot.x, spot.y) for spot in line.spots] for line in panel.lines}
    assert lines == {
        ("single", "predicted"): [(1e6, 2.0), (1e7, 2.0), (1e8, 2.0)],
        ("Voltage", "predicted"): [(1e6, 8.0), (1e7, 4.0), (1e8, 1.0)],
        ("Voltage", "emulated"): [(1e8, 1.1)],
        ("Voltage", "published"): [(1e7, 4.5)],
    }
    assert (made.x.unit, made.x.log, made.x.categories, made.y.unit) == ("bit/s", True, None, "s")
    assert [crossing.above for crossing in panel.crossings] == ["Voltage"]
    assert (made.x.heading, made.y.heading) == ("Rate of the links (Mbit/s)", "End-to-end latency (s)")
    assert made.x.ticks is not None
    assert [(tick.value, tick.text) for tick in made.x.ticks] == [(1e6, "1"), (1e7, "10"), (1e8, "100")]
    assert [(entry.label, entry.place) for entry in made.legend.series] == [("single", 0), ("Voltage", 1)]
    sources = [(entry.source, entry.mark) for entry in made.legend.sources]
    assert sources == [("predicted", "hollow"), ("emulated", "filled"), ("published", "published")]


def test_an_axis_is_written_in_the_multiple_of_its_smallest_value_those_left_out_of_means_included() -> None:
    valid, left_out = rows_of("latency_s", {("single", 1e6): [2.0, 0.25]})
    rows = [valid, left_out.model_copy(update={"metrics": {**left_out.metrics, "valid": 0.0}})]
    made = figure_data(experiment_of(), Figure(name="f", x="rate", series="method"), rows)
    assert (made.y.heading, made.y.text(0.25), made.y.text(12345.6)) == (
        "End-to-end latency (ms)",
        "250",
        "12 345 600",
    )
    assert made.legend.left_out == "not valid, left out"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0625, "0.0625"), (1.2345, "1.2345"), (-12.75, "-12.75"), (1234.5, "1234.5"), (12345.6, "12 345.6")],
)
def test_a_number_keeps_its_digits(number: float, text: str) -> None:
    assert number_text(number) == text


def test_a_series_of_worlds_is_its_own_legend_and_one_level_needs_none() -> None:
    values = {("single", 1e6, world): 1.0 for world in ("predicted", "calculated")}
    experiment = experiment_of(worlds=["predicted", "calculated"])
    rows = rows_of("latency_s", values)
    worlds = figure_data(experiment, Figure(name="f", x="rate", series="world"), rows).legend
    assert [entry.label for entry in worlds.series] == ["predicted", "calculated"] and worlds.sources == ()
    one = figure_data(experiment, Figure(name="f", x="rate"), rows).legend
    assert one.series == ()
    assert [entry.mark for entry in one.sources] == ["hollow", "dotted"]


def test_bars_have_categories_and_a_facet_makes_panels() -> None:
    figure = Figure(name="f", kind="bars", x="method", facet="rate", metric="latency_s")
    made = figure_data(experiment_of(), figure, rows_of("latency_s", FALLING))
    assert made.x.categories == ("single", "Voltage")
    assert [panel.label for panel in made.panels] == ["1 Mbit/s", "10 Mbit/s", "100 Mbit/s"]
    assert [[spot.x for spot in line.spots] for line in made.panels[0].lines] == [["single", "Voltage"]]


def test_a_scatter_plot_has_one_metric_over_another() -> None:
    rows = rows_of("latency_s", FALLING)
    rows = [
        row.model_copy(update={"metrics": {**row.metrics, "link_bytes": row.metrics["latency_s"] * 10}})
        for row in rows
    ]
    figure = Figure(name="f", kind="scatter", x="link_bytes", series="method")
    made = figure_data(experiment_of(), figure, rows)
    spots = [spot for line in made.panels[0].lines for spot in line.spots if line.label == "Voltage"]
    assert [(spot.x, spot.y) for spot in spots] == [(10.0, 1.0), (40.0, 4.0), (80.0, 8.0)]
    assert (spots[0].x_label, spots[0].note) == ("10 B", "Voltage, 100 Mbit/s")


WRONG = [
    ({"x": "speed"}, "there is no factor speed: there are method, rate, world"),
    ({"x": "rate"}, "method has 2 values and no place"),
    ({"x": "rate", "series": "rate"}, "rate is used twice"),
    ({"x": "rate", "series": "method", "metric": "time"}, "metric is time, which is unknown"),
    ({"kind": "heatmap", "x": "rate"}, "a heat map needs series"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG)
def test_a_figure_that_names_what_is_not_there_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        figure_data(experiment_of(), Figure(name="f", **fields), rows_of("latency_s", FALLING))


def test_a_mark_says_where_a_published_value_stands_and_how_many_runs_do_not_count() -> None:
    published = [{"coordinates": {"method": "voltage", "rate": 1e7}, "value": 4.5, "where": "Fig. 1"}]
    rows = [
        row.model_copy(update={"metrics": {**row.metrics, "valid": float(row.metrics["latency_s"] != 1.0)}})
        for row in rows_of("latency_s", {**FALLING, ("voltage", 1e7): [4.0, 1.0]})
    ]
    made = figure_data(experiment_of(published=published), Figure(name="f", x="rate", series="method"), rows)
    notes = {
        (line.world, spot.x, spot.note) for line in made.panels[0].lines for spot in line.spots if spot.note
    }
    assert ("published", 1e7, "Fig. 1") in notes
    assert ("predicted", 1e7, "One run does not count as valid.") in notes
