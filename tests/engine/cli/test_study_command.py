"""`loom study` as two people use it: one packs, the other opens and repeats."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.cli import main
from engine.cli.command import Environment
from engine.cli.commands import COMMANDS
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.experiments.execution.point import Emulation
from engine.runs.predict import predict
from tests.support.outside import THIRDS, edgeloom, install, keep_methods_apart, write_method

EXPERIMENT = """
name = "two-methods"
{more}
[base]
cluster = "lab-3"
model = "demo-lm"
workload = {{ prompt_tokens = 4, new_tokens = 2 }}

[[factor]]
name = "method"
path = "strategy"
values = ["single", "{other}"]
"""


def emulated(spec: RunSpec) -> RunReport:
    return predict(spec).model_copy(update={"world": "emulated"})


ENVIRONMENT = Environment(
    topologies.load,
    topologies.names,
    topologies.presets,
    emulation=lambda: Emulation(emulated, "e1"),
    cluster_text=topologies.dump_toml,
)


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    status = main([str(part) for part in argv], COMMANDS, ENVIRONMENT)
    return status, *capsys.readouterr()


def carried_out(folder: Path, capsys: Any, more: str = "", other: str = "megatron", *options: object) -> Path:
    file = folder / "two.toml"
    file.write_text(EXPERIMENT.format(more=more, other=other))
    run(capsys, "experiment", "run", file, "--output", folder / "out", "--jobs", 1, *options)
    return file


def packed(file: Path, capsys: Any, *options: object) -> Path:
    archive = file.parent / "study.zip"
    output = ("--output", file.parent / "out")
    status, said, problem = run(capsys, "study", "pack", file, "-o", archive, *output, *options)
    assert status == 0, problem
    assert said.startswith(str(archive))
    return archive


def test_what_one_packs_another_opens_and_repeats_with_the_same_numbers(tmp_path: Path, capsys: Any) -> None:
    archive = packed(carried_out(tmp_path, capsys), capsys)
    folder = tmp_path / "theirs"
    status, page, _ = run(capsys, "study", "open", archive, folder)
    assert status == 0
    for part in ("every digest is right", "2 points, 2 results (predicted)", "lab-3: clusters/lab-3.toml"):
        assert part in page
    assert "this machine lacks" not in page
    status, said, _ = run(capsys, "study", "repeat", folder, "--jobs", 1)
    assert status == 0 and "2 of 2 are the same: 2 of 2 predicted points exactly." in said
    assert run(capsys, "study", "open", folder)[1].startswith(str(folder))


def test_an_archive_that_is_there_is_not_written_over(tmp_path: Path, capsys: Any) -> None:
    file = carried_out(tmp_path, capsys)
    archive = packed(file, capsys)
    before = archive.read_bytes()
    status, _, problem = run(capsys, "study", "pack", file, "-o", archive, "--output", tmp_path / "out")
    assert (status, archive.read_bytes()) == (2, before) and "File exists" in problem


def with_points(folder: Path, change: Any) -> None:
    """The study of somebody whose numbers are others', and whose digests are right."""
    points = folder / "experiments/two-methods/points.json"
    document = json.loads(points.read_text())
    change(document["rows"])
    points.write_text(json.dumps(document))
    manifest = json.loads((folder / "study.json").read_text())
    content = points.read_bytes()
    stored = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest["files"]["experiments/two-methods/points.json"] = stored
    (folder / "study.json").write_text(json.dumps(manifest))


def test_a_number_that_nobody_gets_again_is_listed_and_the_status_is_1(tmp_path: Path, capsys: Any) -> None:
    archive = packed(carried_out(tmp_path, capsys), capsys)
    folder = tmp_path / "theirs"
    run(capsys, "study", "open", archive, folder)

    def twice_as_fast(rows: list[dict[str, Any]]) -> None:
        rows[1]["metrics"]["latency_s"] /= 2

    with_points(folder, twice_as_fast)
    status, said, _ = run(capsys, "study", "repeat", folder, "--jobs", 1)
    assert status == 1
    assert "method megatron" in said and "latency_s" in said and "1 differ" in said
    assert "method single" not in said


