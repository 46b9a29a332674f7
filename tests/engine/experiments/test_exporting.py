"""Results as files: they can be read again with the same numbers, and nothing in them runs or is loaded."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pandas
import pytest

from engine.domain.numbers_as_text import half_in, shown, shown_in, unit_and_factor
from engine.domain.presented import Figure, Table
from engine.experiments.design.files import dump_toml, parse_json, parse_toml
from engine.experiments.presentation.axes import labelled
from engine.experiments.presentation.export import (
    csv_text,
    json_text,
    parquet_bytes,
    records_of_figure,
    records_of_rows,
    records_of_table,
)
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.latex import latex
from engine.experiments.presentation.origin import Origin, origin_of
from engine.experiments.presentation.plot import svg
from engine.experiments.presentation.report_files import write_report
from engine.experiments.results.frame import dataset, frame
from engine.experiments.results.pivot import table_data
from engine.experiments.results.rows import Row
from tests.support.experiment_rows import METHODS, RATES, experiment_of, rows_of

VALUES = {
    ("single", 1e6): [0.2, 0.22],
    ("single", 1e8): [0.2, 0.21],
    ("voltage", 1e6): [0.8, 0.9],
    ("voltage", 1e8): "no_plan",
}
ROWS = rows_of("latency_s", VALUES)
ORIGIN = Origin(experiment="test", digest="0123456789abcdef", version=3, code=("simulated abc",))
SCRIPT = "</style><script>alert(1)</script>"


def test_csv_has_every_row_with_all_digits() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(records_of_rows(ROWS, ORIGIN)))))
    assert [(row["method"], float(row["rate"]), row["seed"]) for row in rows][:2] == [
        ("single", 1e6, "0"),
        ("single", 1e6, "1"),
    ]
    assert float(rows[1]["latency_s"]) == 0.22
    assert (rows[-1]["outcome"], rows[-1]["latency_s"]) == ("no_plan", "")


def test_a_text_that_a_spreadsheet_would_compute_is_text() -> None:
    (row,) = rows_of("latency_s", {("=1+1", 1e6): 1.0})
    assert "'=1+1" in csv_text(records_of_rows([row], ORIGIN))


def test_json_and_toml_give_the_experiment_back() -> None:
    experiment = experiment_of(
        {**METHODS, "values": ["single", {"label": "Trimmed", "set": {"strategy": "voltage"}}]},
        RATES,
        claims=[{"kind": "trend", "name": "c", "text": "t", "along": "rate", "goes": "falls"}],
        published=[{"coordinates": {"rate": 1e6}, "low": 1, "high": 2, "unit": "ms"}],
        figures=[{"name": "f", "x": "rate", "series": "method"}],
    )
    document = json.loads(json_text(experiment, ROWS, ORIGIN))
    assert parse_json(json.dumps(document["experiment"]), "x") == experiment
    assert [Row.model_validate(row) for row in document["rows"]] == ROWS
    assert parse_toml(dump_toml(experiment), "x") == experiment


def test_a_run_of_the_form_whose_unset_fields_are_null_is_written_without_them() -> None:
    """As a browser sends a base: TOML has no word for null, and the report of the experiment has its file."""
    base = {"model": "gpt2", "weights": None, "workload": {"new_tokens": 2, "prompt": None}}
    written = dump_toml(experiment_of().model_copy(update={"base": base}))
    assert parse_toml(written, "x").base == {"model": "gpt2", "workload": {"new_tokens": 2}}


def test_parquet_has_the_columns_of_the_frame() -> None:
    table = pandas.read_parquet(io.BytesIO(parquet_bytes(records_of_rows(ROWS, ORIGIN))))
    assert list(table.columns) == [*frame(ROWS).columns, *ORIGIN.columns]
    assert table["latency_s"].tolist()[:3] == [0.2, 0.22, 0.2]
    mixed = [
        row.model_copy(update={"coordinates": {"x": x}}) for row, x in zip(ROWS, ("a", 1.0), strict=False)
    ]
    read = pandas.read_parquet(io.BytesIO(parquet_bytes(records_of_rows(mixed, ORIGIN))))
    assert read["x"].tolist() == ["a", "1.0"]


def test_a_dataset_has_the_factors_as_named_dimensions() -> None:
    cube = dataset(experiment_of(), ROWS, ["latency_s"])
    assert cube["latency_s"].dims == ("method", "rate", "world", "seed")
    place = {"method": "voltage", "rate": 1e6, "world": "predicted", "seed": 1}
    assert cube["latency_s"].sel(place).item() == 0.9


def test_a_latex_table_has_one_unit_bold_best_and_no_special_characters() -> None:
    experiment = experiment_of({**METHODS, "title": "Method & co_100%"}, RATES)
    table = Table(name="t", rows=("method",), columns=("rate",))
    text = latex(table_data(experiment, table, ROWS), ORIGIN)
    # seeds 0.2 and 0.22: mean 210 ms, half interval 12.706 · 0.01 = 127.06 ms; 0.2 and 0.21: 63.53 ms
    assert r"single & 210 \pm 127 & \bfseries 205 \pm 64 \\" in text
    assert r"Voltage & 850 \pm 635 & {no plan} \\" in text
    assert text.count(r"\begin{tabular}{lS[table-format=3.0(3)]S[table-format=3.0(2)]}") == 1
    assert r"Method \& co\_100\% / Rate of the links & {1 Mbit/s} & {100 Mbit/s} \\" in text
    assert r"End-to-end latency in ms: mean $\pm$ 95 \% interval" in text
    assert "n = 2." in text and ORIGIN.text in text.splitlines()[0]
    forged = latex(table_data(experiment, table.model_copy(update={"title": "a\n\\input{b}"}), ROWS), ORIGIN)
    assert r"\input" not in forged and r"a \textbackslash{}input\{b\}" in forged
    no_columns = latex(table_data(experiment, Table(name="t", rows=("method",)), ROWS), ORIGIN)
    assert r"Method \& co\_100\% & {End-to-end latency} \\" in no_columns
    assert "Over all levels of Rate of the links." in no_columns


BOTH = ["predicted", "emulated"]
MEASURED = {
    ("single", 1e7, "predicted"): 0.2,
    ("voltage", 1e7, "predicted"): 0.0847,
    ("single", 1e7, "emulated"): 0.21,
    ("voltage", 1e7, "emulated"): 0.0953,
}


@pytest.mark.parametrize("axes", [{"rows": ("rate",), "columns": ("method",)}, {"rows": ("method",)}])
def test_a_prediction_is_never_averaged_with_a_measurement(axes: dict[str, Any]) -> None:
    """84.7 ms predicted and 95.3 ms emulated are two numbers, not 90 ms."""
    experiment = experiment_of(worlds=BOTH)
    data = table_data(experiment, Table(name="t", **axes), rows_of("latency_s", MEASURED))
    values = {cell.value for row in data.rows for cell in row.cells if cell}
    assert values == {0.2, 0.0847, 0.21, 0.0953}
    assert {column[-1] for column in data.columns} == {"predicted", "emulated"}
    if len(axes) > 1:  # the best method of this rate, in each world
        assert [cell.best for cell in data.rows[0].cells if cell] == [False, False, True, True]


def test_every_format_of_a_table_has_the_same_numbers_as_the_screen() -> None:
    experiment = experiment_of(worlds=BOTH)
    rows = rows_of("latency_s", {**VALUES, **MEASURED})
    data = table_data(experiment, Table(name="t", rows=("rate",), columns=("method",)), rows)
    shown = [cell for row in data.rows for cell in row.cells if cell]
    records = records_of_table(data, ORIGIN)
    read = list(csv.DictReader(io.StringIO(csv_text(records))))
    parquet = pandas.read_parquet(io.BytesIO(parquet_bytes(records)))
    body = latex(data, ORIGIN).partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    in_latex = [cell.strip("\\ ") for line in body for cell in line.split("&")[1:]]
    in_latex = [text for text in in_latex if text != "{}"]
    assert len(shown) == len(read) == len(parquet) == len(in_latex) == 8
    for cell, line, kept, text in zip(shown, read, parquet.to_dict("records"), in_latex, strict=True):
        name = "End-to-end latency (s)"
        if cell.value is None:
            assert (line[name], text) == ("", "{no plan}") and pandas.isna(kept[name])
            continue
        number, _, half = text.removeprefix("bfseries ").partition(r" \pm ")
        assert float(line[name]) == kept[name] == cell.value
        assert float(number) == pytest.approx(cell.value * 1e3, abs=0.5)
        assert (line["low"] == "") == (half == "") == (cell.low is None)
        assert int(line["runs"]) == kept["runs"] == cell.number
        assert (line["best"] == "True") == kept["best"] == cell.best == text.startswith("bfseries")
        assert line["experiment_digest"] == kept["experiment_digest"] == ORIGIN.digest


def test_a_digest_is_that_of_the_whole_experiment() -> None:
    one, other = experiment_of(title="a"), experiment_of(title="b")
    assert origin_of(one, ROWS).digest == origin_of(experiment_of(title="a"), []).digest
    assert origin_of(one, ROWS).digest != origin_of(other, ROWS).digest


KINDS: list[dict[str, Any]] = [
    {"kind": "lines", "x": "rate", "series": "method", "log_x": True},
    {"kind": "bars", "x": "method", "series": "rate"},
    {"kind": "heatmap", "x": "rate", "series": "method", "log_y": True},
    {"kind": "scatter", "x": "link_bytes", "series": "method", "facet": "rate"},
    {"kind": "boxes", "x": "method", "facet": "rate"},
]


@pytest.mark.parametrize("fields", KINDS, ids=[str(row["kind"]) for row in KINDS])
def test_every_kind_of_figure_is_drawn_alike_each_time_with_its_letters(fields: dict[str, Any]) -> None:
    published = [{"coordinates": {"method": "single", "rate": 1e6}, "value": 0.25, "where": "Fig. 1"}]
    experiment = experiment_of(worlds=["predicted", "emulated"], published=published)
    emulated = [row.model_copy(update={"world": "emulated"}) for row in ROWS]
    rows = [
        row.model_copy(
            update={"metrics": {**row.metrics, "link_bytes": 1e6 * (1 + row.seed)} if row.metrics else {}}
        )
        for row in (*ROWS, *emulated)
    ]
    figure = Figure(name="f", **fields)
    data = figure_data(experiment, figure, rows)
    drawn = svg(data, ORIGIN)
    assert drawn == svg(data, ORIGIN) and ORIGIN.text in drawn
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert "<text" not in drawn  # letters are outlines: no font of the reader is needed


def test_the_first_and_the_last_value_are_labelled_and_others_where_there_is_room() -> None:
    """On two decades 50, 100, 120, 200 and 500 are at 0.35, 0.5, 0.54, 0.65 and 0.85 of the axis; labels need
    0.14.
    """
    rates = [1e7, 5e7, 1e8, 1.2e8, 2e8, 5e8, 1e9]
    assert labelled(rates, is_log=True) == [1e7, 5e7, 1e8, 2e8, 5e8, 1e9]
    assert labelled([1, 2, 3], is_log=False) == [1, 2, 3]
    assert labelled([1, 9, 10], is_log=False) == [1, 10]
    assert labelled([5.0], is_log=True) == [5.0]


def test_the_numbers_of_a_figure_are_a_table_of_their_own() -> None:
    data = figure_data(experiment_of(), Figure(name="f", x="rate", series="method"), ROWS)
    rows = list(csv.reader(io.StringIO(csv_text(records_of_figure(data, ORIGIN)))))
    assert rows[0][:5] == ["facet", "method", "world", "rate", "latency_s"]
    assert rows[0][5:9] == ["low", "high", "runs", "invalid"]
    assert rows[1][:4] == ["", "single", "predicted", "1000000.0"] and float(rows[1][4]) == pytest.approx(
        0.21
    )


def test_the_report_is_one_file_that_loads_nothing_and_escapes_what_people_wrote(tmp_path: Path) -> None:
    experiment = experiment_of(
        title=SCRIPT,
        description=SCRIPT,
        figures=[{"name": "f", "x": "rate", "series": "method", "title": SCRIPT, "caption": SCRIPT}],
        tables=[{"name": "t", "rows": ["method"], "columns": ["rate"]}],
        claims=[
            {"kind": "trend", "name": "c", "text": SCRIPT, "along": "rate", "goes": "rises", "reason": SCRIPT}
        ],
        published=[
            {"coordinates": {"method": "single", "rate": 1e6}, "value": 200, "unit": "ms", "where": SCRIPT}
        ],
        assumptions=[SCRIPT],
    )
    written = write_report(experiment, (), ROWS, tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in written} == {
        *("report.html", "experiment.toml", "points.csv", "points.json", "points.parquet"),
        *("figures/f.svg", "figures/f.pdf", "figures/f.csv", "tables/t.tex", "tables/t.csv"),
    }
    page = (tmp_path / "report.html").read_text()
    assert "<script" not in page and "src=" not in page and "<link" not in page
    assert page.count("&lt;script&gt;") >= 8
    for part in ("<svg", "no plan", "+5.0%", "does not hold", "single"):
        assert part in page


@pytest.mark.parametrize(
    ("unit", "values", "expected"),
    [
        ("s", [0.0123, 4.0], ("ms", 1e-3)),
        ("s", [120.0], ("s", 1.0)),
        ("B", [2e9, 5e12], ("GB", 1e9)),
        ("fraction", [0.1], ("%", 0.01)),
        ("1/s", [2000.0], ("1/s", 1.0)),
        ("s", [], ("s", 1.0)),
    ],
)
def test_a_table_has_the_multiple_of_the_unit_that_is_easy_to_read(
    unit: str, values: list[float], expected: tuple[str, float]
) -> None:
    assert unit_and_factor(unit, values) == expected


@pytest.mark.parametrize(
    ("half_ms", "mean_ms", "expected"),
    [
        (0.00012, 1.234, "<0.01"),  # 1.23, whose last digit is a hundredth
        (0.0049, 1.234, "<0.01"),
        (0.0051, 1.234, "0.01"),
        (0.42, 12.34, "0.4"),
        (0.4, 123.4, "<1"),
        (0.6, 123.4, "1"),
        (1234.0, 56789.0, "1 234"),
        (20.0, 4.0, "20"),
        (0.03, -0.5, "0.03"),
        (0.0, 12.34, "0"),
        (1.5, 0.0, "1.5"),
    ],
)
def test_half_of_an_interval_has_the_last_digit_of_its_mean(
    half_ms: float, mean_ms: float, expected: str
) -> None:
    assert half_in(half_ms / 1e3, mean_ms / 1e3, 1e-3) == expected


def test_numbers_have_three_digits_and_their_unit() -> None:
    assert [shown_in(value, 1e-3) for value in (0.0123456, 0.123456, 12.3456, 0.0)] == [
        "12.3",
        "123",
        "12 346",
        "0",
    ]
    assert [shown(0.0123456, "s"), shown(0.5, "fraction"), shown(1.5e7, "bit/s"), shown(-0.002, "s")] == [
        *("12.3 ms", "50 %", "15 Mbit/s", "-2 ms")
    ]
    assert [shown(1000, "x"), shown(1.5, ""), shown(12345.6, "1/s")] == ["1 000 x", "1.5", "12 346 1/s"]
