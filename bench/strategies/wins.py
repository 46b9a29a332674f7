"""Predicts and emulates every method where it is meant to win, beside the best other method there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import topologies
from bench.strategies.showcases import emulated_report
from bench.tables.rows import Table
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.errors import EdgeLoomError
from engine.domain.spec import RunSpec
from engine.domain.units import human_s
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.registry import STRATEGIES, strategy

SAME = 1.005
"""How near to the fastest method another counts as equally fast: half a percent."""


class Home(NamedTuple):
    """A run for which `strategy` is made, and `why`. `cluster` is a name or a cluster."""

    strategy: str
    cluster: str | ClusterSpec
    model: str
    workload: Workload
    why: str
    params: Mapping[str, Any] = {}


def star(
    gflop_per_s: tuple[float, ...],
    mbytes: float | tuple[float, ...],
    mbit_per_s: float,
    delay_s: float = 2e-4,
    disk_byte_per_s: float = 90e6,
) -> ClusterSpec:
    """Devices around one switch; the first has the prompt. Memory moves as many bytes as FLOPs a second."""
    sizes = mbytes if isinstance(mbytes, tuple) else (mbytes,) * len(gflop_per_s)
    devices = tuple(
        DeviceSpec(
            name=f"n{rank}",
            flop_per_s=rate * 1e9,
            memory_byte_per_s=rate * 1e9,
            memory_bytes=size * 1e6,
            disk_byte_per_s=disk_byte_per_s,
        )
        for rank, (rate, size) in enumerate(zip(gflop_per_s, sizes, strict=True))
    )
    links = tuple(
        LinkSpec(a=device.name, b="hub", bit_per_s=mbit_per_s * 1e6, delay_s=delay_s) for device in devices
    )
    return ClusterSpec(
        name=f"star-{len(devices)}",
        source="n0",
        devices=devices,
        switches=(SwitchSpec(name="hub"),),
        links=links,
    )


FOUR, THREE = (10.0,) * 4, (10.0,) * 3
STORIES = "tinyllama-42m"
SCARCE = star(THREE, 75, 10, 2e-3, 200e6)
ANSWER = Workload(prompt_tokens=32, new_tokens=8)
BURST = Workload(prompt_tokens=32, new_tokens=8, requests=3, pattern="bursty")
READING = Workload(prompt_tokens=128, new_tokens=1)
HOMES: tuple[Home, ...] = (
    Home(
        "single",
        "lab-3",
        "demo-lm",
        Workload(prompt_tokens=16, new_tokens=8),
        "the model fits, links are slow",
    ),
    Home(
        "accelerate",
        star(THREE, 120, 10, 2e-3, 200e6),
        STORIES,
        ANSWER,
        "too large for one device; maps need no profile",
    ),
    Home(
        "gpipe",
        star(FOUR, 2000, 30),
        "bert-base",
        Workload(prompt_tokens=64, new_tokens=0, requests=6, pattern="bursty"),
        "a burst on equal devices with slow links",
    ),
    Home("pipeline_offload", SCARCE, STORIES, BURST, "a burst, scarce memory, slow links"),
    Home("edgeshard", star((10, 20, 5), 100, 10, 2e-3), STORIES, ANSWER, "unequal devices, slow links"),
    Home("megatron", star((5,) * 4, 2000, 1000), STORIES, ANSWER, "equal devices, fast links, an answer"),
    Home("deepspeed", star((5,) * 4, 2000, 1000), STORIES, ANSWER, "as megatron"),
    Home(
        "galaxy",
        star((10, 8, 4, 3), 2000, 1000),
        STORIES,
        READING,
        "unequal devices, fast links, long prompt",
    ),
    Home(
        "tpi_llm",
        star((5,) * 4, 5, 1000, disk_byte_per_s=200e6),
        "mcu-tinyllama",
        Workload(prompt_tokens=8, new_tokens=4),
        "less memory than one layer",
    ),
    Home(
        "tpi_llm_offload",
        star((5,) * 4, (90, 18, 18, 18), 1000, disk_byte_per_s=400e6),
        STORIES,
        Workload(prompt_tokens=8, new_tokens=16),
        "scarce memory, fast links and disks",
    ),
    Home(
        "voltage",
        star(FOUR, 2000, 100),
        "bert-base",
        Workload(prompt_tokens=128, new_tokens=0),
        "an encoder, equal devices, 100 Mbit/s",
    ),
    Home(
        "edgeformer",
        star((2,) * 3, 110, 10, 2e-3),
        STORIES,
        READING,
        "slow devices and links, a deadline; lossy",
        {"t_max": 0.5},
    ),
    Home("lime", SCARCE, STORIES, BURST, "a burst, scarce memory, slow links"),
    Home("mcu", "mcu-8", "mcu-tinyllama", Workload(prompt_tokens=16, new_tokens=1), "chips with 8 MB"),
    Home(
        "adaptlink", star((10, 20, 5), 90, 250), STORIES, ANSWER, "a little too large for the fastest device"
    ),
    Home(
        "edge_only",
        star((10, 5), 100, 5, 1e-2),
        STORIES,
        ANSWER,
        "fits in 8 bits, very slow links; lossy",
        {"bits": "8"},
    ),
    Home(
        "cloud_only", star((2, 100), (400, 4000), 10, 5e-3), STORIES, ANSWER, "a fast server, a slow uplink"
    ),
)


def measure_wins(run: Callable[[RunSpec], float | None] | None = None) -> Table:
    """Where each method wins. `run` gives the emulated latency of a spec; None where the run is no proof."""
    run = run or _emulated_s
    rows = []
    for home in HOMES:
        sys.stderr.write(f"  {home.strategy}\n")
        own = spec_of(home, home.strategy, home.params)
        predicted = predictions(home)
        own_s, (others, other_s) = predicted.pop(home.strategy), best_of(predicted)
        other = spec_of(home, others[0], strategy(others[0]).lossless_params())
        rows.append(
            (
                home.strategy,
                f"{home.why}: {described(own)}",
                human_s(own_s),
                _shown(run(own)),
                ", ".join(others),
                human_s(other_s),
                _shown(run(other)),
                f"{other_s / own_s:.2f}x",
            )
        )
    title = (
        "The time of all requests. Best alternative: the fastest of all other methods by prediction, without "
        "loss; methods that are equally fast (within 0.5 %) are named together, and the first is emulated. A "
        "factor below 1 says that the alternative is faster."
    )
    columns = (
        "method",
        "where",
        "predicted",
        "emulated",
        "best alternative",
        "predicted",
        "emulated",
        "factor",
    )
    return Table(title, columns, tuple(rows))


def spec_of(home: Home, name: str, params: Mapping[str, Any]) -> RunSpec:
    cluster = home.cluster
    model, weights = catalogue.resolve(home.model, "random")
    return RunSpec(
        cluster=topologies.load(cluster) if isinstance(cluster, str) else cluster,
        model=model,
        weights=weights,
        strategy=name,
        workload=home.workload,
        params=dict(params),
    )


def predictions(home: Home, others: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Seconds by method: the home's own with its parameters, all others without loss and with those of
    `others` that they have. Those without a plan, or that do not finish, are missing.
    """
    found = {}
    for chosen in STRATEGIES:
        params = dict(home.params)
        if chosen.name != home.strategy:
            given = {name: one for name, one in (others or {}).items() if name in chosen.Params.model_fields}
            params = chosen.lossless_params() | given
        try:
            report = predict(spec_of(home, chosen.name, params))
        except EdgeLoomError:
            continue
        if report.outcome.kind == "finished":
            found[chosen.name] = report.latency_s
    return found


