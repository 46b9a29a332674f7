"""ClusterSpec: the devices, switches and links of a cluster, and the paths between its devices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal

from pydantic import Field, field_validator, model_validator

from engine.domain.efficiency import Efficiency, check_grid
from engine.domain.errors import SpecError
from engine.domain.links import Hop, LinkSpec, Routes
from engine.domain.rates import (
    Basis,
    FamilyRate,
    FormatBits,
    FormatRate,
    assumed_rate,
    format_bits,
)
from engine.domain.values import Name, NonNegative, Positive, Value

__all__ = [
    "Basis",
    "ClusterSpec",
    "ComputeModel",
    "DeviceSpec",
    "FamilyRate",
    "FormatRate",
    "Hop",
    "LinkSpec",
    "SwitchSpec",
    "complaints",
]

ComputeModel = Literal["roofline", "serial", "measured", "flops"]


class DeviceSpec(Value):
    """One edge device: a worker computes, a terminal only asks (`role`). `compute_model` is how its times are
    worked out: flops, roofline, serial, or measured ones of this host. Rates are per second, sizes in bytes;
    `source` says where the numbers are from.
    """

    name: Name
    title: str = ""
    role: Literal["worker", "terminal"] = "worker"
    flop_per_s: Positive = Field(description="Peak FLOP/s of this device (fp32).")
    memory_bytes: Positive = Field(description="Memory for weights, KV cache and activations.")
    reserved_bytes: NonNegative = Field(
        default=0.0,
        description="Part of memory that the operating system keeps: plans and runs have the rest.",
        exclude_if=lambda size: not size,
    )
    memory_byte_per_s: Positive = Field(description="Memory bandwidth, byte/s.")
    on_chip_weight_bytes: Positive | None = Field(
        default=None,
        description="Part of memory for weights of layers on chip, whatever the method; others are off chip. "
        "Empty: all of it.",
    )
    tile_memory_bytes: Positive | None = Field(
        default=None,
        description="Memory beside the cores, in which products are computed tile by tile (L1), byte; empty: "
        "not stated.",
        exclude_if=lambda size: size is None,
    )
    disk_byte_per_s: Positive = Field(default=200e6, description="Rate at which weights load, byte/s.")
    disk: str = Field(
        default="",
        max_length=40,
        description="Kind of the disk, by its name among the presets; empty: not stated.",
        exclude_if=lambda disk: not disk,
    )
    staging_byte_per_s: Positive | None = Field(
        default=None, description="Copy rate between accelerator and network stack, byte/s; empty: no cost."
    )
    message_overhead_s: NonNegative = Field(
        default=100e-6, description="Fixed cost of sending one message, s."
    )
    receive_overhead_s: NonNegative = Field(
        default=0.0, description="Fixed cost of receiving one message, s."
    )
    byte_overhead_s: NonNegative = Field(
        default=0.0, description="Cost of each byte of a message that this device sends or receives, s."
    )
    op_overhead_s: NonNegative = Field(default=20e-6, description="Fixed cost of one kernel, s.")
    dispatch_s: NonNegative = Field(
        default=0.0, description="Fixed cost of one operation, which is several kernels, in the runtime, s."
    )
    token_s: NonNegative = Field(
        default=0.0, description="Fixed cost of choosing a token at the source, after it is given out, s."
    )
    handover_s: NonNegative = Field(
        default=0.0, description="Cost of giving an operation to the compute thread and taking its result, s."
    )
    half_rows: NonNegative = Field(
        default=0.5,
        description="Rows at which a matrix product reaches half of the peak rate, where memory does not "
        "bind it: what its kernels fill and pack, in rows.",
    )
    format_rates: tuple[FormatRate, ...] = Field(
        default=(),
        description="Rates of products by the bits of their weights; none: flop_per_s and all of memory.",
    )
    family_rates: tuple[FamilyRate, ...] = Field(
        default=(), description="FLOP/s with models of these families, in place of flop_per_s."
    )
    efficiencies: tuple[Efficiency, ...] = Field(
        default=(),
        description="Share of the peak rate by rows and width of a matrix product; empty: by half_rows.",
    )
    compute_model: ComputeModel = "roofline"
    measured_scale: Positive = Field(default=1.0, description="`measured`: host time × this factor.")
    watts: NonNegative = Field(default=0.0, description="Power while computing, W.")
    price_usd: NonNegative | None = Field(
        default=None,
        description="Price, US dollars; empty: not stated.",
        exclude_if=lambda price: price is None,
    )
    price_source: str = Field(
        default="",
        description="Where the price is from, and when it was asked.",
        exclude_if=lambda source: not source,
    )
    j_per_memory_byte: NonNegative = Field(default=0.0, description="Energy of a byte from memory, J.")
    j_per_disk_byte: NonNegative = Field(default=0.0, description="Energy of a byte from disk, J.")
    node: Name | Literal[""] = Field(
        default="",
        description="The board that this device is, by its name on the page Machines; empty: a drawn one.",
        exclude_if=lambda node: not node,
    )
    source: str = ""
    basis: Basis | None = Field(default=None, description="What the rates are; empty: not stated.")
    assumed_efficiency: Positive | None = Field(
        default=None, le=1, description="flop_per_s as a share of the data sheet's peak, if basis is that."
    )

    @property
    def usable_bytes(self) -> float:
        """Memory that plans and runs have: all but what the operating system keeps."""
        return self.memory_bytes - self.reserved_bytes

    @property
    def basis_in_words(self) -> str:
        """What the rates are, with the efficiency that a data sheet's row assumes."""
        if self.assumed_efficiency is None:
            return self.basis or "not stated"
        return f"{self.basis}, {self.assumed_efficiency:.0%} of its peak assumed"

    def for_family(self, family: str) -> DeviceSpec:
        """The device as models of `family` find it: with the rate of its row in `family_rates`, if any."""
        for row in self.family_rates:
            if row.family == family:
                return self.model_copy(update={"flop_per_s": row.flop_per_s, "family_rates": ()})
        return self

    def format_rate(self, bits: FormatBits) -> FormatRate | None:
        """The rates of products with weights of `bits` bits, None if this device states none."""
        return next((row for row in self.format_rates if row.bits == bits), None)

    def rate_of(self, weight_bits: float) -> FormatRate | None:
        """The rates of products with weights of `weight_bits` bits each, assumed where this device states
        none for quantised ones; None: its own numbers.
        """
        bits = format_bits(weight_bits)
        # what few rows reach of a table of efficiencies, memory allows: of a serial device, arithmetic does
        table = None if self.compute_model == "serial" else math.inf
        own = table if self.efficiencies else self.half_rows
        return self.format_rate(bits) or assumed_rate(bits, self.flop_per_s, self.memory_byte_per_s, own)

    @model_validator(mode="after")
    def _states_its_efficiency(self) -> DeviceSpec:
        if (self.basis == "data sheet") != (self.assumed_efficiency is not None):
            raise ValueError(
                "basis and assumed_efficiency disagree: give assumed_efficiency, a share of the peak FLOP/s, "
                'with basis "data sheet" and with no other'
            )
        return self

    @model_validator(mode="after")
    def _leaves_memory(self) -> DeviceSpec:
        if self.reserved_bytes >= self.memory_bytes:
            raise ValueError(
                f"reserved_bytes {self.reserved_bytes:g} is not below memory_bytes {self.memory_bytes:g}: "
                "leave memory for the model"
            )
        return self

    @field_validator("format_rates")
    @classmethod
    def _one_each(cls, rows: tuple[FormatRate, ...]) -> tuple[FormatRate, ...]:
        for bits, count in Counter(row.bits for row in rows).items():
            if count > 1:
                raise ValueError(f"weights of {bits} bits are there {count} times: state their rates once")
        return rows

    @field_validator("efficiencies")
    @classmethod
    def _complete(cls, points: tuple[Efficiency, ...]) -> tuple[Efficiency, ...]:
        check_grid(points)
        return points


