"""`./loom test` runs every check and every test; `./loom coverage` and `./loom mutate` measure the tests.

The checks (linters, types, front end) run beside each other. The tests run in two groups: first those that
share nothing, in one pytest worker per core; then, one by one, those that need a quiet machine because what
they measure is time.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from webapp.ops.places import FRONTEND, PYTHON, ROOT, echo
from webapp.ops.setup import node_environment, set_up

THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Many processes share the cores: more threads in each would only make them wait for one another."""

ALONE = "alone"
"""pytest's expression for the tests that run one by one."""


class Check(NamedTuple):
    name: str
    command: Sequence[str]
    directory: Path = ROOT
    environment: Mapping[str, str] = {}


def test(pytest_arguments: Sequence[str]) -> int:
    """Returns 0 if all is well. With arguments only pytest runs, once, and gets them."""
    set_up(redis=True, tests=True)
    if pytest_arguments:
        return run_pytest("pytest", *pytest_arguments)
    begin = time.monotonic()
    failed = failed_checks(checks(node_environment()), cores())
    groups = (
        (f"tests, {cores()} at a time", "-n", str(cores()), "--dist", "loadfile", "-m", f"not ({ALONE})"),
        ("tests that run alone", "-m", ALONE),
    )
    failed += [title for title, *arguments in groups if run_pytest(title, *arguments)]
    echo(f"All of it took {time.monotonic() - begin:.0f} s.")
    if failed:
        echo(f"Failed: {', '.join(failed)}; see above.")
    return 1 if failed else 0


def measure(module: str, arguments: Sequence[str]) -> int:
    """Run `python -m module`, which measures the tests, in the environment that they need."""
    set_up(redis=True, tests=True)
    return subprocess.run(
        (str(PYTHON), "-m", module, *arguments), cwd=ROOT, env={**os.environ, **THREADS}
    ).returncode


def cores() -> int:
    return len(os.sched_getaffinity(0))


def run_pytest(title: str, *arguments: str) -> int:
    """Returns pytest's exit status."""
    echo(f"{title} …")
    begin = time.monotonic()
    command = (str(PYTHON), "-m", "pytest", *arguments)
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, **THREADS}).returncode
    echo(f"{title}: {'passed' if status == 0 else 'FAILED'} in {time.monotonic() - begin:.0f} s.")
    return status


def checks(node: Mapping[str, str]) -> tuple[Check, ...]:
    """All checks but pytest, the longest first."""
    python = str(PYTHON)
    return (
        Check("mypy", (python, "-m", "mypy")),
        Check("front-end types and lint", ("npm", "run", "--silent", "check"), FRONTEND, node),
        Check("front-end tests", ("npm", "test", "--silent"), FRONTEND, node),
        Check("ruff", (python, "-m", "ruff", "check", ".")),
        Check("formatting", (python, "-m", "ruff", "format", "--check", "--quiet", ".")),
        Check("API types", (python, "manage.py", "write_api_types", "--check"), ROOT, node),
        Check("Django's checks", (python, "manage.py", "check")),
        Check("migrations", (python, "manage.py", "makemigrations", "--check", "--dry-run")),
    )


def failed_checks(checks: Sequence[Check], at_once: int) -> list[str]:
    """Run all `checks`, each to its end; returns the names of those that failed."""
    echo(f"checks, {at_once} at a time …")
    with ThreadPoolExecutor(at_once) as pool:
        passed = list(pool.map(passes, checks))
    return [check.name for check, good in zip(checks, passed, strict=True) if not good]


def passes(check: Check) -> bool:
    """Run one check; print what it wrote only if it failed."""
    begin = time.monotonic()
    done = subprocess.run(
        check.command,
        cwd=check.directory,
        env={**os.environ, **check.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    good = done.returncode == 0
    verdict = f"{check.name}: {'passed' if good else 'FAILED'} in {time.monotonic() - begin:.0f} s."
    echo(verdict if good else f"{done.stdout.rstrip()}\n{verdict}")
    return good