def best_of(predicted: Mapping[str, float]) -> tuple[list[str], float]:
    """The fastest methods, in the registry's order, and the least time."""
    best_s = min(predicted.values())
    return [name for name, time_s in predicted.items() if time_s <= SAME * best_s], best_s


def described(spec: RunSpec) -> str:
    """The cluster, the model and the workload in a few words."""
    cluster, work = spec.cluster, spec.workload
    size = f"{work.prompt_tokens}+{work.new_tokens} tokens"
    if work.assumed_tokens:
        size += f", planned for {work.assumed_tokens}"
    burst = f", {work.requests} at once" if work.pattern == "bursty" else ""
    name = cluster.name
    if name.startswith("star-"):
        rates = "/".join(f"{device.flop_per_s / 1e9:g}" for device in cluster.devices)
        sizes = "/".join(dict.fromkeys(f"{device.memory_bytes / 1e6:g}" for device in cluster.devices))
        link = cluster.links[0]
        name = f"{rates} GFLOP/s, {sizes} MB, {link.bit_per_s / 1e6:g} Mbit/s, {human_s(link.delay_s)}"
    return f"{name}; {spec.model.name}, {size}{burst}"


def _emulated_s(spec: RunSpec) -> float | None:
    """Emulated seconds of a run; None if it did not finish, was wrong, or its times are not valid."""
    report = emulated_report(spec)
    facts = report.correctness
    right = facts.ok or (facts.lossy and facts.ok is None)
    proved = report.outcome.kind == "finished" and right and report.fidelity.valid
    if not proved:
        why = report.outcome.sentence or facts.why or "; ".join(report.fidelity.why)
        sys.stderr.write(f"  {spec.strategy}: no figure: {why}\n")
    return report.latency_s if proved else None


def _shown(time_s: float | None) -> str:
    return "not valid" if time_s is None else human_s(time_s)
