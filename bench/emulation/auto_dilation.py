"""What faster arithmetic is worth to paced runs: the dilation of `auto` with either choice of kernels."""

from __future__ import annotations

from collections.abc import Sequence

import topologies
from bench.emulation.clusters import star
from bench.tables.rows import Table
from emulator.calibration.calibrate import host_profile
from emulator.calibration.shapes import SHORT
from engine.domain.cluster import ClusterSpec
from engine.domain.host_times import HostProfile
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.host_kernels import use_host_kernels
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import by_rule
from engine.worlds.real.dilation import choose_dilation, demands

MODEL = "bert-base"
STRATEGIES = ("gpipe", "voltage", "megatron")
WORKLOAD = Workload(prompt_tokens=200, new_tokens=0, requests=16, pattern="bursty")
MANY, MANY_FLOP_PER_S, MANY_BIT_PER_S = 16, 2e10, 100e6


def measure_auto_dilation() -> Table:
    """Time the kernels of this host twice, and choose the dilation of some runs by either figures."""
    from engine.ops.torch_kernels.linear import use

    use(None)
    default = host_profile(SHORT).profile
    use_host_kernels()
    probed = host_profile(SHORT).profile
    clusters = (topologies.load("lab-4"), star(MANY, MANY_FLOP_PER_S, MANY_BIT_PER_S))
    return dilation_table(clusters, default, probed)


def dilation_table(clusters: Sequence[ClusterSpec], default: HostProfile, probed: HostProfile) -> Table:
    """A row per cluster and strategy. No run is carried out, only predicted."""
    model, weights = catalogue.resolve(MODEL, "random")
    rows = []
    for cluster in clusters:
        for strategy in STRATEGIES:
            spec = RunSpec(
                cluster=cluster,
                model=model,
                weights=weights,
                strategy=strategy,
                params=by_rule(strategy),  # every device takes part
                workload=WORKLOAD,
            )
            trace, _ = simulate(prepare(spec))
            cells = [cell for profile in (default, probed) for cell in _cells(spec, trace, profile)]
            rows.append((cluster.name, str(len(cluster.workers)), strategy, *cells))
    title = (
        f"{MODEL}, a burst of {WORKLOAD.requests} texts of {WORKLOAD.prompt_tokens} tokens: the dilation D "
        "that `auto` chooses by this host's times of kernels, with torch's default kernels and with those of "
        "the probe, the rule that asks for most, and what the cores alone ask for. The cluster of "
        f"{MANY} has devices of {MANY_FLOP_PER_S / 1e9:g} GFLOP/s on {MANY_BIT_PER_S / 1e6:g} Mbit/s."
    )
    of_each = [f"{what}, {kernels}" for kernels in ("default", "probed") for what in ("D", "rule", "cores")]
    return Table(title, ("cluster", "workers", "strategy", *of_each), tuple(rows))


def _cells(spec: RunSpec, trace: Sequence[Span | Mark], profile: HostProfile) -> tuple[str, str, str]:
    """D by the times of `profile`, the rule that asks for it, and what the rule of the cores asks for."""
    asked = demands(spec, profile, trace)
    rule = max(asked, key=lambda name: asked[name])
    dilation = choose_dilation(spec.model_copy(update={"profile": profile}), trace)
    return f"{dilation:.2f}", rule if asked[rule] > 1.0 else "–", f"{asked['cores']:.2f}"
