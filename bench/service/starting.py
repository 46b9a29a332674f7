"""Starts `./loom chaos --world service` and `./loom bench load` in namespaces of their own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.service.first_run import measure
from engine.cli.command import Trials
from webapp.ops.places import ROOT, OpsError, echo
from webapp.ops.setup import set_up_frontend

NAMESPACES = (
    "unshare",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--mount-proc",
    "--kill-child=SIGKILL",
)


def service_trials(seed: int, first: int, trials: int, database: str) -> Trials:
    """Trials `first` to `first + trials` of a seed, as root. Raises `OpsError` if the campaign broke off."""
    numbers = ("--seed", str(seed), "--first", str(first), "--trials", str(trials))
    found = result_of("bench.trials.campaign", *numbers, "--database", database)
    return Trials(rows_of(found), tuple(found["problems"]))


def service_load() -> Trials:
    """As root. Raises `OpsError` if the measurement broke off."""
    return measured_by("bench.service.load")


def browser_load() -> Trials:
    """As root; builds the front end first if its sources have changed. Raises `OpsError` if it broke off."""
    set_up_frontend()
    return measured_by("bench.service.browser")


def serving_load() -> Trials:
    """As root. Raises `OpsError` if the measurement broke off."""
    return measured_by("bench.service.serving")


def first_run(repeats: int) -> tuple[tuple[str, ...], ...]:
    """Rows of what, median, slowest and asked. Raises `OpsError` if a start failed."""
    measured: dict[str, list[float]] = {}
    asked: dict[str, str] = {}
    for repeat in range(repeats):
        echo(f"  {repeat + 1} of {repeats}")
        for phase in measure():
            measured.setdefault(phase.what, []).append(phase.took_s)
            asked[phase.what] = "" if phase.asked_s is None else f"{phase.asked_s:.0f} s"
    return tuple(
        (what, f"{statistics.median(took_s):.1f} s", f"{max(took_s):.1f} s", asked[what])
        for what, took_s in measured.items()
    )


def measured_by(module: str) -> Trials:
    found = result_of(module)
    return Trials(tuple(map(tuple, found["rows"])), tuple(found["problems"]))


def service_machines() -> Trials:
    """As root. Raises `OpsError` if it broke off."""
    found = result_of("bench.service.machines")
    return Trials(tuple(map(tuple, found["rows"])), tuple(found["problems"]))


def result_of(module: str, *arguments: str) -> dict[str, Any]:
    """What a module writes as JSON to the file `--result`. Raises `OpsError` if it writes none."""
    with tempfile.TemporaryDirectory(prefix="edgeloom-trials-result-") as directory:
        result = Path(directory) / "result.json"
        line = (*NAMESPACES, sys.executable, "-m", module, *arguments, "--result", str(result))
        ended = subprocess.run(line, cwd=ROOT)
        if not result.exists():
            raise OpsError(f"{module} broke off with status {ended.returncode}; its messages are above.")
        found: dict[str, Any] = json.loads(result.read_text())
    return found


def rows_of(found: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    states, faults = found["states"], found["faults"]
    return (
        ("trials", str(found["trials"])),
        ("runs", str(sum(states.values()))),
        *((f"of these {state}", str(count)) for state, count in sorted(states.items())),
        ("faults", ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items()))),
        ("runs in two states, events lost or doubled, things left behind", str(len(found["problems"]))),
        ("wall time", f"{found['wall_s']:.0f} s"),
    )
