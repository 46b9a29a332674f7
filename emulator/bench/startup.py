"""Seconds from asking for a run until all its device processes are connected and ready."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from emulator.bench.clusters import star
from emulator.bench.rows import Table
from emulator.client import emulate
from engine.cli.command import Environment
from engine.models import catalogue
from engine.spec import RunSpec
from engine.workload import Workload

DEVICES = (2, 8, 16)


def measure_startup(environment: Environment) -> Table:
    rows = []
    for count in DEVICES:
        asked_to_running_s, times = _start(count)
        total_s = asked_to_running_s - times["calibrating"]
        session_s = total_s - times["building"] - times["devices_ready"]
        parts = (session_s, times["building"], times["devices_ready"], total_s, times["calibrating"])
        rows.append((str(count), *(f"{seconds:.2f} s" for seconds in parts)))
    title = "Star of N devices; network and torch come up together, then devices are forked and connected."
    columns = ("devices", "session, plan", "network, torch", "devices up", "all ready", "measuring links")
    return Table(title, columns, tuple(rows))


def _start(count: int) -> tuple[float, dict[str, float]]:
    """(seconds until it runs, measuring the links included; the parts as the report has them)."""
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = RunSpec(
        cluster=star(count, 2e9, 100e6), model=model, weights=weights, strategy="megatron",
        workload=Workload(prompt_tokens=8, new_tokens=1), dilation=4.0,
    )
    while True:
        seen_s: dict[str, float] = {"asked": time.monotonic()}
        report = emulate(spec, partial(_note, seen_s))
        if "queued" not in seen_s:  # one that had to wait for its turn tells nothing: again
            times = {name: float(value) for name, value in report.timings.items()}
            return seen_s["running"] - seen_s["asked"], times


def _note(seen_s: dict[str, float], events: list[dict[str, Any]]) -> None:
    """When each state was first seen."""
    for event in events:
        if event["type"] == "state":
            seen_s.setdefault(event["state"], time.monotonic())
