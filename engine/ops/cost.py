"""Computes how long an operation takes on a device and how many bytes it moves. Both worlds use it.

An operation is a list of kernels (matrix products, attention products, element-wise passes). Four compute
models turn kernels into seconds (FLOPs / rate alone is wrong: products with few rows run at a fraction of the
peak rate and read all weights):

flops      FLOPs / flop_per_s: the papers' arithmetic.
roofline   max(FLOPs / (rate · e), bytes / memory rate) + op_overhead_s per kernel. The rates are flop_per_s
           and memory_byte_per_s, or for a product those of the format of its weights, if the device states
           them (`format_rates`); e is its table of `efficiencies`, or rows / (rows + half_rows) with the
           half_rows of the format or the device.
serial     as roofline, but FLOPs and bytes take turns: their times add up (microcontrollers).
measured   this host's measured time of the kernel × measured_scale (a `HostProfile`, `host_times.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from engine.domain.cluster import ComputeModel, DeviceSpec
from engine.domain.command_name import COMMAND
from engine.domain.efficiency import efficiency
from engine.domain.errors import SpecError
from engine.domain.host_times import ATTENTION, LOOKUP, CallCosts, HostProfile
from engine.domain.model import ModelSpec
from engine.domain.rates import FormatRate, format_bits
from engine.ops.sizes import STORED_BITS

INLINE_FLOPS = 200_000
"""FLOPs below which an operation runs in the main thread of a paced device: passing them to the compute
thread costs more.
"""

NATIVE_INLINE_FLOPS = 100_000_000
"""The same at native speed, where the main thread also computes what takes a few milliseconds: no other
message is due to the microsecond then, and passing the operation on and its result back costs a twelfth of a
decode step.
"""


@dataclass(slots=True, unsafe_hash=True)
class Kernel:
    """One pass over data. A product is [rows, inner] × [inner, cols], `count` of them.

    `name` names passes whose times differ between hosts: a norm, an activation, or "attention" for scores,
    softmax and values, which hosts fuse into one kernel. Only the compute model `measured` uses it.

    `weight_bits`: the matrix, inner × cols, is stored in so many bits per number, scales included; 0: as the
    other operands are. A device that states rates for such weights reads them as they are. Any other restores
    them first, which is an element-wise pass with `weight_bits`, and reads the restored ones.

    `inside`: it has no call of its own, but is computed within that of a product or of a whole part of a
    layer. Only `measured` uses that, too.

    Not frozen, because that takes three times as long to make; nobody changes one. `product` and
    `elementwise` give the same object for the same arguments: from one token to the next, few kernels of a
    layer change.
    """

    kind: Literal["product", "elementwise"]
    rows: int
    inner: int
    cols: int
    count: int
    element_bytes: int
    name: str = ""
    weight_bits: float = 0.0
    inside: bool = False

    @property
    def flops(self) -> int:
        if self.kind == "product":
            return 2 * self.count * self.rows * self.inner * self.cols
        return self.count * self.rows * self.cols

    @property
    def bytes(self) -> int:
        """Operands read once, restored if they are quantised, plus result written once."""
        rows, inner, cols = self.rows, self.inner, self.cols
        elements = rows * inner + inner * cols + rows * cols if self.kind == "product" else 2 * rows * cols
        return self.count * elements * self.element_bytes

    @property
    def stored_bytes(self) -> int:
        """The bytes of a product that reads its weights as they are stored."""
        if not self.weight_bits:
            return self.bytes
        beside = self.rows * (self.inner + self.cols) * self.element_bytes
        return self.count * (beside + round(self.inner * self.cols * self.weight_bits / 8))


@lru_cache(maxsize=16384)
def product(
    rows: int,
    inner: int,
    cols: int,
    element_bytes: int,
    count: int = 1,
    name: str = "",
    weight_bits: float = 0.0,
    inside: bool = False,
) -> Kernel:
    return Kernel("product", rows, inner, cols, count, element_bytes, name, weight_bits, inside)


@lru_cache(maxsize=16384)
def elementwise(
    rows: int,
    cols: int,
    element_bytes: int,
    count: int = 1,
    name: str = "",
    weight_bits: float = 0.0,
    inside: bool = False,
) -> Kernel:
    return Kernel("elementwise", rows, 1, cols, count, element_bytes, name, weight_bits, inside)


def weighted(
    model: ModelSpec, rows: int, inner: int, cols: int, count: int = 1, inside: bool = False
) -> Kernel:
    """The product of `rows` rows with weights of `model`, in the format in which it has them."""
    bits = STORED_BITS.get(model.weight_bits, model.weight_bits)
    return product(rows, inner, cols, model.element_bytes, count, "", bits, inside)


def total_flops(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.flops for kernel in kernels)


def total_bytes(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.bytes for kernel in kernels)


def embedding_kernels(model: ModelSpec, rows: int) -> tuple[Kernel, ...]:
    """Look-up of `rows` token ids, and the passes over them that the family adds."""
    added = (model.positions == "learned") + (model.token_types > 0)
    scaled = model.embedding_scale is not None
    names = ("lookup", *["scale"] * scaled, *["add"] * added, *[model.norm] * model.embedding_norm)
    return tuple(elementwise(rows, model.hidden_size, model.element_bytes, name=name) for name in names)


def norm_kernels(
    model: ModelSpec, rows: int, where: Literal["pre", "post"], inside: bool = False
) -> tuple[Kernel, ...]:
    """The norm before a part, or the one after its sum, if the family has it."""
    if not (model.norm_position == "pre" if where == "pre" else model.norms_sums):
        return ()
    return (elementwise(rows, model.hidden_size, model.element_bytes, 1, model.norm, 0.0, inside),)


def attention_kernels(
    model: ModelSpec, layer: int, rows: range, keys: int, count: int, inside: bool = False
) -> tuple[Kernel, ...]:
    """Scores, softmax and values of `count` heads: queries at positions `rows` over the first `keys` keys.

    A layer with a sliding window reads the keys from the first one that the first query sees. Scores that
    are capped are no longer what hosts compute in one go.
    """
    seen, wide, size = keys - model.first_key(layer, rows.start), model.head_dim, model.element_bytes
    if model.score_softcap is None:
        return (
            product(len(rows), wide, seen, size, count, ATTENTION, 0.0, inside),
            elementwise(len(rows), seen, size, count, ATTENTION, 0.0, inside),
            product(len(rows), seen, wide, size, count, ATTENTION, 0.0, inside),
        )
    return (
        product(len(rows), wide, seen, size, count),
        elementwise(len(rows), seen, size, count, "softcap"),
        elementwise(len(rows), seen, size, count, "softmax"),
        product(len(rows), seen, wide, size, count),
    )


def position_kernels(
    model: ModelSpec, layer: int, rows: int, heads: int, keys: int, inside: bool = False
) -> tuple[Kernel, ...]:
    """Norms and rotary positions of `heads` projected queries and `keys` keys per row, if the layer has
    them.
    """
    size, width = model.element_bytes, (heads + keys) * model.head_dim
    norms = (elementwise(rows, width, size, name="rmsnorm"),) if model.qk_norm else ()
    turned = (heads + keys) * model.rotary_dim
    turns = (elementwise(rows, turned, size, 1, "rope", 0.0, inside),) if model.rope_of(layer) else ()
    return (*norms, *turns)


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
    """Virtual seconds of an operation on `device`; kernels without work take none.

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
    kernels_s = sum(measured_s(profile, kernel) + _call_s(calls, kernel) for kernel in busy)
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
    if row and kernel.weight_bits and row.bits == format_bits(kernel.weight_bits):
        if kernel.kind == "elementwise":  # the device multiplies by the weights as they are stored
            return KernelTime(kernel, 0.0, 0, 0)
        moved = kernel.stored_bytes
    computing_s = _flops_s(device, kernel, flops, row)
    moving_s = moved / (device.memory_byte_per_s * (row.memory_frac if row else 1.0))
    bound_s = computing_s + moving_s if serial else max(computing_s, moving_s)
    return KernelTime(kernel, bound_s + device.op_overhead_s, flops, moved)


