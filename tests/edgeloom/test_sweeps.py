"""Sweeps and reports as a script or a notebook uses them: tables, figures by name, and what is kept."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgeloom
from edgeloom.cluster import ClusterSpec
from edgeloom.method import Params, PlacesLayers
from engine.domain.errors import SpecError
from engine.experiments.execution import campaign
from engine.reports.metrics import metrics_of_a
from engine.strategies import registry
from tests.devtools.rooms import ROOT
from tests.support.small_cases import star

SMALL: dict[str, Any] = {"cluster": "lab-3", "model": "demo-lm", "prompt_tokens": 4, "new_tokens": 2}


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def test_a_grid_is_tried_in_all_combinations_and_each_line_is_what_predict_says(tmp_path: Path) -> None:
    table = edgeloom.sweep(
        SMALL | {"method": ["voltage", "edgeshard"], "prompt_tokens": [4, 8]}, output=tmp_path, jobs=1
    )
    places = [("voltage", 4), ("edgeshard", 4), ("voltage", 8), ("edgeshard", 8)]
    assert list(zip(table["method"], table["prompt_tokens"], strict=True)) == places
    for place, latency_s in zip(places, table["latency_s"], strict=True):
        report = edgeloom.predict(**SMALL | dict(zip(("method", "prompt_tokens"), place, strict=True)))
        assert latency_s == report["latency_s"] == report.latency_s


def test_points_of_a_generator_with_arguments_of_ones_own_go_through_a_function(tmp_path: Path) -> None:
    def points() -> Iterator[dict[str, Any]]:
        yield {"rate": 1e6, "params": {"planner": "paper"}}
        yield {"rate": 1e9, "params": {"planner": "paper"}}

    def made(rate: float, params: dict[str, Any]) -> Any:
        slow = star((1e9, 1e9))
        links = [link.model_copy(update={"bit_per_s": rate}) for link in slow.links]
        cluster = ClusterSpec.model_validate(slow.model_copy(update={"links": tuple(links)}).model_dump())
        return edgeloom.spec(cluster, "tiny-gpt2", "voltage", params, prompt_tokens=4, new_tokens=2)

    table = edgeloom.sweep(points, made, output=tmp_path, jobs=1)
    assert list(table["rate"]) == [1e6, 1e9] and set(table["params.planner"]) == {"paper"}
    assert table["latency_s"][0] > table["latency_s"][1] > 0


def test_what_is_there_is_not_computed_again_and_a_point_that_cannot_be_run_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = SMALL | {"method": ["voltage", "nobody's"]}
    first = edgeloom.sweep(grid, output=tmp_path, jobs=1)
    assert list(first["outcome"]) == ["finished", "refused"]
    assert "which is unknown: choose one of" in first["sentence"][1]
    monkeypatch.setattr(campaign, "carry_out", None)
    again = edgeloom.sweep(grid, output=tmp_path, jobs=1)
    assert list(first["latency_s"].dropna()) == list(again["latency_s"].dropna())
    with pytest.raises(SpecError, match="no point is given"):
        edgeloom.sweep(SMALL | {"method": []}, output=tmp_path)


def test_a_class_that_is_typed_anew_is_planned_anew_also_where_results_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a cell of a notebook that is run again: a module without a file."""
    for known in ("_BY_NAME", "_OUTSIDE"):
        monkeypatch.setattr(registry, known, dict(getattr(registry, known)))
    found = []
    for share in (1.0, 0.5):
        text = f"""
class Cut(PlacesLayers):
    name, title, summary, Params = "cut", "Cut", "Cuts the layers.", Params

    def plan(self, cluster, model, workload, params):
        first, last = cluster.workers[0], cluster.workers[-1]
        cut = round({share} * model.num_layers)
        left = [(last, model.num_layers - cut)] if cut < model.num_layers else []
        return self.placed(cluster, model, workload, [(first, cut), *left])
"""
        cell: dict[str, Any] = {"__name__": "__main__", "PlacesLayers": PlacesLayers, "Params": Params}
        exec(text, cell)
        table = edgeloom.sweep(SMALL | {"method": cell["Cut"]}, output=tmp_path)
        report = edgeloom.predict(**SMALL | {"method": cell["Cut"]})
        assert table["latency_s"][0] == report.latency_s and set(table["method"]) == {"cut"}
        found.append(report.latency_s)
    assert found[0] != found[1]


def test_a_report_has_every_figure_that_is_listed_by_its_name() -> None:
    report = edgeloom.predict(**SMALL | {"method": "voltage", "requests": 2})
    for one in metrics_of_a("run"):
        value = one.compute(report)
        assert same(report[one.name], math.nan if value is None else float(value)), one.name
    device, link, request = report.devices[0], report.links[0], report.requests[1]
    assert report[f"busy_s[{device.name}]"] == device.busy_s
    assert report[f"bytes[{link.a}--{link.b}]"] == link.bytes
    assert report["ttft_s[1]"] == request.ttft_s
    with pytest.raises(SpecError, match="metric is latency, which is unknown: there are latency_s"):
        report["latency"]


def test_a_report_is_a_line_of_a_table_a_text_of_a_cell_and_a_picture() -> None:
    report = edgeloom.predict(**SMALL | {"method": "voltage", "params": {"planner": "paper"}})
    frame = report.to_frame()
    assert len(frame) == 1 and frame["params.planner"][0] == "paper"
    assert frame["latency_s"][0] == report.latency_s
    text = report._repr_html_()
    assert text.startswith("<pre") and "lab-3" in text and "\x1b" not in text
    axes = report.plot()
    (line,) = axes.get_lines()
    assert [*np.asarray(line.get_xdata())] == [0.0, *report.requests[0].token_s]
    assert [*np.asarray(line.get_ydata())] == [0, 1, 2]


@pytest.mark.parametrize("asked", ["sweep({})", "predict('lab-3', 'tiny-gpt2', 'single').to_frame()"])
def test_without_pandas_tables_name_what_to_install(asked: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pandas'] = None\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import edgeloom; edgeloom.{asked}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1].endswith(
        "this needs pandas, which is not installed: run ./loom setup."
    )
