"""HostProfile: tables of the times that one host takes for matrix products and element-wise passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import product as combinations
from typing import Annotated, Self

from pydantic import Field, model_validator

from engine.domain.command_name import COMMAND
from engine.domain.interpolation import neighbours
from engine.domain.rates import FormatBits, format_bits
from engine.domain.values import Name, NonNegative, Positive, Value

ATTENTION, LOOKUP = "attention", "lookup"


class MeasuredRow(Value):
    """Seconds per FLOP of products [rows, inner] × [inner, cols], beyond the overhead of a kernel."""

    rows: Positive
    s_per_flop: Positive
    inner: Positive = 1024.0
    cols: Positive = 1024.0


class PackedRow(MeasuredRow):
    """The same where the matrix is in `bits` bits: the runtime reads it as it is for a row or a few, and
    restores it first for more, which is in the time.
    """

    bits: FormatBits


class MeasuredPass(Value):
    """An element-wise pass of one name: seconds per call and per element.

    The pass "attention" is the overhead of attention beyond its two products, whose times include the
    softmax.
    """

    name: Name
    overhead_s: NonNegative
    s_per_element: NonNegative


class CallCosts(Value):
    """Seconds of calls in a model whose hidden rows have `width` numbers, beside the times of the tables.

    A layer of a model w wide has some 12·w² weights. Where they do not fit in the nearest caches, each pass
    over them leaves neither code nor small tensors there, and every call takes several times as long as in a
    loop: an operation, a product, one with a matrix in 8 or 4 bits (`packed_s`), the passes of attention, a
    look-up of tokens, any other pass.
    """

    width: Positive
    operation_s: NonNegative = 0.0
    product_s: NonNegative = 0.0
    packed_s: NonNegative = 0.0
    attention_s: NonNegative = 0.0
    lookup_s: NonNegative = 0.0
    pass_s: NonNegative = 0.0


class RuntimeCosts(Value):
    """What the runtime of one device process costs on this host, at native speed: fields of `DeviceSpec`.

    `in_runs` says how many times as long operations take in a run as the tables say, which are of processor
    time in passes: what the host gives to others, and all that a run does beside, is in it.
    `turn_frac` is the time in which a computing device looks for messages, per second of its operations.
    `message_work_frac` is the share of a message's costs for which its thread works; the rest it only waits.
    `wakeup_s` is how much longer a message takes that finds its core idle, and what is computed after it,
    where there are more devices than the host's `cores` (0: not known), which sleep in place of polling.
    `link_byte_s` is the work of the host's cores for each byte that an emulated link carries, while it does:
    copies, packets, the switch.
    `slowdown[k - 1]` says how many times as long an operation takes while k devices of this host compute at
    once: they share cores, caches and memory. More devices than measured share the cores further.
    """

    dispatch_s: NonNegative = 0.0
    handover_s: NonNegative = 0.0
    token_s: NonNegative = 0.0
    in_runs: Positive = 1.0
    turn_frac: NonNegative = 0.0
    send_s: NonNegative = 0.0
    receive_s: NonNegative = 0.0
    byte_s: NonNegative = 0.0
    message_work_frac: float = Field(default=0.0, ge=0, le=1)
    wakeup_s: NonNegative = 0.0
    link_byte_s: NonNegative = 0.0
    cores: int = Field(default=0, ge=0)
    slowdown: tuple[Annotated[float, Field(ge=1)], ...] = ()

    @property
    def operation_scale(self) -> float:
        """How many times as long as by the tables an operation occupies a device."""
        return self.in_runs * (1.0 + self.turn_frac)

    def core_of(self, rank: int, workers: Sequence[int]) -> int | None:
        """The core to which the process of device `rank` is bound (`shares_evenly`), None: to none."""
        if rank not in workers or not shares_evenly(len(workers), self.cores):
            return None
        return list(workers).index(rank) % self.cores

    def wakeup_of(self, workers: int) -> float:
        """Seconds for a device to wake up where so many compute."""
        return self.wakeup_s if 0 < self.cores < workers else 0.0

    def slowdown_of(self, computing: int) -> float:
        """How many times as long an operation takes while `computing` devices, itself included, compute."""
        known = len(self.slowdown)
        if computing <= 1 or not known:
            return 1.0
        return self.slowdown[min(computing, known) - 1] * max(1.0, computing / known)


def shares_evenly(workers: int, cores: int) -> bool:
    """Whether so many processes are bound to cores, one after the other: each has one, or all cores have as
    many. A single process may use all cores, and where some cores had more processes than others, the kernel
    moves them better.
    """
    return 1 < workers <= cores or (0 < cores < workers and workers % cores == 0)


ALONE_FRAC = 0.95
"""A round of measuring that had a core for less of its time was made beside other work: what shares the core
with it also takes its caches.
"""


class HostProfile(Value):
    """The times that `calibrate` measured on one host, with one thread.

    `products` are those with weights; `attention` is scores, softmax and values together, per FLOP of the
    two products (empty: like `products`). `packed` are those with weights in 8 or 4 bits (none of a format:
    like `products`). All are full grids over rows, inner and cols. `passes` are known by name; others take
    `elementwise_s_per_element`. `call_s` is paid once per operation. `calls`, by width, come on top of all
    these. `core_frac` is the least part of its time for which a round of measuring had a core.
    """

    host: str
    products: tuple[MeasuredRow, ...]
    elementwise_s_per_element: Positive
    op_overhead_s: Positive
    memory_byte_per_s: Positive
    attention: tuple[MeasuredRow, ...] = ()
    packed: tuple[PackedRow, ...] = ()
    passes: tuple[MeasuredPass, ...] = ()
    call_s: NonNegative = 0.0
    runtime: RuntimeCosts = RuntimeCosts()
    calls: tuple[CallCosts, ...] = ()
    core_frac: float = Field(default=1.0, ge=0, le=1, exclude_if=lambda frac: frac == 1.0)

    @property
    def caution(self) -> str:
        """What is to be said beside figures that come from it; "" if nothing."""
        if self.core_frac >= ALONE_FRAC:
            return ""
        return (
            "This host's calibration was made beside other work, with a core for "
            f"{self.core_frac:.0%} of its time: run {COMMAND} calibrate again when there is less."
        )

    @model_validator(mode="after")
    def _grids(self) -> Self:
        for table in (self.products, self.attention):
            if table:
                Grid(table)
        _ = self._packed
        return self

    @property
    def packed_bits(self) -> tuple[FormatBits, ...]:
        """The formats of `packed`."""
        return tuple(self._packed)

    def knows(self, weight_bits: float) -> bool:
        """Whether products with weights of so many bits each are in `packed`."""
        return weight_bits > 0 and format_bits(weight_bits) in self._packed

    def product_s(
        self, name: str, rows: int, inner: int, cols: int, count: int, weight_bits: float = 0.0
    ) -> float:
        """Seconds of `count` products [rows, inner] × [inner, cols], the latter in `weight_bits` bits."""
        flops = 2 * count * rows * inner * cols
        if name == ATTENTION and self.attention:
            # scores (wide × seen) and values (seen × wide) have the same cost
            wide, seen = sorted((inner, cols))
            return flops * self._attention.s_per_flop(rows, wide, seen) + self.op_overhead_s
        grid = self._packed[format_bits(weight_bits)] if self.knows(weight_bits) else self._products
        return flops * grid.s_per_flop(rows, inner, cols) + self.op_overhead_s

    def pass_s(self, name: str, elements: int) -> float:
        """Seconds of an element-wise pass."""
        known = self._passes.get(name)
        if known is None:
            return elements * self.elementwise_s_per_element + self.op_overhead_s
        return elements * known.s_per_element + known.overhead_s

    def calls_at(self, width: float) -> CallCosts:
        """What calls cost at `width`: linear in its logarithm between the points of `calls`, constant beyond
        the ends, nothing without points.
        """
        if width not in self._calls_known:
            self._calls_known[width] = self._calls_between(width)
        return self._calls_known[width]

    def _calls_between(self, width: float) -> CallCosts:
        points = {point.width: point for point in self.calls}
        widths = sorted(points)
        shares = neighbours(widths, width) if points else ()
        costs = {
            field: sum(share * getattr(points[widths[at]], field) for at, share in shares)
            for field in CallCosts.model_fields
            if field != "width"
        }
        return CallCosts(width=width, **costs)

    @cached_property
    def _calls_known(self) -> dict[float, CallCosts]:
        return {}

    @cached_property
    def _products(self) -> Grid:
        return Grid(self.products)

    @cached_property
    def _attention(self) -> Grid:
        return Grid(self.attention)

    @cached_property
    def _packed(self) -> dict[FormatBits, Grid]:
        formats = dict.fromkeys(row.bits for row in self.packed)
        return {bits: Grid([row for row in self.packed if row.bits == bits]) for bits in formats}

    @cached_property
    def _passes(self) -> dict[str, MeasuredPass]:
        return {item.name: item for item in self.passes}


class Grid:
    """Seconds per FLOP between the points of a table: linear in the logarithms, constant beyond the ends."""

    def __init__(self, table: Sequence[MeasuredRow]):
        """A table by rows, inner and cols. Raises `ValueError` unless every combination is there once."""
        self.axes = tuple(sorted({point[axis] for point in map(_place, table)}) for axis in range(3))
        self.logs = {_place(row): math.log(row.s_per_flop) for row in table}
        if len(self.logs) != len(table) or len(table) != math.prod(len(axis) for axis in self.axes):
            raise ValueError(
                f"{len(table)} measured products are no full grid over rows, inner and cols: calibrate again"
            )
        self.known: dict[tuple[int, int, int], float] = {}

    def s_per_flop(self, rows: int, inner: int, cols: int) -> float:
        place = (rows, inner, cols)
        if place not in self.known:
            ends = [
                [(axis[at], share) for at, share in neighbours(axis, value)]
                for axis, value in zip(self.axes, place, strict=True)
            ]
            total = 0.0
            for corner in combinations(*ends):
                (low, a), (middle, b), (high, c) = corner
                total += a * b * c * self.logs[low, middle, high]
            self.known[place] = math.exp(total)
        return self.known[place]


def _place(row: MeasuredRow) -> tuple[float, float, float]:
    return row.rows, row.inner, row.cols
