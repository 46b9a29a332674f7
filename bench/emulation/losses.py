"""Compares the mean time of messages over links that lose packets with the prediction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.emulation.devices import SPAWNED, Devices
from bench.emulation.messages import star
from bench.tables.rows import Table
from emulator.session.calls import call
from engine.domain.cluster import ClusterSpec
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.units import human, human_s
from engine.models import catalogue
from engine.ops.tensors import Meta
from engine.strategies.single import SingleLayout
from engine.worlds.simulated.world import SimulatedWorld

if TYPE_CHECKING:
    from engine.worlds.real.device import RealDevice

SIZES = (4 << 10, 64 << 10, 1 << 20)
PREDICTIONS = 20
"""How many predicted runs, by their seeds, there are for each real one."""


class PacketLossCase(NamedTuple):
    """One case of lost packets: `pairs` of devices at once, each with a lossy link on its way there and back;
    `counts` by size.
    """

    bit_per_s: float
    delay_s: float
    loss_frac: float
    dilation: float
    pairs: int
    counts: tuple[int, ...]


CASES = (
    PacketLossCase(10e6, 0.0, 0.01, 1.0, 6, (500, 16, 3)),
    PacketLossCase(10e6, 0.0, 0.05, 1.0, 6, (400, 16, 4)),
    PacketLossCase(10e6, 0.005, 0.02, 1.0, 4, (300, 20, 4)),
    PacketLossCase(100e6, 0.0, 0.02, 1.0, 1, (2000, 300, 30)),
    PacketLossCase(100e6, 0.005, 0.01, 1.0, 1, (600, 60, 5)),
    PacketLossCase(100e6, 0.005, 0.05, 1.0, 1, (300, 40, 4)),
    PacketLossCase(100e6, 0.0, 0.02, 4.0, 3, (300, 60, 8)),
    PacketLossCase(100e6, 0.005, 0.01, 4.0, 3, (150, 20, 2)),
    PacketLossCase(100e6, 0.005, 0.05, 4.0, 3, (100, 15, 2)),
)
"""The same at D = 1 and at D = 4 where both are fast enough."""


class Lossy(NamedTuple):
    """One size of a case: virtual seconds of every message, measured and predicted."""

    case: PacketLossCase
    backend: str
    size_bytes: int
    real_s: tuple[float, ...]
    predicted_s: tuple[float, ...]

    @property
    def off(self) -> float:
        return fmean(self.predicted_s) / fmean(self.real_s) - 1

    @property
    def error_frac(self) -> float:
        """One standard error of the measured mean, of that mean."""
        return stdev(self.real_s) / sqrt(len(self.real_s)) / fmean(self.real_s)


def measure_losses() -> Table:
    return losses_table([result for case in CASES for result in compare(case)])


def compare(case: PacketLossCase) -> list[Lossy]:
    backend, real = call(real_times, *case)
    predicted = predicted_times(case, range(PREDICTIONS))
    return [
        Lossy(case, backend, size, tuple(real[index]), tuple(predicted[index]))
        for index, size in enumerate(SIZES)
    ]


def losses_table(results: Sequence[Lossy]) -> Table:
    rows = [
        (
            item.backend,
            human(item.case.bit_per_s, "bit/s"),
            human_s(item.case.delay_s),
            f"{item.case.loss_frac:.0%}",
            f"{item.case.dilation:g}",
            human(item.size_bytes, "B"),
            str(len(item.real_s)),
            f"{human_s(fmean(item.real_s))} ±{item.error_frac:.0%}",
            human_s(fmean(item.predicted_s)),
            f"{item.off:+.0%}",
        )
        for item in results
    ]
    title = (
        "One message at a time from device to device over a switch, one link of which loses packets in both "
        "directions: mean time with its standard error, and the mean of "
        f"{PREDICTIONS} predictions of the same messages."
    )
    columns = (
        "back end",
        "rate",
        "delay",
        "loss",
        "D",
        "size",
        "messages",
        "measured",
        "predicted",
        "off",
    )
    return Table(title, columns, tuple(rows))


def cluster_of(case: PacketLossCase) -> ClusterSpec:
    """Devices 0 and 1, 2 and 3, … exchange messages over one switch; links of the even ones lose packets."""
    plain = star({f"n{rank}": case.bit_per_s for rank in range(2 * case.pairs)}, delay_s=case.delay_s / 2)
    links = tuple(
        link.model_copy(update={"loss_frac": case.loss_frac}) if index % 2 == 0 else link
        for index, link in enumerate(plain.links)
    )
    return plain.model_copy(update={"links": links})


async def exchange(ctx: Any, counts: Sequence[int], make: Any) -> None:
    """Exchange messages between neighbours: even devices send, odd ones answer each with nothing;
    `make(floats)` gives a tensor.
    """
    other, number = ctx.rank ^ 1, 0
    for size, count in zip(SIZES, counts, strict=True):
        for _ in range(count):
            number += 1
            if ctx.rank % 2 == 0:
                ctx.send(make(size // 4), other, f"m{number}")
                await ctx.recv(other, f"a{number}")
            else:
                await ctx.recv(other, f"m{number}")
                await ctx.send(make(0), other, f"a{number}")


def real_times(
    bit_per_s: float, delay_s: float, loss_frac: float, dilation: float, pairs: int, counts: Sequence[int]
) -> tuple[str, list[list[float]]]:
    """Time real messages: the back end, and the seconds of all messages of each size."""
    import torch

    from emulator.network.mininet_network import MininetNetwork

    case = PacketLossCase(bit_per_s, delay_s, loss_frac, dilation, pairs, tuple(counts))
    cluster = cluster_of(case)

    async def program(ctx: RealDevice) -> None:
        await exchange(ctx, counts, lambda floats: torch.empty(floats))

    with MininetNetwork(cluster, dilation) as network:
        talking = [(rank, rank ^ 1) for rank in range(2 * pairs)]
        results = Devices(network, cluster, dilation, program, _received, talking).run()
        backend = network.backend
    return backend, by_size(item for received in results for item in received)


def predicted_times(case: PacketLossCase, seeds: Iterable[int]) -> list[list[float]]:
    """The same messages in the simulated world."""
    model, weights = catalogue.resolve(SPAWNED, "random")
    received: list[tuple[int, float]] = []
    for seed in seeds:
        spec = RunSpec(cluster=cluster_of(case), model=model, weights=weights, strategy="single", seed=seed)
        trace: list[Span | Mark] = []
        world = SimulatedWorld(
            spec, Plan(strategy="single", holdings=(), work=(), layout=SingleLayout(device=0)), trace.append
        )
        world.run(
            [
                (device.rank, exchange(device, case.counts, lambda floats: Meta((floats,))))
                for device in world.devices
            ]
        )
        received += _durations(trace)
    return by_size(received)


def by_size(received: Iterable[Sequence[float]]) -> list[list[float]]:
    times: dict[float, list[float]] = {size: [] for size in (*SIZES, 0)}
    for size, took_s in received:
        times[size].append(took_s)
    return [times[size] for size in SIZES]


def _received(device: RealDevice, trace: list[Span | Mark]) -> list[tuple[int, float]]:
    return _durations(trace)


def _durations(trace: Iterable[Span | Mark]) -> list[tuple[int, float]]:
    """The messages that arrived: (payload bytes, seconds) of each."""
    return [
        (span.payload_bytes, span.end_s - span.start_s)
        for span in trace
        if isinstance(span, Span) and span.kind == "recv"
    ]
