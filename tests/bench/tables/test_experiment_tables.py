"""The tables of an experiment stand side by side, and that of all methods has every method."""

from __future__ import annotations

from pathlib import Path

import pytest

import bench.tables.experiments as tables
from bench.command import METHODS
from engine.experiments.design.files import load_file
from engine.strategies.registry import STRATEGIES

TWO = """
name = "two"
description = "Two methods."
[base]
cluster = "lab-3"
model = "tiny-gpt2"
weights = "random"
workload = { prompt_tokens = 4, new_tokens = 2 }
[[factor]]
name = "method"
title = "Method"
path = "strategy"
values = ["single", "voltage"]
[[table]]
name = "memory"
title = "Memory"
rows = ["method"]
metric = "peak_memory_bytes"
statistic = "mean"
[[table]]
name = "divergence"
title = "Divergence"
rows = ["method"]
metric = "kl_mean"
statistic = "mean"
"""


def test_a_row_has_the_cells_of_all_tables_and_none_where_a_run_has_no_such_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "results")
    (tmp_path / "two.toml").write_text(TWO, encoding="utf-8")
    table = tables.measure_experiment(tmp_path / "two.toml")
    assert (table.title, table.columns[0]) == ("Two methods. Predicted.", "Method")
    assert [name.partition(" (")[0] for name in table.columns[1:]] == ["Memory", "Divergence"]
    assert [(row[0], row[2]) for row in table.rows] == [("single", ""), ("voltage", "")]
    assert all(float(row[1].replace("\N{NO-BREAK SPACE}", "").replace(" ", "")) > 0 for row in table.rows)


def test_the_experiment_of_all_methods_has_them_all_in_their_order() -> None:
    (method,) = load_file(METHODS).factors
    labels = [str(level.label or level.value) for level in method.values]
    assert labels == [chosen.name for chosen in STRATEGIES]
