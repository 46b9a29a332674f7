"""Compares predicted with emulated latency on the demo cluster."""

from __future__ import annotations

import topologies
from bench.tables.rows import Table
from emulator.session.client import emulate
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.units import human_s
from engine.domain.workload import Workload
from engine.models import catalogue

CLUSTER = "lab-3"
MODEL = "tinyllama-42m"
STRATEGIES = ("single", "gpipe", "megatron", "voltage")
WORKLOAD = Workload(prompt_tokens=64, new_tokens=8)


def measure_prediction() -> Table:
    rows = []
    for name in STRATEGIES:
        report = _run(name)
        rows.append(
            (
                name,
                f"{report.dilation:g}",
                *_pair(report, "latency_s"),
                *_pair(report, "ttft_s"),
                *_pair(report, "tpot_s"),
                "yes" if report.fidelity.valid and report.correctness.ok else "NO",
            )
        )
    title = (
        f"{MODEL} (random weights) on {CLUSTER}, {WORKLOAD.prompt_tokens} tokens in, "
        f"{WORKLOAD.new_tokens} out: emulated, and how far the prediction is off."
    )
    columns = ("strategy", "D", "latency", "off", "first token", "off", "per token", "off", "proved")
    return Table(title, columns, tuple(rows))


def _run(strategy: str) -> RunReport:
    model, weights = catalogue.resolve(MODEL, "random")
    spec = RunSpec(
        cluster=topologies.load(CLUSTER),
        model=model,
        weights=weights,
        strategy=strategy,
        workload=WORKLOAD,
    )
    return emulate(spec, lambda events: None)


def _pair(report: RunReport, name: str) -> tuple[str, str]:
    """The emulated figure, and the prediction's relative error."""
    emulated: float = getattr(report, name)
    predicted: float = getattr(known, name) if (known := report.predictions.with_all_changes_known) else 0.0
    return human_s(emulated), f"{predicted / emulated - 1:+.1%}" if emulated else "-"