class SwitchSpec(Value):
    """A switch; it forwards at the rate of its links."""

    name: Name


class ClusterSpec(Value):
    """A whole cluster. `source` is the device that holds the prompt and receives the result; `description` is
    for people.

    Raises `ValueError` (pydantic) on duplicate names, unknown ends, links to the same node, two links of one
    name, or a device that cannot reach the others; `complaints` lists all of these.
    """

    name: Name
    title: str = ""
    description: str = ""
    source: Name
    devices: tuple[DeviceSpec, ...] = Field(min_length=1)
    switches: tuple[SwitchSpec, ...] = ()
    links: tuple[LinkSpec, ...] = ()

    @field_validator("devices")
    @classmethod
    def _one_worker(cls, devices: tuple[DeviceSpec, ...]) -> tuple[DeviceSpec, ...]:
        if all(device.role == "terminal" for device in devices):
            raise ValueError("every device is a terminal: at least one must have role worker")
        return devices

    @model_validator(mode="after")
    def _consistent(self) -> ClusterSpec:
        for _, complaint in complaints(self):
            raise ValueError(complaint)
        return self

    @property
    def workers(self) -> tuple[int, ...]:
        """Ranks of the devices that may compute layers, in order."""
        return tuple(rank for rank, device in enumerate(self.devices) if device.role == "worker")

    @property
    def first_alike(self) -> tuple[int, ...]:
        """For each device, the first that is equal but for name, node and price: it is as fast."""
        said = {"name": "", "node": "", "price_usd": None, "price_source": ""}
        nameless = [device.model_copy(update=said) for device in self.devices]
        return tuple(nameless.index(device) for device in nameless)

    def without(self, ranks: Iterable[int]) -> ClusterSpec:
        """The same cluster with devices `ranks` as terminals, which compute nothing. Routes do not change."""
        _ = self._routes, self._ranks  # made before the copy, which shares them
        devices = list(self.devices)
        for rank in ranks:
            devices[rank] = devices[rank].model_copy(update={"role": "terminal"})
        return self.model_copy(update={"devices": tuple(devices)})

    @property
    def source_rank(self) -> int:
        """Rank of the device that holds the prompt and receives the result."""
        return self.rank(self.source)

    def rank(self, name: str) -> int:
        """Rank (index) of a device; raises `SpecError` for an unknown name."""
        likely = self._ranks.get(name, len(self.devices))  # of the original, in a copy with other devices
        if likely < len(self.devices) and self.devices[likely].name == name:
            return likely
        for rank, device in enumerate(self.devices):
            if device.name == name:
                return rank
        known = ", ".join(device.name for device in self.devices)
        raise SpecError(f"cluster {self.name} has no device {name}: it has {known}.")

    def link_index(self, name: str) -> int:
        """Index of the link called `a--b` or `b--a`, or `a--b--2`; raises `SpecError` for an unknown one."""
        for index, link in enumerate(self.links):
            if name in link.names:
                return index
        known = ", ".join(link.name for link in self.links)
        raise SpecError(f"cluster {self.name} has no link {name}: it has {known}.")

    def path(self, src: int, dst: int) -> tuple[Hop, ...]:
        """Directed links from rank `src` to rank `dst`: fewest hops, then least seconds per bit."""
        at, goal, hops = self.devices[src].name, self.devices[dst].name, []
        while at != goal:
            at, hop = self.next_hop(at, goal)
            hops.append(hop)
        return tuple(hops)

    def delay_s(self, src: int, dst: int) -> float:
        """One-way delay of the path from rank `src` to rank `dst`, s."""
        return sum(self.links[hop.link].delay(hop.forward) for hop in self.path(src, dst))

    def next_hop(self, at: str, goal: str) -> tuple[str, Hop]:
        """The next node and link for a packet at `at` to device `goal`. Devices forward packets like
        switches.
        """
        return self._routes.next_hop(at, goal)

    def carries(self, link: int, forward: bool) -> bool:
        """Whether routes use this direction of a link (`forward`: a→b): all but slower ones of parallel links
        do.
        """
        spec = self.links[link]
        src, dst = (spec.a, spec.b) if forward else (spec.b, spec.a)
        return self.next_hop(src, dst)[1] == Hop(link=link, forward=forward)

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {device.name: rank for rank, device in enumerate(self.devices)}

    @cached_property
    def _routes(self) -> Routes:
        return Routes(self.links)


