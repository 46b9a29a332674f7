"""Computes how long an operation takes on a device and how many bytes it moves. Both worlds use it.

An operation is a list of kernels (`kernels.py`). Four compute models turn kernels into seconds (FLOPs / rate
alone is wrong: products with few rows run at a fraction of the peak rate and read all weights):

flops      FLOPs / flop_per_s: the papers' arithmetic.
roofline   max(FLOPs / (rate · e), bytes / memory rate) + op_overhead_s per kernel. The rates are flop_per_s
           and memory_byte_per_s, or for a product those of the format of its weights: stated
           (`format_rates`), or, of 8 and 4 bits, assumed (`assumed_rate` in `engine/domain/rates.py`).
           Weights are read as they are stored. e is rows / (rows + half_rows) with the half_rows of the
           format, or the device's table of `efficiencies`, or its own half_rows.
serial     as roofline, but FLOPs and bytes take turns: their times add up (microcontrollers).
measured   this host's measured time of the kernel × measured_scale (a `HostProfile`, `host_times.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.cluster import ComputeModel, DeviceSpec
from engine.domain.command_name import COMMAND
from engine.domain.efficiency import efficiency
from engine.domain.errors import SpecError
from engine.domain.host_times import ATTENTION, LOOKUP, CallCosts, HostProfile
from engine.domain.rates import FormatRate
from engine.ops.kernels import Kernel, total_bytes, total_flops

INLINE_FLOPS = 200_000
"""FLOPs below which an operation runs in the main thread of a paced device: passing them to the compute
thread costs more.
"""

NATIVE_INLINE_FLOPS = 100_000_000
"""The same at native speed, where the main thread also computes what takes a few milliseconds: no other
message is due to the microsecond then, and passing the operation on and its result back costs a twelfth of a
decode step.
"""


class KernelTime(NamedTuple):
    """Virtual seconds of a kernel on a device, its FLOPs and its bytes."""

    kernel: Kernel
    time_s: float
    flops: int
    bytes: int


class OpTime(NamedTuple):
    """Virtual seconds of an operation, and the FLOPs and bytes of its kernels."""

    time_s: float
    flops: int
    bytes: int


def op_time_s(
    device: DeviceSpec,
    kernels: Sequence[Kernel],
    profile: HostProfile | None = None,
    override: ComputeModel | None = None,
) -> float:
    """Virtual seconds of an operation on `device`; kernels without work take none. `override` is a compute
    model in place of the device's.

    Raises `SpecError` if the model is "measured" and no profile is given.
    """
    return op_time(device, kernels, profile, override).time_s


def op_time(
    device: DeviceSpec,
    kernels: Sequence[Kernel],
    profile: HostProfile | None = None,
    override: ComputeModel | None = None,
    before: list[KernelTime] | None = None,
) -> OpTime:
    """Virtual seconds of an operation on `device`, as `op_time_s`, with its FLOPs and bytes.

    before: the kernels of the last call for the same operation on the same device, which this call replaces
    by its own. What has not changed since is not computed again.
    """
    model = override or device.compute_model
    if model in ("roofline", "serial"):
        return _bounded_time(device, kernels, model == "serial", [] if before is None else before)
    flops, moved = total_flops(kernels), total_bytes(kernels)
    if model == "flops":
        return OpTime(flops / device.flop_per_s, flops, moved)
    if profile is None:
        raise SpecError(
            f"{device.name}: compute_model is measured and this host is not calibrated: run {COMMAND} "
            "calibrate, or choose another compute model."
        )
    busy = [kernel for kernel in kernels if kernel.flops]
    if not busy:
        return OpTime(0.0, flops, moved)
    calls = profile.calls_at(width_of(busy))
    kernels_s = sum(measured_s(profile, kernel) + _call_s(profile, calls, kernel) for kernel in busy)
    return OpTime(device.measured_scale * (profile.call_s + calls.operation_s + kernels_s), flops, moved)


def _bounded_time(
    device: DeviceSpec, kernels: Sequence[Kernel], serial: bool, before: list[KernelTime]
) -> OpTime:
    """The models of two bounds. Every step of a prediction comes through here."""
    if len(before) != len(kernels):
        before[:] = [_kernel_time(device, kernel, serial) for kernel in kernels]
    total_s, flops, moved = 0.0, 0, 0
    for index, kernel in enumerate(kernels):
        known = before[index]
        if known[0] is not kernel:
            known = before[index] = _kernel_time(device, kernel, serial)
        total_s += known[1]
        flops += known[2]
        moved += known[3]
    return OpTime(total_s, flops, moved)


def _kernel_time(device: DeviceSpec, kernel: Kernel, serial: bool) -> KernelTime:
    flops = kernel.flops
    if not flops:
        return KernelTime(kernel, 0.0, flops, kernel.bytes)
    row, moved = _format(device, kernel), kernel.bytes
    if kernel.weight_bits:
        if kernel.kind == "elementwise":  # the device multiplies by the weights as they are stored
            return KernelTime(kernel, 0.0, 0, 0)
        moved = kernel.stored_bytes
    computing_s = _flops_s(device, kernel, flops, row)
    moving_s = moved / (device.memory_byte_per_s * (row.memory_frac if row else 1.0))
    bound_s = computing_s + moving_s if serial else max(computing_s, moving_s)
    return KernelTime(kernel, bound_s + device.op_overhead_s, flops, moved)


def _format(device: DeviceSpec, kernel: Kernel) -> FormatRate | None:
    """The rates of a product with weights of the kernel's format; None: the device's own numbers."""
    if kernel.kind != "product" or not (kernel.weight_bits or device.format_rates):
        return None
    return device.rate_of(kernel.weight_bits or 8 * kernel.element_bytes)


def hands_over(flops: int, paced: bool) -> bool:
    """Whether a device's main thread gives an operation of so many FLOPs to its compute thread."""
    return flops >= (INLINE_FLOPS if paced else NATIVE_INLINE_FLOPS)


