"""Emulates every strategy on one cluster."""

from __future__ import annotations

from typing import Any

import topologies
from bench.strategies.showcases import emulated_report
from bench.tables.rows import Table
from engine.domain.errors import PlanError
from engine.domain.report import Correctness, RunReport
from engine.domain.spec import RunSpec
from engine.domain.units import human, human_s
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.strategies.registry import STRATEGIES

CLUSTER = "lab-4"
MODEL = "demo-lm"
WORKLOAD = Workload(prompt="The statement that raises an exception", new_tokens=16)
PARAMS: dict[str, dict[str, Any]] = {"speculative": {"draft_layers": 1}}
"""Where there is no plan with the defaults: no draft model."""


def measure_strategies() -> Table:
    rows: list[tuple[str, ...]] = []
    for strategy in STRATEGIES:
        spec = _spec(strategy.name, WORKLOAD, PARAMS.get(strategy.name, {}))
        try:
            rows.append(_row(strategy.name, emulated_report(spec)))
        except PlanError as error:
            rows.append((strategy.name, *["-"] * 6, str(error)))
    title = (
        f"{MODEL} on {CLUSTER}, {len(WORKLOAD.prompt or '')} characters in, {WORKLOAD.new_tokens} tokens "
        "out, default parameters (speculative: draft_layers = 1), emulated. Bytes: all that crossed a link, "
        "per token; memory: the fullest device."
    )
    columns = ("strategy", "first token", "per token", "bytes/token", "memory", "energy", "D", "proof")
    return Table(title, columns, tuple(rows))


def _spec(strategy: str, workload: Workload, params: dict[str, Any]) -> RunSpec:
    model, weights = catalogue.resolve(MODEL, None)
    return RunSpec(
        cluster=topologies.load(CLUSTER),
        model=model,
        weights=weights,
        strategy=strategy,
        workload=workload,
        params=params,
    )


def _row(name: str, report: RunReport) -> tuple[str, ...]:
    sent = sum(link.bytes for link in report.links) / max(1, len(report.output_tokens))
    peak = max(device.peak_memory_bytes for device in report.devices)
    verdict = proof(report.correctness)
    if report.outcome.kind != "finished":
        verdict = report.outcome.sentence
    elif not report.fidelity.valid:
        verdict += f"; not valid: {'; '.join(report.fidelity.why)}"
    return (
        name,
        human_s(report.ttft_s),
        human_s(report.tpot_s),
        human(sent, "B"),
        human(peak, "B"),
        f"{report.energy_j:.2f} J",
        f"{report.dilation:g}",
        verdict,
    )


def proof(found: Correctness) -> str:
    """The verdict of the comparison with the reference, in a few words."""
    if found.lossy and found.kl_mean is not None:
        return f"lossy: KL {found.kl_mean:.3f}, top-1 {found.top1_agreement or 0:.0%}"
    if found.ok and found.max_rel_error is None:
        return "same tokens"
    return f"same tokens, off by {found.max_rel_error:.0e}" if found.ok else f"WRONG: {found.why}"