def complaints(cluster: ClusterSpec) -> Iterator[tuple[str, str]]:
    """What is wrong between the parts of a cluster: the path of a part, and a sentence.

    The parts themselves are valid. Whether devices reach each other is only asked when the rest is in order.
    """
    names = [device.name for device in cluster.devices] + [switch.name for switch in cluster.switches]
    known, found = set(names), False
    for name in sorted(name for name, count in Counter(names).items() if count > 1):
        found = True
        yield "", f"the name {name} is used twice: names must differ"
    if cluster.source not in {device.name for device in cluster.devices}:
        found = True
        yield "source", f"source is {cluster.source}, which is no device: name one of them"
    seen: set[str] = set()
    for index, link in enumerate(cluster.links):
        wrong = [
            f"links[{index}] ends at {end}, which is neither device nor switch"
            for end in (link.a, link.b)
            if end not in known
        ]
        if link.a == link.b:
            wrong.append(f"links[{index}] connects {link.a} to itself: name two different ends")
        if seen & set(link.names):
            wrong.append(
                f"links[{index}] is a second link between {link.a} and {link.b} called {link.name}: "
                "keep one, or give this one another number as its `parallel`"
            )
        seen |= set(link.names)
        found = found or bool(wrong)
        yield from ((f"links[{index}]", sentence) for sentence in wrong)
    if not found:
        yield from _unreachable(cluster)


def _unreachable(cluster: ClusterSpec) -> Iterator[tuple[str, str]]:
    """One complaint for every part that is not connected with the largest one; and one about that if it is a
    single device.
    """
    parts: list[list[int]] = []
    routes, of = Routes(cluster.links), dict[str, list[int]]()
    for rank, device in enumerate(cluster.devices):
        if device.name not in of:
            part: list[int] = []
            of |= dict.fromkeys((device.name, *routes.tree(device.name)), part)
            parts.append(part)
        of[device.name].append(rank)
    if len(parts) == 1:
        return
    main = max(parts, key=lambda part: (len(part), cluster.source_rank in part))
    name = cluster.devices[main[0]].name
    for part in parts:
        if part is not main:
            first, more = cluster.devices[part[0]].name, len(part) - 1
            who = f"{first} and {more} more" if more else first
            yield f"devices[{part[0]}]", f"{who} cannot reach {name}: add a link that connects it"
    if len(main) == 1:
        yield f"devices[{main[0]}]", f"{name} cannot reach another device: add a link that connects it"
