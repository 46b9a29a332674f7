"""`./loom test` runs every check and every test; `./loom coverage` and `./loom mutate` measure the tests.

    ./loom test                       every check, and every test but campaigns
    ./loom test --long                the campaigns
    ./loom test FOLDER                the tests of a folder of `tests`, side by side
    ./loom test PYTEST ARGUMENT …     what pytest makes of any other arguments

Three things go on at once: the tests that share nothing, in one pytest worker per core; the tests in the
browser and with Redis, one by one, because they mostly wait for Chromium and for servers; and the checks
(linters, types, front end), one after the other. Then come the tests that need a quiet machine because what
they measure is time. Campaigns are left out: `./loom test --long` runs them.
"""

from __future__ import annotations

import ast
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from engine.domain.command_name import COMMAND
from webapp.ops.places import FRONTEND, PYTHON, ROOT, echo
from webapp.ops.setup import node_environment, set_up

MANY_PROCESSES = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
"""The environment of tests in many processes, which share the cores: more threads in each would only make
them wait for one another. And each would compile all modules again if none might keep what it has compiled.
"""

TESTS = ROOT / "tests"

NO_TESTS_COLLECTED = 5
"""pytest's exit status where none of the tests was wanted."""

LONG_S = 10 * 60
"""Seconds that the campaigns take on two quiet cores, about."""


class Check(NamedTuple):
    """A command that says by its exit status whether all is well."""

    name: str
    command: Sequence[str]
    directory: Path = ROOT
    environment: Mapping[str, str] = {}
    fine: Sequence[int] = (0,)


def test(arguments: Sequence[str]) -> int:
    """Returns 0 if all is well."""
    set_up(redis=True, tests=True)
    if arguments[:1] == ["--long"]:
        echo(f"Campaigns: about {LONG_S // 60} minutes on two quiet cores.")
        return run_groups("long", options=arguments[1:])
    if len(arguments) == 1 and arguments[0] in rooms():
        return run_groups("not long", TESTS / arguments[0])
    if arguments:
        return run_pytest("pytest", *arguments)
    begin = time.monotonic()
    status = run_groups("not long", beside=checks(node_environment()))
    echo(
        f"All of it took {time.monotonic() - begin:.0f} s. Campaigns were left out: `{COMMAND} test --long`."
    )
    return status


def rooms() -> set[str]:
    """The names of the folders of `tests` that have tests."""
    return {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}


def run_groups(
    which: str, where: Path = TESTS, options: Sequence[str] = (), beside: Sequence[Check] = ()
) -> int:
    """Run all groups of the tests in `where` for which pytest's expression `which` is true, and the checks
    `beside` them; those that run alone once all others have ended. Returns 0 if all is well.
    """
    alone, browser = marked("alone", where), marked("browser", where)
    waiting = sorted({*browser, *marked("redis", where)})
    elsewhere = [f"--ignore={folder}" for folder in folders_of(browser)]  # what they import takes seconds
    selected = ("-m", f"({which}) and not (alone or browser or redis)", *elsewhere, *options)
    side_by_side = ("-n", str(cores()), "--dist", "loadfile", *selected, str(where))
    failed = []
    with ThreadPoolExecutor(2) as lanes:
        chosen = ("-m", f"({which}) and not alone and (browser or redis)", *options, *waiting)
        one_by_one = [pytest_check("tests in the browser and with Redis", *chosen)] if waiting else []
        begun = [lanes.submit(failed_checks, some) for some in (one_by_one, beside)]
        if run_pytest(f"tests, {cores()} at a time", *side_by_side):
            failed.append("tests side by side")
        failed += [name for lane in begun for name in lane.result()]
    if alone and run_pytest("tests that run alone", "-m", f"({which}) and alone", *options, *alone):
        failed.append("tests that run alone")
    if failed:
        echo(f"Failed: {', '.join(failed)}; see above.")
    return 1 if failed else 0


def marked(name: str, where: Path) -> list[str]:
    """The files in `where` that have tests with this marker. pytest would import all files to find them."""
    return [str(path) for path in sorted(where.rglob("test_*.py")) if f"mark.{name}" in path.read_text()]


def folders_of(files: Sequence[str]) -> list[Path]:
    """The folders that have no test files but these, in a stable order."""
    folders = sorted({Path(file).parent for file in files})
    return [folder for folder in folders if {str(file) for file in folder.glob("test_*.py")} <= {*files}]


def measure(module: str, arguments: Sequence[str]) -> int:
    """Run `python -m module`, which measures the tests, in the environment that they need."""
    set_up(redis=True, tests=True)
    command = (str(PYTHON), "-m", module, *arguments)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **MANY_PROCESSES}).returncode


def explanation_of(module: str) -> str:
    """What a module says of itself, without the packages that it needs."""
    found = find_spec(module)
    assert found is not None and found.origin is not None, "it is one of ours"
    return ast.get_docstring(ast.parse(Path(found.origin).read_text(encoding="utf-8"))) or ""


def cores() -> int:
    return len(os.sched_getaffinity(0))


def run_pytest(title: str, *arguments: str) -> int:
    """Returns pytest's exit status, 0 also if there is no such test."""
    echo(f"{title} …")
    begin = time.monotonic()
    made = pytest_check(title, *arguments)
    status = subprocess.run(made.command, cwd=ROOT, env={**os.environ, **made.environment}).returncode
    status = 0 if status in made.fine else status
    echo(f"{title}: {'passed' if status == 0 else 'FAILED'} in {time.monotonic() - begin:.0f} s.")
    return status


def pytest_check(title: str, *arguments: str) -> Check:
    command = (str(PYTHON), "-m", "pytest", *arguments)
    return Check(title, command, ROOT, MANY_PROCESSES, fine=(0, NO_TESTS_COLLECTED))


def checks(node: Mapping[str, str]) -> tuple[Check, ...]:
    """All checks but pytest."""
    python = str(PYTHON)
    return (
        Check("mypy", (python, "-m", "mypy")),
        Check("front-end types and lint", ("npm", "run", "--silent", "check"), FRONTEND, node),
        Check("front-end tests", ("npm", "test", "--silent"), FRONTEND, node),
        Check("ruff", (python, "-m", "ruff", "check", ".")),
        Check("formatting", (python, "-m", "ruff", "format", "--check", "--quiet", ".")),
        Check("API types", (python, "manage.py", "write_api_types", "--check"), ROOT, node),
        Check(
            "Django's checks and migrations", (python, "manage.py", "makemigrations", "--check", "--dry-run")
        ),
    )


def failed_checks(checks: Sequence[Check]) -> list[str]:
    """Run all `checks` one after the other, each to its end; returns the names of those that failed."""
    return [check.name for check in checks if not passes(check)]


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
    good = done.returncode in check.fine
    verdict = f"{check.name}: {'passed' if good else 'FAILED'} in {time.monotonic() - begin:.0f} s."
    echo(verdict if good else f"{done.stdout.rstrip()}\n{verdict}")
    return good
