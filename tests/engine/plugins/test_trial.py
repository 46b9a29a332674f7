"""Code from outside is imported in a child first, and whatever it does there becomes a sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.plugins import trial
from engine.plugins.trial import fault_of
from engine.plugins.words import words_of
from tests.devtools.rooms import ROOT
from tests.support.outside import THIRDS, edgeloom, install, write_method

MIB = 2**20


def fault_in(folder: Path, text: str, limit_s: float = 20.0, memory_bytes: int = 256 * MIB) -> str:
    file = folder / "mine.py"
    file.write_text(text, encoding="utf-8")

    def load() -> None:
        exec(compile(text, str(file), "exec"), {})

    return fault_of(load, lambda error: words_of(error, folder), limit_s, memory_bytes)


def test_what_can_be_imported_has_no_fault_and_leaves_nothing_here(tmp_path: Path) -> None:
    assert fault_in(tmp_path, "import os\nos.environ['FROM_A_CHILD'] = 'yes'\n") == ""
    assert "FROM_A_CHILD" not in os.environ


def test_a_process_whose_children_the_kernel_forgets_imports_what_can_be_imported(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert fault_in(tmp_path, "number = 1\n") == ""
        assert fault_in(tmp_path, "import os\nos._exit(7)\n").startswith("its import ends the process")
        assert fault_in(tmp_path, "1 / 0\n").startswith("ZeroDivisionError")
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_an_endless_import_is_told_with_its_line(tmp_path: Path) -> None:
    said = fault_in(tmp_path, "number = 0\nwhile True:\n    number += 1\n", limit_s=0.2)
    assert said.startswith(f"ImportTooLong: it takes more than 0.2 s ({tmp_path}/mine.py, line ")


def test_an_endless_import_that_catches_every_error_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "GRACE_S", 0.2)
    endless = "    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n"
    catches = f"while True:\n{endless}"
    assert fault_in(tmp_path, catches, limit_s=0.2) == "its import takes more than 0.2 s"


def test_an_import_that_eats_memory_is_told_with_its_line(tmp_path: Path) -> None:
    said = fault_in(tmp_path, "held = []\nwhile True:\n    held.append(bytes(10_000_000))\n")
    assert said.startswith("MemoryError: ") and f"({tmp_path}/mine.py, line 3)" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "its import is killed by SIGSEGV"),
        ("import os\nos._exit(7)\n", "its import ends the process with status 7"),
        ("import os\nos._exit(0)\n", "its import ends the process with status 0"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
def test_an_import_that_ends_its_process_ends_no_other(tmp_path: Path, text: str, says: str) -> None:
    assert fault_in(tmp_path, text).startswith(says)


def test_a_package_that_crashes_when_it_is_imported_is_left_out_and_all_else_works(tmp_path: Path) -> None:
    write_method(tmp_path)
    write_method(
        tmp_path, "import os, signal\nprint('hello')\nos.kill(os.getpid(), signal.SIGBUS)\n", "crash"
    )
    install(tmp_path)
    install(tmp_path, "crash = crash:Crash", "crashing")
    done = edgeloom(tmp_path, "list", "strategies", path=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "thirds" in done.stdout and "hello" not in done.stdout
    assert done.stderr == "Left out: method crash of the package crashing: its import is killed by SIGBUS.\n"


def test_what_a_good_package_prints_is_printed_once(tmp_path: Path) -> None:
    write_method(tmp_path, THIRDS + "\nprint('imported')\n")
    install(tmp_path)
    asked = "import engine.strategies.registry as registry; print(len(registry.installed_code()))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", asked],
        env={"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["imported", "1"]
