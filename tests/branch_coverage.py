"""`./loom coverage`: run the tests under coverage and print branch coverage per room.

    ./loom coverage                        most tests of `./loom test`, and the table
    ./loom coverage tests/engine/ops       only these tests (any arguments for pytest)
    ./loom coverage --write                also write the table to docs/results/tests.md

Processes that tests start or fork are measured too. Tests that emulate, measure time or drive a browser are
left out: coverage slows them down, and they would judge the wrong thing. `./loom coverage -m ""` runs them
nevertheless, and campaigns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.cli.document import write_table
from tests.mutation.document import DOCUMENT, write_section

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = "long or alone or root or browser"
TOP = ("bench", "engine", "emulator", "topologies", "webapp")
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")
HEADS = ("room", "statements", "run", "branches", "taken")


def main(arguments: list[str]) -> int:
    """Returns pytest's exit status; 2 if pytest refuses the arguments."""
    write = "--write" in arguments
    chosen = [argument for argument in arguments if argument != "--write"]
    coverage = (sys.executable, "-m", "coverage")
    subprocess.run((*coverage, "erase"), cwd=ROOT, check=True)
    workers = ("-n", str(len(os.sched_getaffinity(0))), "--dist", "loadfile")
    selection = () if "-m" in chosen else ("-m", f"not ({LEFT_OUT})")
    tests = (sys.executable, "-m", "pytest", "-q", "--cov", "--cov-report=", *workers, *selection, *chosen)
    status = subprocess.run(tests, cwd=ROOT).returncode
    if status in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        return 2  # pytest has said what is wrong, and nothing was measured
    report = subprocess.run(
        (*coverage, "json", "-q", "-o", "-"), cwd=ROOT, check=True, capture_output=True, text=True
    )
    rows = rows_of(rooms_of(json.loads(report.stdout)["files"]))
    sys.stdout.write(as_markdown(rows) + "\n")
    if write:
        link = write_table(DOCUMENT, "coverage", HEADS, rows)
        write_section("coverage", f"{as_markdown(rows[-1:])}\n\n{link}")
    return status


def room_of(path: str) -> str:
    """`engine/ops/cost.py` is in `engine/ops`; a file directly in a top folder is in that folder."""
    parts = Path(path).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def rooms_of(files: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Room → sums of `COUNTS`, in alphabetical order. `files` is that of coverage's JSON report."""
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTS, 0))
    for path, file in files.items():
        if Path(path).parts[0] in TOP:
            for name in COUNTS:
                rooms[room_of(path)][name] += file["summary"][name]
    return dict(sorted(rooms.items()))


def share(covered: int, total: int) -> str:
    return f"{covered / total:.1%}" if total else "–"


def rows_of(rooms: Mapping[str, Mapping[str, int]]) -> list[tuple[str, ...]]:
    """The table of the rooms, and of all together in its last row."""
    rows: list[tuple[str, ...]] = []
    every = {name: sum(room[name] for room in rooms.values()) for name in COUNTS}
    for room, counts in {**rooms, "all": every}.items():
        statements, lines_run, branches, taken = (counts[name] for name in COUNTS)
        covered = (share(lines_run, statements), str(branches), share(taken, branches))
        rows.append((room, str(statements), *covered))
    return rows


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = (HEADS, ("---", *["---:"] * (len(HEADS) - 1)), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
