"""ClusterSpec: the devices, switches and links of a cluster, and the paths between its devices."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal

from pydantic import Field, field_validator, model_validator

from engine.domain.efficiency import Efficiency, check_grid
from engine.domain.errors import SpecError
from engine.domain.values import Count, Fraction, Name, NonNegative, Positive, Value

ComputeModel = Literal["roofline", "serial", "measured", "flops"]
Basis = Literal["data sheet", "published measurement", "calibrated"]
"""What a device's rates are: a data sheet's times an assumed efficiency, a measurement that was published,
or what `loom calibrate` measured.
"""


class FamilyRate(Value):
    """The FLOP/s that a device reaches with models of one `family`: kernels and shapes differ."""

    family: str
    flop_per_s: Positive


class DeviceSpec(Value):
    """One edge device. Rates are per second, sizes in bytes; `source` says where the numbers are from."""

    name: Name
    title: str = ""
    role: Literal["worker", "terminal"] = "worker"
    flop_per_s: Positive = Field(description="Peak FLOP/s of this device (fp32).")
    memory_bytes: Positive = Field(description="Memory for weights, KV cache and activations.")
    memory_byte_per_s: Positive = Field(description="Memory bandwidth, byte/s.")
    on_chip_weight_bytes: Positive | None = Field(
        default=None,
        description="Part of memory for weights on chip; other weights stay off chip. Empty: all of it.",
    )
    disk_byte_per_s: Positive = Field(default=200e6, description="Rate at which weights load, byte/s.")
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
        default=24.0, description="Rows at which a matrix product reaches half of the peak rate."
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
    j_per_memory_byte: NonNegative = Field(default=0.0, description="Energy of a byte from memory, J.")
    j_per_disk_byte: NonNegative = Field(default=0.0, description="Energy of a byte from disk, J.")
    source: str = ""
    basis: Basis | None = Field(default=None, description="What the rates are; empty: not stated.")
    assumed_efficiency: Positive | None = Field(
        default=None, le=1, description="flop_per_s as a share of the data sheet's peak, if basis is that."
    )

    @property
    def basis_in_words(self) -> str:
        """What the rates are, with the efficiency that a data sheet's row assumes."""
        if self.assumed_efficiency is None:
            return self.basis or "not stated"
        return f"{self.basis}, {self.assumed_efficiency:.0%} of its peak assumed"

    def for_family(self, family: str) -> DeviceSpec:
        """This device as models of `family` find it: with the rate of its row in `family_rates`, if any."""
        for row in self.family_rates:
            if row.family == family:
                return self.model_copy(update={"flop_per_s": row.flop_per_s, "family_rates": ()})
        return self

    @model_validator(mode="after")
    def _states_its_efficiency(self) -> DeviceSpec:
        if (self.basis == "data sheet") != (self.assumed_efficiency is not None):
            raise ValueError(
                "basis and assumed_efficiency disagree: give assumed_efficiency, a share of the peak FLOP/s, "
                'with basis "data sheet" and with no other'
            )
        return self

    @field_validator("efficiencies")
    @classmethod
    def _complete(cls, points: tuple[Efficiency, ...]) -> tuple[Efficiency, ...]:
        check_grid(points)
        return points


class SwitchSpec(Value):
    """A switch; it forwards at the rate of its links."""

    name: Name


class LinkSpec(Value):
    """A full-duplex link. Rate, delay and loss hold for a→b and, unless overridden, for b→a."""

    a: Name
    b: Name
    bit_per_s: Positive = Field(description="Rate a→b, bit/s.")
    reverse_bit_per_s: Positive | None = Field(default=None, description="Rate b→a, bit/s; empty: the same.")
    delay_s: NonNegative = 0.0
    jitter_s: NonNegative = 0.0
    loss_frac: Fraction = 0.0
    reverse_delay_s: NonNegative | None = Field(default=None, description="Delay b→a, s; empty: the same.")
    reverse_loss_frac: Fraction | None = Field(default=None, description="Loss b→a; empty: the same.")
    j_per_byte: NonNegative = 0.0

    @property
    def name(self) -> str:
        """`a--b`: how scenarios, reports and commands name this link."""
        return f"{self.a}--{self.b}"

    def rate(self, forward: bool) -> float:
        """bit/s a→b if `forward`, else b→a."""
        return self.bit_per_s if forward or self.reverse_bit_per_s is None else self.reverse_bit_per_s

    def delay(self, forward: bool) -> float:
        """Seconds of one-way delay a→b if `forward`, else b→a."""
        return self.delay_s if forward or self.reverse_delay_s is None else self.reverse_delay_s

    def loss(self, forward: bool) -> float:
        """Fraction of packets lost a→b if `forward`, else b→a."""
        return self.loss_frac if forward or self.reverse_loss_frac is None else self.reverse_loss_frac


