"""Runs a module of trials or service as root in namespaces of its own, and hands over what it found."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.domain.errors import RunError
from webapp.ops.places import ROOT, OpsError

NAMESPACES = (
    "unshare",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--mount-proc",
    "--kill-child=SIGKILL",
)


class Found(NamedTuple):
    """Rows of a table, and the problems that were found on the way."""

    rows: tuple[tuple[str, ...], ...]
    problems: tuple[str, ...] = ()

    def rows_unless(self, wrong: str) -> tuple[tuple[str, ...], ...]:
        """The rows; raises `RunError`, which begins with `wrong`, if there are problems."""
        if self.problems:
            raise RunError(f"{wrong}: {'; '.join(self.problems[:5])}.")
        return self.rows


def found_by(module: str, *arguments: str) -> Found:
    """What `python -m module` hands over. Raises `OpsError` if it broke off."""
    with tempfile.TemporaryDirectory(prefix="edgeloom-bench-") as directory:
        result = Path(directory) / "result.json"
        line = (*NAMESPACES, sys.executable, "-m", module, *arguments, "--result", str(result))
        ended = subprocess.run(line, cwd=ROOT)
        if not result.exists():
            raise OpsError(f"{module} broke off with status {ended.returncode}; its messages are above.")
        found = json.loads(result.read_text())
    return Found(tuple(map(tuple, found["rows"])), tuple(found["problems"]))


def carry_out(play: Callable[[Path], Found], name: str, result: Path | None) -> int:
    """Play below a new folder and hand over what was found; returns the module's exit status. The folder
    stays, with its logs, where something was wrong.
    """
    directory = Path(tempfile.mkdtemp(prefix=f"edgeloom-{name}-"))
    found = None
    try:
        found = play(directory)
    finally:
        if found is None or found.problems:
            sys.stderr.write(f"The logs are in {directory}.\n")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return hand_over(found.rows, found.problems, result)


def numbered_trials(parser: argparse.ArgumentParser, trials: int) -> None:
    """Add the arguments of a campaign: how many trials, and which ones."""
    parser.add_argument("--trials", type=int, default=trials)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)


def parser_of(about: str | None) -> argparse.ArgumentParser:
    """The parser of such a module, with `--result`."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--result", type=Path, help="write rows and problems as JSON to this file")
    return parser


def hand_over(rows: Sequence[Sequence[str]], problems: Sequence[str], result: Path | None) -> int:
    """Write into the file `result`, or print where there is none; returns the module's exit status."""
    if result:
        result.write_text(json.dumps({"rows": rows, "problems": problems}))
    else:
        for row in rows:
            sys.stdout.write("  ".join(row) + "\n")
        sys.stdout.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0