def _format(device: DeviceSpec, kernel: Kernel) -> FormatRate | None:
    """What `device` states of the format of the weights, else of the numbers that they are restored to."""
    if not device.format_rates or (kernel.kind != "product" and not kernel.weight_bits):
        return None
    stored = device.format_rate(format_bits(kernel.weight_bits)) if kernel.weight_bits else None
    if kernel.kind != "product":
        return stored
    return stored or device.format_rate(format_bits(8 * kernel.element_bytes))


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
    if device.efficiencies:
        reached = efficiency(device.efficiencies, kernel.rows, min(kernel.inner, kernel.cols))
    else:
        half_rows = device.half_rows if row is None or row.half_rows is None else row.half_rows
        reached = kernel.rows / (kernel.rows + half_rows)
    return flops / (rate * reached)


def width_of(kernels: Sequence[Kernel]) -> int:
    """The numbers of a hidden row in an operation of `kernels`: what its first product with weights takes in,
    or its first pass.
    """
    products = (kernel.inner for kernel in kernels if kernel.kind == "product" and kernel.name != ATTENTION)
    return next(products, kernels[0].cols)


def _call_s(calls: CallCosts, kernel: Kernel) -> float:
    """Seconds that `calls` add to a kernel; the two products of attention are one call with its passes."""
    if kernel.inside:
        return 0.0
    if kernel.kind == "product":
        return 0.0 if kernel.name == ATTENTION else calls.product_s
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
