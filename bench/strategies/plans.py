"""Plans random runs and compares plans, predicted times and memory with those kept in `plans.csv`.

A change of a planner, or of the simulated world, is seen here on every method at once. `./loom bench plans
--keep` writes the file anew.
"""

from __future__ import annotations

import csv
import hashlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

from bench.fuzz.clusters import draw_cluster
from bench.tables.rows import Table
from engine.domain.errors import EdgeLoomError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.reports.fold import fold
from engine.runs.predict import Prepared, prepare, simulate
from engine.strategies.planner.choice import PlannedParams
from engine.strategies.registry import strategy

KEPT = Path(__file__).with_suffix(".csv")
METHODS = (
    "single",
    "accelerate",
    "gpipe",
    "pipeline_offload",
    "edgeshard",
    "megatron",
    "deepspeed",
    "galaxy",
    "tpi_llm",
    "tpi_llm_offload",
    "voltage",
    "edgeformer",
    "lime",
    "mcu",
    "adaptlink",
    "edge_only",
    "cloud_only",
)
"""They take turns. A method that comes later has no turn, or all runs would be others."""
PLANNERS = ("best", "paper", "best")
RUNS, LAYERS = 2000, 6
DECODERS = ("gpt2", "tinyllama-42m", "tiny-llama")
MODELS = (*DECODERS, "bert-base")
FASTER_LINKS = (1.0, 10.0, 100.0)
"""All links of a cluster are so much faster than drawn: else one device alone is best in most."""
DEVICES = (6, 6, 6, 6, 16)
SAME = 0.01
"""Predicted times that differ by less count as equal."""


class Planned(NamedTuple):
    """What became of one run: its plan's digest, or the refusal's, and predicted seconds and bytes."""

    number: int
    method: str
    planner: str
    plan: str
    total_s: float
    first_s: float
    peak_bytes: int
    planning_s: float


def measure_plans(keep: bool = False) -> Table:
    """The kept plans against those of now; with `keep` those of now are kept."""
    now = []
    for index in range(RUNS):
        now.append(planned(index))
        if index % 100 == 99:
            sys.stderr.write(f"  {index + 1} of {RUNS} runs\n")
    if keep:
        write(now)
    return compared(read(), now)


def draw(index: int) -> tuple[RunSpec, str]:
    """Run number `index`, and the planner of it ("": the method has none to choose)."""
    random = Random(f"plans/{index}")
    turn, number = divmod(index, len(METHODS))
    name = METHODS[number]
    planner = PLANNERS[turn % len(PLANNERS)] if issubclass(strategy(name).Params, PlannedParams) else ""
    model = _model(random, name)
    cluster = draw_cluster(random, model, random.choice(DEVICES))
    while len(cluster.workers) < 2:
        cluster = draw_cluster(random, model)
    faster = random.choice(FASTER_LINKS)
    links = tuple(link.model_copy(update={"bit_per_s": link.bit_per_s * faster}) for link in cluster.links)
    cluster = cluster.model_copy(update={"links": links})
    spec = RunSpec(
        name=f"plans {index}",
        cluster=cluster,
        model=model,
        workload=Workload(
            prompt_tokens=random.choice((1, 8, 32, 100)),
            new_tokens=random.choice((1, 4, 8)) if model.causal else 0,
            requests=random.choice((1, 1, 4)),
            pattern="bursty",
        ),
        strategy=name,
        params={"planner": planner} if planner else {},
    )
    return spec, planner


def _model(random: Random, method: str) -> ModelSpec:
    decoders_only = method in ("tpi_llm", "tpi_llm_offload")
    model = catalogue.resolve(random.choice(DECODERS if decoders_only else MODELS), "random")[0]
    return model.model_copy(update={"num_layers": min(model.num_layers, LAYERS)})


def planned(index: int) -> Planned:
    """Plan and predict run number `index`."""
    spec, planner = draw(index)
    start_s = time.process_time()
    try:
        prepared = prepare(spec)
    except EdgeLoomError as error:
        return Planned(index, spec.strategy, planner, _digest(str(error)), -1.0, -1.0, 0, _since(start_s))
    planning_s = _since(start_s)
    return Planned(
        index, spec.strategy, planner, _digest(prepared.plan.model_dump_json()), *_times(prepared), planning_s
    )


def _times(prepared: Prepared) -> tuple[float, float, int]:
    """Seconds until the last and the first result, and the bytes of the fullest device; -1 of a run that does
    not finish.
    """
    trace, outcome = simulate(prepared)
    report = fold(prepared.spec, prepared.plan, trace, world="predicted", outcome=outcome)
    peak = max(device.peak_memory_bytes for device in report.devices)
    if outcome.kind != "finished":
        return -1.0, -1.0, peak
    return float(f"{report.latency_s:.9g}"), float(f"{report.requests[0].ttft_s:.9g}"), peak


def _since(start_s: float) -> float:
    return round(time.process_time() - start_s, 4)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def write(rows: Sequence[Planned]) -> None:
    with KEPT.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Planned._fields)
        table.writerows(rows)


def read() -> list[Planned]:
    with KEPT.open(newline="") as file:
        return [
            Planned(
                number=int(row["number"]),
                method=row["method"],
                planner=row["planner"],
                plan=row["plan"],
                total_s=float(row["total_s"]),
                first_s=float(row["first_s"]),
                peak_bytes=int(row["peak_bytes"]),
                planning_s=float(row["planning_s"]),
            )
            for row in csv.DictReader(file)
        ]


def compared(kept: Sequence[Planned], now: Sequence[Planned]) -> Table:
    """One row for each method and planner: how many plans are equal, and how times changed."""
    pairs: dict[tuple[str, str], list[tuple[Planned, Planned]]] = {}
    for before, after in zip(kept, now, strict=True):
        pairs.setdefault((before.method, before.planner), []).append((before, after))
    columns = (
        "method",
        "planner",
        "runs",
        "plans equal",
        "slower by over 1 %",
        "faster by over 1 %",
        "best and worst change",
        "refused before / now",
        "planning: median ratio",
        "longest planning before / now",
    )
    title = f"Plans of {len(now)} random runs against the kept ones."
    return Table(title, columns, tuple(_row(*of, found) for of, found in sorted(pairs.items())))


def _row(method: str, planner: str, found: Sequence[tuple[Planned, Planned]]) -> tuple[str, ...]:
    ratios = [now.total_s / before.total_s for before, now in found if before.total_s > 0 and now.total_s > 0]
    planning = [now.planning_s / max(before.planning_s, 1e-3) for before, now in found]
    refused = [sum(one[at].total_s < 0 for one in found) for at in (0, 1)]
    longest = [max(one[at].planning_s for one in found) for at in (0, 1)]
    return (
        method,
        planner or "-",
        f"{len(found)}",
        f"{sum(before.plan == now.plan for before, now in found)}",
        f"{sum(ratio > 1 + SAME for ratio in ratios)}",
        f"{sum(ratio < 1 - SAME for ratio in ratios)}",
        f"{min(ratios, default=1):.3f} … {max(ratios, default=1):.3f}",
        f"{refused[0]} / {refused[1]}",
        f"{median(planning):.2f}",
        f"{longest[0]:.2f} s / {longest[1]:.2f} s",
    )
