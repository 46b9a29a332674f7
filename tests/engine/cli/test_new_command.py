"""`new method`: the folder has a method that works as it stands, from its file and installed."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from engine.cli.new_command import files_of
from engine.domain.errors import SpecError
from tests.support.outside import edgeloom, install, keep_methods_apart


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("own")
    done = edgeloom(made, "new", "method", "my-idea")
    assert done.returncode == 0, done.stderr
    return made / "my-idea"


def test_the_folder_has_method_test_experiment_package_and_readme(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {
        "my_idea.py",
        "test_my_idea.py",
        "experiment.toml",
        "pyproject.toml",
        "README.md",
    }
    text = (folder / "my_idea.py").read_text()
    assert "engine" not in text and "class MyIdea(" in text
    assert len(text.splitlines()) < 90


def test_its_own_tests_pass(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: another one would import torch and transformers only for them."""
    keep_methods_apart(monkeypatch)
    monkeypatch.syspath_prepend(folder)
    named = runpy.run_path(str(folder / "test_my_idea.py"))
    own = [value for name, value in named.items() if name.startswith("test_")]
    assert len(own) == 2
    for test in own:
        test()
    sys.modules.pop("my_idea")


def test_it_predicts_from_its_file(folder: Path) -> None:
    words = ["lab-4", "--model", "demo-lm", "--new-tokens", "2", "--prompt-tokens", "4", "--json", "-"]
    done = edgeloom(folder, "predict", *words, "--strategy", "./my_idea.py:MyIdea", "--set", "power=0")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["outcome"]["kind"] == "finished"
    assert report["plan"]["layout"]["kind"] == "my-idea"
    assert report["spec"]["method"]["file"] == str(folder / "my_idea.py")


def test_installed_it_is_listed_with_its_package_and_compared_in_its_experiment(folder: Path) -> None:
    install(folder, "my-idea = my_idea:MyIdea", "my-idea")
    listed = json.loads(edgeloom(folder, "list", "strategies", "--json", path=str(folder)).stdout)
    (mine,) = (row for row in listed if row["name"] == "my-idea")
    assert mine["from"] == "my-idea 0.3" and "power" in mine["params"]
    done = edgeloom(folder, "experiment", "run", "experiment.toml", "--jobs", "1", path=str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "my-idea" in done.stdout and "megatron" in done.stdout


def test_a_whole_run_of_a_file_runs_its_code_only_when_the_file_is_named(folder: Path) -> None:
    words = ["lab-3", "--model", "demo-lm", "--new-tokens", "2", "--prompt-tokens", "4", "--json", "run.json"]
    assert edgeloom(folder, "predict", *words, "--strategy", "my_idea.py").returncode == 0
    refused = edgeloom(folder, "predict", "--spec", "run.json")
    assert refused.returncode == 2 and "no file is run unless it is named" in refused.stderr
    assert edgeloom(folder, "predict", "--spec", "run.json", "--strategy", "my_idea.py").returncode == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpipe", "there is a method of this name"),
        ("My", "expected small letters"),
        ("class", "expected small letters"),
        ("json", "Python has a module json already"),
        ("../up", "expected small letters"),
    ],
)
def test_a_name_that_cannot_be_is_refused(name: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        files_of(name)


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    done = edgeloom(tmp_path, "new", "method", "mine")
    assert done.returncode == 2 and "choose another name" in done.stderr
    assert list((tmp_path / "mine").iterdir()) == []
