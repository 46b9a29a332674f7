"""Times planning: every strategy, the largest model of the papers, 5 and 64 devices."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.tables.rows import Table
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.units import human_s
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.program.strategy import Strategy
from engine.strategies.registry import STRATEGIES

MODEL = "llama-3.3-70b"
PROMPT_TOKENS, NEW_TOKENS, BURST = 200, 100, 4
JETSONS_GB = (64.0, 32.0, 32.0, 16.0, 16.0)
"""160 GB on five Jetsons, for a model of 141 GB: about what LIME's evaluation has (arXiv 2512.21835)."""
MANY_GB = (64.0, *((1.2, 2.2, 3.6)[rank % 3] for rank in range(1, 64)))
"""211 GB on 64 devices, some of which have no room for one layer (1.7 GB)."""
AMPLE_GB = 200.0


def measure_plan_speed() -> Table:
    model, _ = catalogue.resolve(MODEL, "random")
    testbeds = {
        "5 devices, 160 GB": _star(JETSONS_GB),
        "64 devices, 211 GB": _star(MANY_GB),
        "5 devices of 200 GB": _star((AMPLE_GB,) * 5),
        "64 devices of 200 GB": _star((AMPLE_GB,) * 64),
    }
    rows = tuple(
        (chosen.name, *(_slowest(chosen, cluster, model) for cluster in testbeds.values()))
        for chosen in STRATEGIES
    )
    title = (
        f"{MODEL}, {PROMPT_TOKENS} tokens in, {NEW_TOKENS} out, default parameters: the slower of planning "
        f"for one request and for {BURST} at once; refused: no plan within that memory, or none for that "
        "number of devices."
    )
    return Table(title, ("strategy", *testbeds), rows)


def _slowest(chosen: Strategy, cluster: ClusterSpec, model: ModelSpec) -> str:
    """The longer of two plannings, as text."""
    took_s, refused = 0.0, False
    one = Workload(prompt_tokens=PROMPT_TOKENS, new_tokens=NEW_TOKENS)
    for workload in (one, one.model_copy(update={"requests": BURST, "pattern": "bursty"})):
        start_s = time.perf_counter()
        if chosen.supports(cluster, model) is None:
            try:
                chosen.plan(cluster, model, workload, chosen.Params())
            except PlanError:
                refused = True
        else:
            refused = True
        took_s = max(took_s, time.perf_counter() - start_s)
    return f"{human_s(took_s)}{', refused' if refused else ''}"


def _star(memories_gb: Sequence[float]) -> ClusterSpec:
    """Unequal devices around one switch of 200 Mbit/s."""
    devices = tuple(
        DeviceSpec(
            name=f"n{rank}",
            flop_per_s=(4 + rank % 3) * 1e12,
            memory_bytes=size_gb * 1e9,
            memory_byte_per_s=1e11,
            disk_byte_per_s=2e9,
        )
        for rank, size_gb in enumerate(memories_gb)
    )
    links = tuple(LinkSpec(a=device.name, b="hub", bit_per_s=2e8) for device in devices)
    switches = (SwitchSpec(name="hub"),)
    return ClusterSpec(
        name=f"star-{len(devices)}", source="n0", devices=devices, switches=switches, links=links
    )
