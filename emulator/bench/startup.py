"""Seconds from the start of a session until all device processes are connected and ready."""

from __future__ import annotations

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
        times = _timings(count)
        ready_s = times["building"] + times["devices_ready"]
        rows.append((
            str(count), f"{times['building']:.2f} s", f"{times['devices_ready']:.2f} s", f"{ready_s:.2f} s",
            f"{times['calibrating']:.2f} s",
        ))
    title = "Star of N devices. Network and torch come up together; then devices are forked and connected."
    columns = ("devices", "network and torch", "devices", "ready after", "measuring the links adds")
    return Table(title, columns, tuple(rows))


def _timings(count: int) -> dict[str, float]:
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = RunSpec(
        cluster=star(count, 2e9, 100e6), model=model, weights=weights, strategy="megatron",
        workload=Workload(prompt_tokens=8, new_tokens=1), dilation=4.0,
    )
    report = emulate(spec, lambda events: None)
    return {name: float(value) for name, value in report.timings.items()}
