"""Starts a campaign of trials in namespaces of its own, for `./loom chaos --world service`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from engine.cli.command import Trials
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


def service_trials(seed: int, first: int, trials: int, database: str) -> Trials:
    """Trials `first` to `first + trials` of a seed, as root. Raises `OpsError` if the campaign broke off."""
    with tempfile.TemporaryDirectory(prefix="edgeloom-trials-result-") as directory:
        result = Path(directory) / "result.json"
        numbers = ("--seed", str(seed), "--first", str(first), "--trials", str(trials))
        asked = ("-m", "webapp.trials.campaign", *numbers, "--database", database, "--result", str(result))
        ended = subprocess.run((*NAMESPACES, sys.executable, *asked), cwd=ROOT)
        if not result.exists():
            raise OpsError(f"The campaign broke off with status {ended.returncode}; its messages are above.")
        found = json.loads(result.read_text())
    return Trials(rows_of(found), tuple(found["problems"]))


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
