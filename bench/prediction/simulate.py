"""Times predictions: how fast the simulated world is, and how that grows with devices, layers and tokens."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise, product
from pathlib import Path
from typing import Literal, NamedTuple

import topologies
from bench.tables.rows import Table
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.errors import PlanError
from engine.domain.spec import RunSpec
from engine.domain.units import human, human_s
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.reports.fold import fold
from engine.runs.method import method_report
from engine.runs.predict import predict, prepare, simulate
from engine.strategies.registry import STRATEGIES
from engine.worlds.simulated.world import no_search_for_cycles

SWEEP_RATES = tuple(1e6 * 1.05**step for step in range(100))
SWEEP_METHODS = ("single", "gpipe", "megatron", "voltage", "galaxy")
SWEEP_TOKENS = (8, 16)
"""The lengths of a sweep of 100 rates × 5 methods × 2 lengths: 1,000 points."""
SWEEP_PROCESSES = 2
EVERY_DEVICE = {"planner": "paper"}
"""The other planners leave devices out where that is faster."""
SHORT = Workload(prompt_tokens=32, new_tokens=16)


class Measured(NamedTuple):
    """One prediction: its spans and marks, seconds of its parts, and the memory of its process before and at
    most.
    """

    items: int
    plan_s: float
    simulate_s: float
    fold_s: float
    before_bytes: int
    peak_bytes: int
    outcome: str


def measure_simulate() -> Table:
    rows = [_row(name, _in_a_process(spec)) for name, spec in _cases()]
    rows += [_all_methods(), _sweep()]
    columns = ("prediction", "spans and marks", "plan", "simulate", "fold", "a second", "memory")
    title = (
        "Predictions, each in a process of its own: seconds of planning, of simulating and of folding the "
        "report, the method's own included, spans and marks per second of simulating, and the memory that "
        "they add to the process. "
        "LIME: 70 billion parameters on the five Jetsons of its Setting 1."
    )
    return Table(title, columns, tuple(rows))


def _cases() -> Iterator[tuple[str, RunSpec]]:
    for new_tokens in (128, 512, 1536):
        yield f"LIME, {new_tokens:,} tokens", lime(new_tokens)
    yield "LIME, a burst of 5 × 512 tokens", lime(512, requests=5)
    yield "64 microcontrollers, 16 tokens", _of("mcu-64", "tinyllama-42m", "mcu")
    for count in (10, 100, 1000):
        yield f"pipeline of {count:,} devices, 8 tokens", many_devices(count, "chain")
    yield "pipeline over a tree of 1,000 devices, 8 tokens", many_devices(1000, "tree")
    for num_layers in (12, 24, 48):
        yield f"megatron on 4 devices, {num_layers} layers, 16 tokens", _deep(num_layers)


def lime(new_tokens: int, requests: int = 1) -> RunSpec:
    """LIME's large run: 70 billion parameters on five Jetsons with all of their memory, 200 Mbit/s."""
    workload = Workload(
        prompt_tokens=128,
        new_tokens=new_tokens,
        requests=requests,
        pattern="bursty" if requests > 1 else "sporadic",
    )
    spec = _of("papers/lime-setting-1", "llama-3.3-70b", "lime")
    devices = tuple(one.model_copy(update={"reserved_bytes": 0.0}) for one in spec.cluster.devices)
    cluster = spec.cluster.model_copy(update={"devices": devices})
    return spec.model_copy(update={"workload": workload, "cluster": cluster})


