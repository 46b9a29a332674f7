"""The first command of a new user: every method, on clusters that come with EdgeLoom, with small models. Each
run is a process with a home of its own, in which nothing was measured or learnt.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import topologies
from bench.fuzz.busy import busy_machine
from bench.tables.rows import Table
from engine.domain.errors import EdgeLoomError
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.attempts import ORDINALS
from engine.runs.predict import prepare
from engine.strategies.registry import STRATEGIES

MODELS = ("demo-lm", "tiny-gpt2", "tiny-llama")
PROMPT = "The with statement"
MOST_DEVICES = 16
ORDER = 1
"""Seed of the order: every beginning of it is a fair sample."""
RUN = "import sys; from edgeloom.command_line import main; sys.exit(main())"


class Case(NamedTuple):
    strategy: str
    cluster: str
    model: str


class Ended(NamedTuple):
    """A first command: whether it was valid, how often it began, and its wall seconds, also by parts."""

    case: Case
    status: int
    valid: bool
    attempts: int
    dilation: float
    wall_s: float
    parts_s: dict[str, float]


PARTS = ("planning", "building", "calibrating", "running", "dismantling", "judging", "verifying")
"""Of a run's report, in their order; what is left is the command's own, its imports for the most part."""


def measure_first(minutes: float, busy: int) -> Table:
    """First commands for so many minutes, beside `busy` processes that compute all the time."""
    until_s, ended = time.monotonic() + 60 * minutes, list[Ended]()
    with busy_machine(busy):
        for case in cases():
            if time.monotonic() > until_s:
                break
            ended.append(first_command(case))
            one = ended[-1]
            said = f"status {one.status}, {one.attempts} attempts, dilation {one.dilation:g}"
            sys.stderr.write(f"  {' '.join(case)}: {said}, {one.wall_s:.0f} s\n")
    return table_of(ended, busy)


def cases() -> Iterator[Case]:
    """The runs that can be planned, in their order."""
    clusters = [name for name in topologies.names() if len(topologies.load(name).devices) <= MOST_DEVICES]
    every = [
        Case(each.name, cluster, model) for each in STRATEGIES for cluster in clusters for model in MODELS
    ]
    random.Random(ORDER).shuffle(every)
    for case in every:
        model, weights = catalogue.resolve(case.model, None)
        try:
            prepare(
                RunSpec(
                    cluster=topologies.load(case.cluster),
                    model=model,
                    weights=weights,
                    strategy=case.strategy,
                    workload=Workload(prompt_tokens=len(PROMPT)),
                )
            )
        except EdgeLoomError:
            continue
        yield case


def first_command(case: Case) -> Ended:
    with tempfile.TemporaryDirectory() as home:
        report = Path(home) / "report.json"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "LOOM_"))}
        asked = ["run", case.cluster, "--model", case.model, "--strategy", case.strategy]
        given = ["--prompt", PROMPT] if case.model == MODELS[0] else ["--prompt-tokens", str(len(PROMPT))]
        began_s = time.monotonic()
        status = subprocess.run(
            [sys.executable, "-c", RUN, *asked, *given, "--json", str(report)],
            env=kept | {"HOME": home, "LOOM_STATE_DIR": home},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
        wall_s = time.monotonic() - began_s
        found: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
    fidelity = found.get("fidelity", {})
    notes = " ".join(fidelity.get("notes", ()))
    return Ended(
        case,
        status,
        fidelity.get("valid") is True,
        next((at for at, word in enumerate(ORDINALS, 1) if f"the {word} attempt" in notes), 1),
        found.get("dilation", 0.0),
        wall_s,
        {part: found.get("timings", {}).get(part, 0.0) for part in PARTS},
    )


def table_of(ended: Sequence[Ended], busy: int) -> Table:
    """A row per method, and one for all."""
    names = [each.name for each in STRATEGIES if any(one.case.strategy == each.name for one in ended)]
    rows = [_row(name, [one for one in ended if one.case.strategy == name]) for name in names]
    rows += [_row("all", ended)] if ended else []
    beside = f"beside {busy} busy processes" if busy else "beside nothing else"
    title = (
        f"First commands with `--dilation auto`, each with an empty home, {beside}: every method on the "
        f"clusters of up to {MOST_DEVICES} devices with {', '.join(MODELS)}, in a fixed random order."
    )
    columns = (
        "method",
        "runs",
        "valid",
        "exit status 0",
        "began again",
        "median D",
        "median wall time",
        *(f"{part}, s" for part in PARTS),
        "command, s",
    )
    return Table(title, columns, tuple(rows))


def _row(name: str, ended: Sequence[Ended]) -> tuple[str, ...]:
    valid = sum(one.valid for one in ended) / len(ended)
    return (
        name,
        str(len(ended)),
        f"{valid:.1%}",
        str(sum(one.status == 0 for one in ended)),
        str(sum(one.attempts > 1 for one in ended)),
        f"{median(one.dilation for one in ended):.3g}",
        f"{median(one.wall_s for one in ended):.1f} s",
        *(f"{median(one.parts_s[part] for one in ended):.1f}" for part in PARTS),
        f"{median(one.wall_s - sum(one.parts_s.values()) for one in ended):.1f}",
    )
