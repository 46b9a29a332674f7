"""A method of a file beside EdgeLoom's own: in advice and in experiments, on all processors, and only where
the command line names the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.outside import THIRDS, edgeloom, write_method

EXPERIMENT = """
name = "thirds-and-others"

[base]
cluster = "lab-3"
model = "tiny-gpt2"
weights = "random"
workload = { prompt_tokens = 4, new_tokens = 2 }

[[factor]]
name = "share"
path = "params.share"
values = [0.25, 0.75]

[[factor]]
name = "method"
path = "strategy"
values = ["METHOD"]

[[table]]
name = "times"
rows = ["share"]
metric = "latency_s"
"""
ADVISE = ("advise", "lab-3", "--model", "tiny-gpt2", "--prompt-tokens", "4", "--new-tokens", "2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_method(tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.replace("METHOD", "thirds"), encoding="utf-8")
    return tmp_path


def test_it_is_ranked_among_the_others(folder: Path) -> None:
    done = edgeloom(folder, *ADVISE, "--strategy", "./thirds.py:Thirds", "--json", "advice.json")
    assert done.returncode == 0, done.stderr
    rows = {row["strategy"]: row for row in json.loads((folder / "advice.json").read_text())["strategies"]}
    assert rows["thirds"]["total_s"] > 0 and "gpipe" in rows


def test_advice_ranks_by_defaults_so_that_a_name_or_a_parameter_is_refused(folder: Path) -> None:
    for words in (("--strategy", "gpipe"), ("--strategy", "thirds.py", "--set", "share=0.5")):
        done = edgeloom(folder, *ADVISE, *words)
        assert done.returncode == 2 and "ranks all strategies with their defaults" in done.stderr


def test_an_experiment_has_it_by_its_name_on_all_processors(folder: Path) -> None:
    words = ("experiment", "predict", "experiment.toml", "--jobs", "2")
    done = edgeloom(folder, *words, "--strategy", "thirds.py:Thirds")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0.25" in done.stdout and "0.75" in done.stdout
    again = edgeloom(folder, *words, "--strategy", "thirds.py:Thirds")
    assert again.stdout == done.stdout, "nothing is left to do"


def test_an_experiment_runs_no_file_that_the_command_line_does_not_name(folder: Path) -> None:
    write_method(folder, THIRDS + f"\nopen({str(folder / 'touched')!r}, 'w').close()\n")
    named = EXPERIMENT.replace("METHOD", "thirds.py:Thirds").replace("params.share", "workload.new_tokens")
    (folder / "experiment.toml").write_text(named.replace("0.25, 0.75", "1, 2"), encoding="utf-8")
    done = edgeloom(folder, "experiment", "predict", "experiment.toml")
    assert "no file is run unless the command line names it: add --strategy thirds.py:Thirds" in done.stderr
    assert not (folder / "touched").exists()
