"""Times messages between real devices over emulated links.

Compares them with size / bandwidth + delay, and the rates of several flows with max-min fair shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.emulation.devices import Devices
from bench.tables.chart import Chart, lines
from bench.tables.rows import Table
from emulator.session.calls import call
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.trace import Mark, Span
from engine.domain.units import human, human_s, transfer_s
from engine.worlds.simulated.flows import max_min_rates

if TYPE_CHECKING:
    from engine.worlds.real.device import RealDevice

RATES = ((1e6, 1.0), (10e6, 1.0), (100e6, 1.0), (1e9, 4.0))
"""Virtual bit/s, and the dilation at which this machine carries them."""

SIZES = (4 << 10, 64 << 10, 1 << 20, 8 << 20)
DELAYS = ((0.0, 0.0), (0.02, 0.0), (0.02, 1e-6))
"""Delays and jitters of links: the least jitter makes a relay do the delay, where there is no netem."""

BUDGET_S = 3.0  # virtual, of one size
LONGEST_S = 9.0  # of one message
REPEATS = 7
FLOW_BYTES, FLOWS_S = 32 << 10, 4.0

SHARING = (
    ("3 flows into one port", {"n0": 40e6, "n1": 40e6, "n2": 40e6, "sink": 20e6}),
    ("a slow one among them", {"n0": 4e6, "n1": 40e6, "n2": 40e6, "sink": 20e6}),
    ("two slow ones", {"n0": 2e6, "n1": 5e6, "n2": 40e6, "sink": 20e6}),
)
"""Stars, given by the rate of each device's link: all others send to `sink`, all the time."""


