"""`./loom test`: every check there is, the tests last; with arguments only the tests, and they get them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from webapp.ops.places import FRONTEND, PYTHON, ROOT, say
from webapp.ops.setup import node_environment, set_up

THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Many small processes share the cores: more threads in each only make them wait for one another."""


def test(pytest_arguments: Sequence[str]) -> int:
    """Returns pytest's exit status, or 1 if only another check failed."""
    set_up(redis=True, tests=True)
    failed = [] if pytest_arguments else failed_checks()
    say("pytest …")
    command = (str(PYTHON), "-m", "pytest", *pytest_arguments)
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, **THREADS}).returncode
    if failed:
        say(f"Failed besides: {', '.join(failed)}; see above.")
    return status or (1 if failed else 0)


def failed_checks() -> list[str]:
    """Run the checks other than pytest, each to its end; returns the names of those that failed."""
    node = node_environment()
    checks: tuple[tuple[str, Sequence[str], Path, Mapping[str, str]], ...] = (
        ("ruff", (str(PYTHON), "-m", "ruff", "check", "."), ROOT, {}),
        ("formatting", (str(PYTHON), "-m", "ruff", "format", "--check", "--quiet", "."), ROOT, {}),
        ("mypy", (str(PYTHON), "-m", "mypy"), ROOT, {}),
        ("Django's checks", (str(PYTHON), "manage.py", "check"), ROOT, {}),
        ("migrations", (str(PYTHON), "manage.py", "makemigrations", "--check", "--dry-run"), ROOT, {}),
        ("front-end types and lint", ("npm", "run", "--silent", "check"), FRONTEND, node),
        ("front-end tests", ("npm", "test", "--silent"), FRONTEND, node),
    )
    return [check[0] for check in checks if not passes(*check)]


def passes(name: str, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> bool:
    say(f"{name} …")
    begin = time.monotonic()
    status = subprocess.run(
        command, cwd=directory, env={**os.environ, **environment}, stdin=subprocess.DEVNULL
    ).returncode
    say(f"{name}: {'passed' if status == 0 else 'FAILED'} in {time.monotonic() - begin:.0f} s.")
    return status == 0
