"""How long an operation takes on a device, and how much it moves: the very same object in both worlds.

An operation is a list of kernels (matrix products, attention products, element-wise passes). Three
compute models turn kernels into seconds (FLOPs / rate alone is a wrong device model: skinny products
run at a fraction of the peak and read all weights):

flops      FLOPs / flop_per_s: the papers' arithmetic.
roofline   max(FLOPs / (flop_per_s · e), bytes / memory_byte_per_s) + op_overhead_s per kernel, with the
           shape-dependent efficiency e = rows / (rows + half_rows) of a product with that many rows.
measured   this host's measured time of the kernel × measured_scale (a `HostProfile`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.cluster import ComputeModel, DeviceSpec
from engine.errors import SpecError
from engine.values import Positive, Value


@dataclass(frozen=True, slots=True)
class Kernel:
    """One pass over data. A product is [rows, inner] × [inner, cols], `count` of them."""

    kind: Literal["product", "elementwise"]
    rows: int
    inner: int
    cols: int
    count: int
    element_bytes: int

    @property
    def flops(self) -> int:
        if self.kind == "product":
            return 2 * self.count * self.rows * self.inner * self.cols
        return self.count * self.rows * self.cols

    @property
    def bytes(self) -> int:
        """Operands read once plus result written once."""
        rows, inner, cols = self.rows, self.inner, self.cols
        elements = rows * inner + inner * cols + rows * cols if self.kind == "product" else 2 * rows * cols
        return self.count * elements * self.element_bytes


def product(rows: int, inner: int, cols: int, element_bytes: int, count: int = 1) -> Kernel:
    return Kernel("product", rows, inner, cols, count, element_bytes)


def elementwise(rows: int, cols: int, element_bytes: int, count: int = 1) -> Kernel:
    return Kernel("elementwise", rows, 1, cols, count, element_bytes)


class MeasuredRow(Value):
    """Seconds per FLOP of products with `rows` rows, and of element-wise passes per element."""

    rows: Positive
    s_per_flop: Positive


class HostProfile(Value):
    """What `calibrate` measured on one host, one thread per device process."""

    host: str
    products: tuple[MeasuredRow, ...]
    elementwise_s_per_element: Positive
    op_overhead_s: Positive
    memory_byte_per_s: Positive


def total_flops(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.flops for kernel in kernels)


def total_bytes(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.bytes for kernel in kernels)


def op_time_s(
    device: DeviceSpec,
    kernels: Sequence[Kernel],
    profile: HostProfile | None = None,
    override: ComputeModel | None = None,
) -> float:
    """Virtual seconds of an operation on `device`; kernels without work take none.

    Raises `SpecError` if the model is "measured" and no profile is given.
    """
    model = override or device.compute_model
    busy = [kernel for kernel in kernels if kernel.flops]
    if model == "flops":
        return total_flops(busy) / device.flop_per_s
    if model == "roofline":
        return sum(_roofline_s(device, kernel) for kernel in busy)
    if profile is None:
        raise SpecError(
            f"{device.name}: compute_model is measured and this host has no profile: run ./loom calibrate."
        )
    return device.measured_scale * sum(measured_s(profile, kernel) for kernel in busy)


def _roofline_s(device: DeviceSpec, kernel: Kernel) -> float:
    efficiency = kernel.rows / (kernel.rows + device.half_rows) if kernel.kind == "product" else 1.0
    compute_s = kernel.flops / (device.flop_per_s * efficiency)
    return max(compute_s, kernel.bytes / device.memory_byte_per_s) + device.op_overhead_s


def measured_s(profile: HostProfile, kernel: Kernel) -> float:
    """Seconds of a kernel on the host of `profile`, interpolated between its rows."""
    if kernel.kind == "elementwise":
        return kernel.flops * profile.elementwise_s_per_element + profile.op_overhead_s
    table = profile.products
    at = bisect_left([row.rows for row in table], kernel.rows)
    if at == 0 or at == len(table):
        per_flop = table[min(at, len(table) - 1)].s_per_flop
    else:
        low, high = table[at - 1], table[at]
        share = (kernel.rows - low.rows) / (high.rows - low.rows)
        per_flop = low.s_per_flop + share * (high.s_per_flop - low.s_per_flop)
    return kernel.flops * per_flop + profile.op_overhead_s