class Hop(Value):
    """One directed link on a path: link index and whether it is crossed a→b."""

    link: Count
    forward: bool


class ClusterSpec(Value):
    """A whole cluster. `source` is the device that holds the prompt and receives the result.

    Raises `ValueError` (pydantic) on duplicate names, unknown ends, self links, parallel links or
    a device that cannot reach the others.
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
        names = [device.name for device in self.devices] + [switch.name for switch in self.switches]
        known = set(names)
        if len(known) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the name {twice} is used twice: names must differ")
        if self.source not in [device.name for device in self.devices]:
            raise ValueError(f"source is {self.source}, which is no device: name one of them")
        seen: set[frozenset[str]] = set()
        for index, link in enumerate(self.links):
            for end in (link.a, link.b):
                if end not in known:
                    raise ValueError(f"links[{index}] ends at {end}, which is neither device nor switch")
            if link.a == link.b:
                raise ValueError(f"links[{index}] connects {link.a} to itself: name two different ends")
            if frozenset((link.a, link.b)) in seen:
                raise ValueError(f"links[{index}] is a second link between {link.a} and {link.b}: keep one")
            seen.add(frozenset((link.a, link.b)))
        reaches_first = _Routes(self.links).tree(self.devices[0].name)
        for device in self.devices[1:]:
            if device.name not in reaches_first:
                raise ValueError(
                    f"{device.name} cannot reach {self.devices[0].name}: add a link that connects it"
                )
        return self

    @property
    def workers(self) -> tuple[int, ...]:
        """Ranks of the devices that may compute layers, in order."""
        return tuple(rank for rank, device in enumerate(self.devices) if device.role == "worker")

    def without(self, ranks: Iterable[int]) -> ClusterSpec:
        """The same cluster with devices `ranks` as terminals, which compute nothing. Routes do not change."""
        _ = self._routes, self._ranks  # made before the copy, which shares them
        devices = list(self.devices)
        for rank in ranks:
            devices[rank] = devices[rank].model_copy(update={"role": "terminal"})
        return self.model_copy(update={"devices": tuple(devices)})

    @property
    def source_rank(self) -> int:
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
        """Index of the link called `a--b` or `b--a`; raises `SpecError` for an unknown one."""
        for index, link in enumerate(self.links):
            if name in (link.name, f"{link.b}--{link.a}"):
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

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {device.name: rank for rank, device in enumerate(self.devices)}

    @cached_property
    def _routes(self) -> _Routes:
        return _Routes(self.links)


class _Routes:
    """Routes over `links` to every node, each tree of them made when it is first needed.

    Copies of a cluster share it: their routes are those of the links as drawn, whatever has changed since.
    """

    def __init__(self, links: Sequence[LinkSpec]):
        self.into: dict[str, list[tuple[str, Hop, float]]] = {}
        for index, link in enumerate(links):
            there, back = Hop(link=index, forward=True), Hop(link=index, forward=False)
            self.into.setdefault(link.b, []).append((link.a, there, link.rate(True)))
            self.into.setdefault(link.a, []).append((link.b, back, link.rate(False)))
        self.trees: dict[str, dict[str, tuple[str, Hop]]] = {}

    def next_hop(self, at: str, goal: str) -> tuple[str, Hop]:
        """The next node and link of a packet at node `at` to node `goal`."""
        return self.tree(goal)[at]

    def tree(self, goal: str) -> dict[str, tuple[str, Hop]]:
        """Next hop of every node that reaches `goal`."""
        if goal not in self.trees:
            self.trees[goal] = self._shortest(goal)
        return self.trees[goal]

    def _shortest(self, goal: str) -> dict[str, tuple[str, Hop]]:
        """Dijkstra backwards on (hops, seconds per bit, name)."""
        tree: dict[str, tuple[str, Hop]] = {}
        heap: list[tuple[int, float, str, tuple[str, Hop] | None]] = [(0, 0.0, goal, None)]
        done: set[str] = set()
        while heap:
            hops, cost, at, via = heapq.heappop(heap)
            if at in done:
                continue
            done.add(at)
            if via is not None:
                tree[at] = via
            for neighbour, hop, rate in self.into.get(at, []):
                if neighbour not in done:
                    heapq.heappush(heap, (hops + 1, cost + 1 / rate, neighbour, (at, hop)))
        return tree