def many_devices(count: int, shape: Literal["chain", "tree"]) -> RunSpec:
    """A pipeline of one layer per device, on devices in a chain or in a binary tree."""
    devices = tuple(
        DeviceSpec(name=f"d{rank}", flop_per_s=1e10, memory_bytes=1e9, memory_byte_per_s=1e10)
        for rank in range(count)
    )
    before = {"chain": lambda rank: rank - 1, "tree": lambda rank: (rank - 1) // 2}[shape]
    links = tuple(
        LinkSpec(a=f"d{before(rank)}", b=f"d{rank}", bit_per_s=1e8, delay_s=1e-3) for rank in range(1, count)
    )
    model, weights = catalogue.resolve("tinyllama-42m", "random")
    return RunSpec(
        cluster=ClusterSpec(name=f"{shape}-{count}", source="d0", devices=devices, links=links),
        model=model.model_copy(update={"num_layers": count}),
        weights=weights,
        strategy="gpipe",
        params=EVERY_DEVICE,
        workload=SHORT.model_copy(update={"new_tokens": 8}),
    )


def _of(cluster: str, model: str, strategy: str) -> RunSpec:
    found, weights = catalogue.resolve(model, "random")
    return RunSpec(
        cluster=topologies.load(cluster),
        model=found,
        weights=weights,
        strategy=strategy,
        workload=SHORT,
    )


def _deep(num_layers: int) -> RunSpec:
    spec = _of("lab-4", "gpt2", "megatron")
    model = spec.model.model_copy(update={"num_layers": num_layers})
    return spec.model_copy(update={"model": model, "params": EVERY_DEVICE})


def measured(spec: RunSpec) -> Measured:
    """Plan, simulate and fold `spec` in this process, as `predict` does."""
    before_bytes, times_s = _peak_bytes(), [time.perf_counter()]
    prepared = prepare(spec)
    times_s.append(time.perf_counter())
    with no_search_for_cycles():
        trace, outcome = simulate(prepared)
        times_s.append(time.perf_counter())
        fold(spec, prepared.plan, trace, world="predicted", outcome=outcome)
        method_report(spec, prepared.plan, trace)
        times_s.append(time.perf_counter())
    plan_s, simulate_s, fold_s = (after - before for before, after in pairwise(times_s))
    return Measured(len(trace), plan_s, simulate_s, fold_s, before_bytes, _peak_bytes(), outcome.kind)


def _peak_bytes() -> int:
    """The most memory that this process has had since its program began (getrusage(2) counts what the process
    had before as well, which is its parent's).
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _in_a_process(spec: RunSpec) -> Measured:
    """Measure in a fresh process, whose memory is that of this prediction alone."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measured, spec).result()


def _row(name: str, found: Measured) -> tuple[str, ...]:
    ended = "" if found.outcome == "finished" else f" ({found.outcome})"
    return (
        name + ended,
        f"{found.items:,}",
        human_s(found.plan_s),
        human_s(found.simulate_s),
        human_s(found.fold_s),
        f"{found.items / found.simulate_s:,.0f}",
        human(found.peak_bytes - found.before_bytes, "B"),
    )


def _all_methods() -> tuple[str, ...]:
    """Every method once on one cluster, in this process; those that have no plan are refused."""
    began_s, refused = time.perf_counter(), 0
    for chosen in STRATEGIES:
        try:
            predict(_of("lab-4", "demo-lm", chosen.name))
        except PlanError:
            refused += 1
    took_s = time.perf_counter() - began_s
    name = f"demo-lm on lab-4, all {len(STRATEGIES)} methods ({refused} refused), 16 tokens"
    return (name, "", human_s(took_s), "", "", "", "")


def _sweep() -> tuple[str, ...]:
    """A thousand points of a demo-size model, on as many processes as the goal says."""
    specs = [
        _at_rate(_of("lab-4", "demo-lm", name), rate, new_tokens)
        for name, rate, new_tokens in product(SWEEP_METHODS, SWEEP_RATES, SWEEP_TOKENS)
    ]
    began_s = time.perf_counter()
    with ProcessPoolExecutor(SWEEP_PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        finished = sum(pool.map(_is_predicted, specs, chunksize=25))
    took_s = time.perf_counter() - began_s
    name = f"sweep of {len(specs):,} points of demo-lm on {SWEEP_PROCESSES} processes ({finished:,} finished)"
    return (name, "", human_s(took_s), "", "", "", "")


def _at_rate(spec: RunSpec, bit_per_s: float, new_tokens: int) -> RunSpec:
    links = tuple(link.model_copy(update={"bit_per_s": bit_per_s}) for link in spec.cluster.links)
    cluster = ClusterSpec.model_validate(spec.cluster.model_dump() | {"links": [dict(one) for one in links]})
    workload = spec.workload.model_copy(update={"new_tokens": new_tokens})
    return spec.model_copy(update={"cluster": cluster, "workload": workload})


def _is_predicted(spec: RunSpec) -> bool:
    return predict(spec).outcome.kind == "finished"