def test_a_study_whose_runs_are_others_is_refused(tmp_path: Path, capsys: Any) -> None:
    archive = packed(carried_out(tmp_path, capsys), capsys)
    folder = tmp_path / "theirs"
    run(capsys, "study", "open", archive, folder)

    def of_another_run(rows: list[dict[str, Any]]) -> None:
        rows[0]["digest"] = "0" * 64

    with_points(folder, of_another_run)
    status, _, problem = run(capsys, "study", "repeat", folder, "--jobs", 1)
    assert status == 2 and "the run 000000000000 of a point is not in runs.jsonl" in problem


def test_emulated_cells_are_repeated_unless_only_predictions_are_asked_for(
    tmp_path: Path, capsys: Any
) -> None:
    more = 'worlds = ["predicted", "emulated"]\nseeds = [0, 1]'
    archive = packed(carried_out(tmp_path, capsys, more), capsys)
    run(capsys, "study", "open", archive, tmp_path / "all")
    status, said, _ = run(capsys, "study", "repeat", tmp_path / "all", "--jobs", 1)
    assert status == 0 and "6 of 6 are the same: 4 of 4 predicted points exactly, 2 of 2 measured" in said
    run(capsys, "study", "open", archive, tmp_path / "some")
    status, said, _ = run(capsys, "study", "repeat", tmp_path / "some", "--predicted-only", "--jobs", 1)
    assert status == 0 and "4 of 4 predicted points" in said and "What is emulated was left out." in said


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_methods_apart(monkeypatch)


def test_source_in_a_study_is_run_only_when_its_file_is_named(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    was_run = tmp_path / "was-run"
    mine = write_method(
        tmp_path / "mine", f"{THIRDS}import pathlib; pathlib.Path({str(was_run)!r}).touch()\n"
    )
    method = f"{mine}:Thirds"
    with monkeypatch.context() as here:
        keep_methods_apart(here)
        file = carried_out(tmp_path, capsys, "", "thirds", "--strategy", method)
        archive = packed(file, capsys, "--strategy", method, "--sources")
    was_run.unlink()
    folder = tmp_path / "theirs"
    _, page, _ = run(capsys, "study", "open", archive, folder)
    source = folder / "methods/thirds/thirds.py"
    assert source.read_text() == mine.read_text()
    assert "source, which nothing here runs by itself: methods/thirds/thirds.py" in page
    assert f"--strategy {source}:Thirds" in page
    status, said, problem = run(capsys, "study", "repeat", folder, "--jobs", 1)
    assert status == 1 and "1 were not repeated" in said and "read it first" in problem
    assert not was_run.exists()
    options = ("--jobs", 1, "--strategy", f"{source}:Thirds")
    status, said, problem = run(capsys, "study", "repeat", folder, *options)
    assert status == 0 and "2 of 2 are the same: 2 of 2 predicted points exactly." in said, problem
    assert was_run.exists()


def test_the_source_of_a_package_is_packed_as_a_folder_that_pip_installs(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_method(site)
    install(site)
    (tmp_path / "two.toml").write_text(EXPERIMENT.format(more="", other="thirds"))

    def carry_out(*words: str, path: str = str(site)) -> str:
        done = edgeloom(tmp_path, *words, path=path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    carry_out("experiment", "predict", "two.toml", "--jobs", "1")
    carry_out("study", "pack", "two.toml", "--sources")
    page = carry_out("study", "open", "study.zip", "theirs", path="")
    source = tmp_path / "theirs" / "methods" / "two-thirds"
    assert "thirds: from two-thirds 0.3" in page
    assert "then pip install theirs/methods/two-thirds" in page
    assert (source / "thirds.py").read_text() == THIRDS
    declared = tomllib.loads((source / "pyproject.toml").read_text())
    assert declared["project"]["entry-points"] == {"edgeloom.methods": {"thirds": "thirds:Thirds"}}
    assert (declared["project"]["name"], declared["project"]["version"]) == ("two-thirds", "0.3")
    assert declared["tool"]["setuptools"] == {"py-modules": ["thirds"]}
    install(source)  # as pip would beside its modules
    assert "2 of 2 are the same: 2 of 2 predicted" in carry_out("study", "repeat", "theirs", path=str(source))
    assert "source not in it" in carry_out("study", "pack", "two.toml", "-o", "small.zip")