class Message(NamedTuple):
    """Messages of one size over a path: the ideal time and the measured ones, sorted. Virtual s."""

    bit_per_s: float
    delay_s: float
    backend: str
    size_bytes: int
    ideal_s: float
    took_s: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Median time / ideal time."""
        return self.took_s[len(self.took_s) // 2] / self.ideal_s


class SharedFlow(NamedTuple):
    """One of several concurrent flows: its max-min fair share and its measured rate, virtual bit/s."""

    case: str
    flow: str
    share_bit_per_s: float
    got_bit_per_s: float


def single_flows() -> list[Message]:
    return [
        Message(rate, delay_s, backend, size, ideal_s, tuple(took_s))
        for delay_s, jitter_s in DELAYS
        for rate, dilation in RATES
        for backend, size, ideal_s, took_s in call(one_flow, rate, dilation, delay_s, jitter_s)
    ]


def shared_flows() -> list[SharedFlow]:
    return [SharedFlow(case, *item) for case, rates in SHARING for item in call(flows_at_once, rates)]


def messages_table(messages: Sequence[Message]) -> Table:
    rows = [
        (
            item.backend,
            human(item.bit_per_s, "bit/s"),
            human_s(item.delay_s),
            human(item.size_bytes, "B"),
            human_s(item.ideal_s),
            f"{item.ratio:.4f}",
            f"{item.took_s[0] / item.ideal_s:.3f}…{item.took_s[-1] / item.ideal_s:.3f}",
        )
        for item in messages
    ]
    title = (
        "One message at a time from device to device over a switch, as strategies see it: the median against "
        "fixed cost + size / bandwidth + delay, and the range. 1 Gbit/s at D = 4, the others at D = 1."
    )
    points = [
        (f"{human(item.bit_per_s, 'bit/s')}, {item.backend}", float(item.size_bytes), item.ratio - 1)
        for item in messages
    ]
    chart = Chart(
        "Messages: time against ideal, median",
        "size",
        "",
        lines(points),
        lambda x: human(x, "B"),
        lambda y: f"{y:+.1%}",
    )
    return Table(title, ("back end", "rate", "delay", "size", "ideal", "ratio", "range"), tuple(rows), chart)


def sharing_table(flows: Sequence[SharedFlow]) -> Table:
    rows = [
        (
            item.case,
            item.flow,
            human(item.share_bit_per_s, "bit/s"),
            human(item.got_bit_per_s, "bit/s"),
            f"{item.got_bit_per_s / item.share_bit_per_s - 1:+.1%}",
        )
        for item in flows
    ]
    title = f"Messages of {human(FLOW_BYTES, 'B')} without a pause, several flows into one switch port."
    return Table(title, ("", "flow", "max-min share", "got", "off"), tuple(rows))


def measure_messages() -> Table:
    return messages_table(single_flows())


def measure_sharing() -> Table:
    return sharing_table(shared_flows())


def star(rates: dict[str, float], **more: float) -> ClusterSpec:
    """Devices by name, each with a link of its rate to one switch."""
    devices = tuple(
        DeviceSpec(name=name, flop_per_s=1e9, memory_bytes=1e9, memory_byte_per_s=1e9) for name in rates
    )
    links = tuple(LinkSpec(a=name, b="hub", bit_per_s=rate, **more) for name, rate in rates.items())
    return ClusterSpec(
        name="bench", source=devices[0].name, devices=devices, switches=(SwitchSpec(name="hub"),), links=links
    )


def one_flow(rate: float, dilation: float, delay_s: float, jitter_s: float) -> list[tuple[Any, ...]]:
    """Times of single messages: (back end, size, ideal, seconds sorted) of every size, from n0 to n1,
    answered with nothing.
    """
    from emulator.network.mininet_network import MininetNetwork

    cluster = star({"n0": rate, "n1": rate}, delay_s=delay_s / 2, jitter_s=jitter_s)
    sizes = list(_repeated(rate))

    async def program(ctx: RealDevice) -> None:
        import torch

        other = 1 - ctx.rank
        for index, size in enumerate(sizes):
            if ctx.rank == 0:
                ctx.send(torch.empty(size // 4), other, f"m{index}")
                await ctx.recv(other, f"a{index}")
            else:
                await ctx.recv(other, f"m{index}")
                await ctx.send(torch.empty(0), other, f"a{index}")

    with MininetNetwork(cluster, dilation) as network:
        received = Devices(network, cluster, dilation, program, _received, [(0, 1), (1, 0)]).run()
        backend = network.backend
    results = []
    for size in dict.fromkeys(sizes):
        took = sorted(end - start for _, payload, start, end, _ in received[1] if payload == size)
        whole = next(sent for sent, payload, *_ in received[1] if payload == size)
        ideal_s = cluster.devices[0].message_overhead_s + transfer_s(whole, rate) + delay_s
        results.append((backend, size, ideal_s, took))
    return results


def _repeated(rate: float) -> Iterator[int]:
    """Every size that is not too long, as often as the budget allows."""
    for size in SIZES:
        ideal_s = transfer_s(size, rate)
        if ideal_s <= LONGEST_S:
            yield from [size] * max(1, min(REPEATS, int(BUDGET_S / ideal_s)))


def flows_at_once(rates: dict[str, float]) -> list[tuple[str, float, float]]:
    """Rates of streams at once: (flow, share, got) of every device's stream of messages to the last one."""
    from emulator.network.mininet_network import MininetNetwork

    cluster = star(rates)
    sink = len(rates) - 1

    async def program(ctx: RealDevice) -> None:
        import torch

        if ctx.rank == sink:
            for src in range(sink):
                ctx.spawn(_drain(ctx, src))
            return
        number, sent = 0, []
        while ctx.now_s < FLOWS_S:
            sent.append(ctx.send(torch.empty(FLOW_BYTES // 4), sink, "flow"))
            number += 1
            if len(sent) > 2:
                await sent.pop(0)
        for handle in sent:
            await handle
        await ctx.send(torch.empty(0), sink, "flow")

    with MininetNetwork(cluster, 1.0) as network:
        pairs = [(src, sink) for src in range(sink)]
        received = Devices(network, cluster, 1.0, program, _received, pairs).run()[sink]
    paths = [tuple((hop.link, hop.forward) for hop in cluster.path(src, sink)) for src in range(sink)]
    shares = max_min_rates(paths, lambda way: cluster.links[way[0]].rate(way[1]))
    begin_s, end_s = FLOWS_S / 4, FLOWS_S
    return [
        (
            device.name,
            share,
            _bit_per_s([item for item in received if item[4] == device.name], begin_s, end_s),
        )
        for device, share in zip(cluster.devices[:sink], shares, strict=True)
    ]


async def _drain(ctx: RealDevice, src: int) -> None:
    while (await ctx.recv(src, "flow")).numel():
        continue


def _bit_per_s(spans: Sequence[Any], begin_s: float, end_s: float) -> float:
    """The rate of the bytes that arrived between the first arrival after `begin_s` and the last before
    `end_s`.
    """
    arrived = sorted((end, sent) for sent, _, _, end, _ in spans if begin_s <= end <= end_s)
    return float(sum(sent for _, sent in arrived[1:]) * 8 / (arrived[-1][0] - arrived[0][0]))


def _received(device: RealDevice, trace: list[Span | Mark]) -> list[Any]:
    """The messages that a device got: (bytes, payload bytes, sent, arrived, from), virtual seconds."""
    return [
        (span.bytes, span.payload_bytes, span.start_s, span.end_s, span.peer)
        for span in trace
        if isinstance(span, Span) and span.kind == "recv"
    ]