def runtime_s(device: DeviceSpec, flops: int) -> float:
    """Virtual seconds that the runtime of `device`, at its native speed, adds to an operation of so many
    FLOPs.
    """
    return device.dispatch_s + (device.handover_s if hands_over(flops, paced=False) else 0.0)


def flops_s(device: DeviceSpec, kernel: Kernel) -> float:
    """Seconds of a kernel's FLOPs. Passes over data run at the peak rate."""
    return _flops_s(device, kernel, kernel.flops, _format(device, kernel))


def _flops_s(device: DeviceSpec, kernel: Kernel, flops: int, row: FormatRate | None) -> float:
    if kernel.kind != "product":
        return flops / device.flop_per_s
    rate = row.flop_per_s if row else device.flop_per_s
    own = row.half_rows if row else None
    if device.efficiencies and own is None:
        reached = efficiency(device.efficiencies, kernel.rows, min(kernel.inner, kernel.cols))
    else:
        reached = kernel.rows / (kernel.rows + (device.half_rows if own is None else own))
    return flops / (rate * reached)


def width_of(kernels: Sequence[Kernel]) -> int:
    """The numbers of a hidden row in an operation of `kernels`: what its first product with weights takes in,
    or its first pass.
    """
    products = (kernel.inner for kernel in kernels if kernel.kind == "product" and kernel.name != ATTENTION)
    return next(products, kernels[0].cols)


def _call_s(profile: HostProfile, calls: CallCosts, kernel: Kernel) -> float:
    """Seconds that `calls` add to a kernel; the two products of attention are one call with its passes."""
    if kernel.inside:
        return 0.0
    if kernel.kind == "product":
        if kernel.name == ATTENTION:
            return 0.0
        return calls.packed_s if profile.knows(kernel.weight_bits) else calls.product_s
    if profile.knows(kernel.weight_bits):  # restores weights, which is in the time of their product
        return 0.0
    if kernel.name == ATTENTION:
        return calls.attention_s
    return calls.lookup_s if kernel.name == LOOKUP else calls.pass_s


def measured_s(profile: HostProfile, kernel: Kernel) -> float:
    """Seconds of a kernel on the host of `profile`, without what the calls of an operation add."""
    bits = kernel.weight_bits
    if kernel.kind == "product":
        return profile.product_s(kernel.name, kernel.rows, kernel.inner, kernel.cols, kernel.count, bits)
    if kernel.inside or profile.knows(bits):  # the time of the product has it, as that of restoring weights
        return 0.0
    return profile.pass_s(kernel.name, kernel.flops)
