"""Bad use of `./loom` is answered with one sentence and status 2, before anything is done."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from webapp.ops.places import PYTHON, ROOT


def loom(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PYTHON), str(ROOT / "loom"), *arguments],
        cwd="/",
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def the_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Standard error, which must be one line; nothing else was written."""
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_without_a_command_it_explains_itself() -> None:
    done = loom()
    assert done.returncode == 2
    assert "./loom up" in done.stdout
    assert loom("--help").returncode == 0


@pytest.mark.parametrize("command", ["test", "coverage", "mutate"])
def test_help_on_testing_sets_nothing_up_and_needs_no_packages(command: str, tmp_path: Path) -> None:
    """A copy without an environment stays as it is."""
    for room in ("engine/domain", "engine/plugins", "webapp/ops", "webapp/base", "tests/mutation"):
        shutil.copytree(ROOT / room, tmp_path / room)
    for file in ("loom", "engine/__init__.py", "webapp/__init__.py", "tests/branch_coverage.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    before = set(tmp_path.rglob("*"))
    bare = [sys.executable, "-E", "-s", "-S", "-B"]
    done = subprocess.run([*bare, str(tmp_path / "loom"), command, "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"./loom {command} " in done.stdout
    assert set(tmp_path.rglob("*")) == before


def test_an_unknown_command_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """In this process, which is in the environment already; `list` below is started."""
    status = runpy.run_path(str(ROOT / "loom"))["main"](["fly"])
    assert "fly" in the_sentence(subprocess.CompletedProcess(("fly",), status, *capsys.readouterr()))


def test_an_unknown_queue_is_refused_with_the_known_ones() -> None:
    sentence = the_sentence(loom("worker", "--queue", "print"))
    assert "'print'" in sentence
    assert "plan" in sentence
    assert "emulate" in sentence


@pytest.mark.parametrize("missing", ["REDIS_URL", "DATABASE_URL"])
def test_a_worker_without_addresses_names_the_variables_to_set(missing: str) -> None:
    environment = {"REDIS_URL": "redis://127.0.0.1:1/0", "DATABASE_URL": "sqlite:////nowhere"} | {missing: ""}
    assert f"{missing} is not set" in the_sentence(loom("worker", "--queue", "plan", **environment))


@pytest.mark.parametrize("port", ["web", "0", "-1", "65536"])
def test_a_port_that_does_not_exist_is_refused(port: str) -> None:
    sentence = the_sentence(loom("up", f"--port={port}"))
    assert f"--port: '{port}' is no port" in sentence


def test_an_old_python_is_refused_with_the_version_that_is_needed() -> None:
    code = f"import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_path({str(ROOT / 'loom')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    sentence = done.stderr.strip().splitlines()[-1]
    assert sentence.startswith("EdgeLoom needs Python 3.11 or newer and this is 3.9")


def test_it_works_from_any_directory(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(ROOT / "loom"), "list", "clusters"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "lab-3" in done.stdout
