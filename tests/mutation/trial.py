"""Runs tests over a changed copy of the project: does any of them fail?

Each trial is a fork of this process, which has imported the libraries that tests use, but nothing of the
project: a trial so costs the tests' own time only.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import channels
import django.test
import numpy
import pydantic
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
Ending = Literal["passed", "failed", "timed out", "no tests"]
IMPORTED = (channels, django.test, numpy, pydantic, torch)
PLUGINS = [plugin.load() for plugin in entry_points(group="pytest11")]
"""Imported here so that no trial has to: together they take three times as long as a quick test."""
FLAGS = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "--no-header",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "-m",
    "not long",
    "-p",
    "no:tests.support.order",
)
"""pytest would warn that plugins are imported already. Campaigns do not count, as most runs of the tests
leave them out. The tests run in the order asked for: those that are likely to fail come first.
"""


SECONDS = count(1)


@contextmanager
def copy_of_the_project() -> Iterator[Path]:
    """A temporary folder with all files that git does not ignore; the checkout itself is never changed."""
    listed = subprocess.run(
        ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"),
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    with TemporaryDirectory(prefix="edgeloom-mutation-") as folder:
        copy = Path(folder)
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
        yield copy


@contextmanager
def changed(path: Path, text: str) -> Iterator[None]:
    """`path` has `text` inside, and its old text and times afterwards.

    Compiled files are stale if the second of the change or the size differs, and mutants often have one size:
    each change has a second of its own.
    """
    before, times = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + next(SECONDS) * 10**9))
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def run_tests(copy: Path, tests: Sequence[str], limit_s: float, log: Path) -> Ending:
    """pytest in a fork of this process, in `copy`, until the first failure or `limit_s`."""
    pid = os.fork()
    if pid == 0:
        _become_pytest(copy, tests, log)
    deadline_s = time.monotonic() + limit_s
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline_s:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "timed out"
        time.sleep(0.02)
    code = os.waitstatus_to_exitcode(status)
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        return "no tests"
    return "passed" if code == 0 else "failed"


def _become_pytest(copy: Path, tests: Sequence[str], log: Path) -> None:
    """Never returns."""
    code = 1
    try:
        os.setsid()
        output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        os.chdir(copy)
        sys.path = [str(copy), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
        for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
            del sys.modules[name]
        code = int(pytest.main([*FLAGS, *tests]))
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
