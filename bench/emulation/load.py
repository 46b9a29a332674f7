"""Measures how exactly operations are paced while many devices share this host's cores."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.emulation.devices import Devices
from bench.tables.chart import Chart, lines
from bench.tables.rows import Table
from emulator.session.calls import call
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.network import LoopbackNetwork
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s
from engine.models import catalogue
from engine.ops.core import Block
from engine.ops.kernels import total_flops
from engine.ops.tensors import Meta
from engine.worlds.real.dilation import OP_HOST_S

if TYPE_CHECKING:
    from engine.worlds.real.device import RealDevice

DEVICES = (1, 2, 4, 8, 16)
LOAD = 0.75  # of all cores, or of one where one device cannot use more
OPERATIONS = (("demo-lm", 34), ("minilm", 64), ("bert-base", 128), ("bert-large", 200))
"""What is timed, as models and rows of one layer: from less than a millisecond to fifty."""

RUN_S = 3.0  # wall
MIN_COUNT = 12
LOAD_TOLERANCE, ATTEMPTS = 0.03, 8
PARTS, PEAK_LOAD = 4, 0.85
"""Parts of a run, and the highest load of any of them: above it, this machine itself was slowed by other
load.
"""


class Paced(NamedTuple):
    """What an operation took on all devices: processor seconds of an operation on a host that does nothing
    else, and in this run, the runtime's share included; wall seconds it was paced to; load of the cores that
    this made, in all and in the busiest of `PARTS` parts; elapsed / target - 1 of each device's run (mean and
    largest); debt of batches of operations relative to their time (mean and 95 %); fraction of operations
    that counts as late.
    """

    devices: int
    alone_s: float
    host_s: float
    target_s: float
    load: float
    peak_load: float
    off_mean: float
    off_max: float
    error_mean: float
    error_p95: float
    late_frac: float


def measure_load() -> Table:
    runs = [(*operation, count) for operation in OPERATIONS for count in DEVICES]
    return load_table([Paced(*call(paced, *run)) for run in runs])


def load_table(results: Sequence[Paced]) -> Table:
    rows = [
        (
            human_s(item.alone_s),
            str(item.devices),
            human_s(item.host_s),
            human_s(item.target_s),
            f"{item.load:.0%}",
            f"{item.peak_load:.0%}",
            f"{item.off_mean:+.2%}",
            f"{item.off_max:+.2%}",
            f"{item.error_mean:.2%}",
            f"{item.error_p95:.2%}",
            f"{item.late_frac:.1%}",
        )
        for item in results
    ]
    title = (
        f"Layers of four models, computed over and over at {LOAD:.0%} load of the cores (of one core with a "
        "single device): paced so that the processor time of all devices comes out at that, and (peak) in no "
        f"part at more than {PEAK_LOAD:.0%}, if {ATTEMPTS} attempts allow. Off: elapsed against target over "
        "all operations of a device, mean and worst device. Error: how far a device is behind its schedule "
        "after each 10 ms or longer operation, relative to that time, mean and 95 %."
    )
    columns = (
        "alone",
        "devices",
        "takes here",
        "paced to",
        "load",
        "peak",
        "off, mean",
        "off, worst",
        "error, mean",
        "error, 95 %",
        "late operations",
    )
    lengths = [human_s(results[at].alone_s) for at in range(0, len(results), len(DEVICES))]
    points = [
        (f"operations of {lengths[index // len(DEVICES)]}", float(item.devices), abs(item.off_max))
        for index, item in enumerate(results)
    ]
    chart = Chart(
        "Pacing: elapsed against target, worst device",
        "devices",
        "",
        lines(points),
        lambda x: f"{x:g}",
        lambda y: f"{y:.2%}",
    )
    return Table(title, columns, tuple(rows), chart)


def paced(name: str, rows: int, devices: int) -> Paced:
    """Every device computes a layer of model `name` on so many rows, back to back.

    The time of an operation depends on what runs beside it, so the target is adjusted until the load is
    right. If it never is, the attempt that came nearest counts.
    """
    alone_s = _alone_s(name, rows)
    cores = min(devices, len(os.sched_getaffinity(0)))
    host_s = alone_s + OP_HOST_S
    tried: list[Paced] = []
    while len(tried) < ATTEMPTS:
        result = _paced_to(name, rows, devices, alone_s, host_s * devices / cores / LOAD)
        if abs(result.load - LOAD) <= LOAD_TOLERANCE and result.peak_load <= PEAK_LOAD:
            return result
        tried.append(result)
        host_s = statistics.median(item.host_s for item in tried)
    return min(tried, key=lambda item: abs(item.load - LOAD) + max(0.0, item.peak_load - PEAK_LOAD))


def _paced_to(name: str, rows: int, devices: int, alone_s: float, target_s: float) -> Paced:
    import torch

    model, _ = catalogue.resolve(name, "random")
    op, meta = Block(0), Meta((1, rows, model.hidden_size), model.dtype)
    count = max(MIN_COUNT, round(RUN_S / target_s))
    flops = total_flops(op.cost(model, (meta,), 0).kernels)
    cluster = _cluster(devices, flops / target_s)
    parts = {part * count // PARTS for part in range(PARTS)}

    async def program(ctx: RealDevice) -> None:
        x = torch.randn(meta.shape)
        for done in range(count):
            if done in parts:
                spent_s.append(time.process_time())
            await ctx.compute(op, x)
        spent_s.append(time.process_time())

    spent_s: list[float] = []

    def summarise(device: RealDevice, trace: list[Span | Mark]) -> list[Any]:
        spans = [item for item in trace if isinstance(item, Span)]
        stats = device.compute_pacer.stats()
        elapsed_s = spans[-1].end_s - spans[0].start_s
        used_s = [stop - start for start, stop in pairwise(spent_s)]
        return [elapsed_s, used_s, stats.errors, stats.late / count]

    results = Devices(
        LoopbackNetwork(cluster), cluster, 1.0, program, summarise, model=name, needs=op.slices(model)
    ).run()
    off = [elapsed_s / (count * target_s) - 1 for elapsed_s, _, _, _ in results]
    used_s = [sum(part) for part in zip(*(used_s for _, used_s, _, _ in results), strict=True)]
    errors = [error for _, _, errors, _ in results for error in errors]
    cores = min(devices, len(os.sched_getaffinity(0)))
    available_s = cores * max(elapsed_s for elapsed_s, _, _, _ in results)
    return Paced(
        devices,
        alone_s,
        sum(used_s) / (devices * count),
        target_s,
        sum(used_s) / available_s,
        max(used_s) * PARTS / available_s,
        statistics.fmean(off),
        max(off, key=abs),
        statistics.fmean(errors),
        statistics.quantiles(errors, n=20)[-1],
        statistics.fmean(late for _, _, _, late in results),
    )


def _alone_s(name: str, rows: int) -> float:
    """Seconds of the same operation on this host without other devices."""
    import torch

    from emulator.calibration.operations import random_weights
    from emulator.calibration.stopwatch import typical_s
    from engine.ops.torch_kernels import dispatch as arithmetic

    torch.set_num_threads(1)
    store, op = random_weights(name), Block(0)
    for piece in op.slices(store.model):
        store.load(piece)
    with torch.inference_mode():
        x = torch.randn(1, rows, store.model.hidden_size)
        return typical_s(lambda: arithmetic.run(op, store.model, store, {}, (x,)))


def _cluster(count: int, flop_per_s: float) -> ClusterSpec:
    devices = tuple(
        DeviceSpec(
            name=f"n{rank}",
            flop_per_s=flop_per_s,
            memory_bytes=1e12,
            memory_byte_per_s=1e12,
            compute_model="flops",
        )
        for rank in range(count)
    )
    links = tuple(LinkSpec(a="n0", b=device.name, bit_per_s=1e9) for device in devices[1:])
    return ClusterSpec(name="load", source="n0", devices=devices, links=links)
