"""Compares the durations of paced operations on 1 to 12 devices with their device model, in real runs."""

from __future__ import annotations

from bench.emulation.clusters import star
from bench.tables.rows import Table
from emulator.session.client import emulate
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.strategies.registry import by_rule

DEVICES = (1, 4, 8, 12)
MODEL = "bert-base"
FLOP_PER_S = 20e9  # a fourth of a core
WORKLOAD = Workload(prompt_tokens=96, new_tokens=0, requests=8, pattern="bursty")


def measure_pacing() -> Table:
    rows = []
    for count in DEVICES:
        model, weights = catalogue.resolve(MODEL, "random")
        spec = RunSpec(
            cluster=star(count, FLOP_PER_S, 1e9),
            model=model,
            weights=weights,
            strategy="gpipe" if count > 1 else "single",
            params=by_rule("gpipe") if count > 1 else {},  # every device takes part
            workload=WORKLOAD,
        )
        report = emulate(spec, lambda events: None)
        facts, busy_s = report.fidelity, sum(device.busy_s for device in report.devices)
        rows.append(
            (
                str(count),
                f"{report.dilation:g}",
                f"{busy_s * report.dilation:.1f} s",
                _percent(facts.compute_error_mean),
                _percent(facts.compute_error_p95),
                _percent(facts.late_frac),
            )
        )
    title = (
        f"{MODEL}, a burst of {WORKLOAD.requests} through a pipeline of N devices of "
        f"{FLOP_PER_S / 1e9:g} GFLOP/s; dilation chosen. How much longer than it should an operation lasts."
    )
    columns = ("devices", "D", "paced in all", "mean error", "p95", "late operations")
    return Table(title, columns, tuple(rows))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"
