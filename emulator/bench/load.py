"""Operations of one length, over and over, on many devices that share this host's cores: is time kept?"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.bench.chart import Chart, lines
from emulator.bench.devices import Devices
from emulator.bench.rows import Table
from emulator.calls import call
from engine.cli.command import Environment
from engine.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.cost import total_flops
from engine.dilation import OP_HOST_S
from engine.models import catalogue
from engine.models.ops import Block
from engine.network import LoopbackNetwork
from engine.tensors import Meta
from engine.trace import Mark, Span
from engine.units import human_s

if TYPE_CHECKING:
    from engine.worlds.real import RealDevice

DEVICES = (1, 2, 4, 8, 16)
LOAD = 0.75  # of all cores, or of one where one device cannot use more
OPERATIONS = (("demo-lm", 34), ("minilm", 64), ("bert-base", 128), ("bert-large", 200))
"""Models and rows of one layer: from less than a millisecond to fifty."""

RUN_S = 3.0  # wall
MIN_COUNT = 12


class Paced(NamedTuple):
    """Of all devices: seconds an operation takes on this host, the runtime's share included, and was paced
    to; elapsed / target - 1 of each device's run (mean and largest); how late results were handed on (95 %);
    fraction of operations that counts as late.
    """

    devices: int
    host_s: float
    target_s: float
    off_mean: float
    off_max: float
    late_p95_s: float
    late_frac: float


def measure_load(environment: Environment) -> Table:
    runs = [(*operation, count) for operation in OPERATIONS for count in DEVICES]
    return load_table([Paced(*call(paced, *run)) for run in runs])


def load_table(results: Sequence[Paced]) -> Table:
    rows = [
        (
            human_s(item.host_s), str(item.devices), human_s(item.target_s), f"{item.off_mean:+.2%}",
            f"{item.off_max:+.2%}", human_s(max(0.0, item.late_p95_s)), f"{item.late_frac:.1%}",
        )
        for item in results
    ]
    title = (
        f"Layers of four models, computed over and over at {LOAD:.0%} load of the cores (of one core with a "
        "single device). Off: elapsed against target over all operations of a device, mean and worst device. "
        "Lateness: of the moment at which a result is handed on, after its deadline, 95 %."
    )
    columns = ("takes here", "devices", "paced to", "off, mean", "off, worst", "lateness", "late operations")
    lengths = [human_s(results[at].host_s) for at in range(0, len(results), len(DEVICES))]
    points = [
        (f"operations of {lengths[index // len(DEVICES)]}", float(item.devices), abs(item.off_max))
        for index, item in enumerate(results)
    ]
    chart = Chart(
        "Pacing: elapsed against target, worst device", "devices", "", lines(points), lambda x: f"{x:g}",
        lambda y: f"{y:.2%}",
    )
    return Table(title, columns, tuple(rows), chart)


def paced(name: str, rows: int, devices: int) -> Paced:
    """Every device computes a layer of model `name` on so many rows, back to back."""
    import torch

    model, _ = catalogue.resolve(name, "random")
    op, meta = Block(0), Meta((1, rows, model.hidden_size), model.dtype)
    host_s = _alone_s(name, rows) + OP_HOST_S  # as the choice of a dilation reckons
    cores = len(os.sched_getaffinity(0))
    target_s = host_s * max(devices / cores, 1.0) / LOAD
    count = max(MIN_COUNT, round(RUN_S / target_s))
    flops = total_flops(op.cost(model, (meta,), 0).kernels)
    cluster = _cluster(devices, flops / target_s)

    async def program(ctx: RealDevice) -> None:
        x = torch.randn(meta.shape)
        for _ in range(count):
            await ctx.compute(op, x)
            handed.append(ctx.clock.virtual(time.monotonic()) - ctx.now_s)

    handed: list[float] = []

    def tell(device: RealDevice, trace: list[Span | Mark]) -> list[Any]:
        spans = [item for item in trace if isinstance(item, Span)]
        stats = device.compute_pacer.stats()
        return [(spans[-1].end_s - spans[0].start_s) / (count * target_s) - 1, handed, stats.late / count]

    told = Devices(
        LoopbackNetwork(cluster), cluster, 1.0, program, tell, model=name, needs=op.slices(model)
    ).run()
    lateness = [value for _, values, _ in told for value in values]
    off = [value for value, _, _ in told]
    return Paced(
        devices, host_s, target_s, statistics.fmean(off), max(off, key=abs),
        statistics.quantiles(lateness, n=20)[-1], statistics.fmean(late for _, _, late in told),
    )


def _alone_s(name: str, rows: int) -> float:
    """Seconds of the same operation, measured in the same way, on a host that does nothing else."""
    import torch

    from emulator.operations import random_weights
    from emulator.stopwatch import typical_s
    from engine.models import arithmetic

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
            name=f"n{rank}", flop_per_s=flop_per_s, memory_bytes=1e12, memory_byte_per_s=1e12,
            compute_model="flops",
        )
        for rank in range(count)
    )
    links = tuple(LinkSpec(a="n0", b=device.name, bit_per_s=1e9) for device in devices[1:])
    return ClusterSpec(name="load", source="n0", devices=devices, links=links)
