"""One core of this machine as a row of a cluster file: the roofline that reproduces a profile's tables."""

from __future__ import annotations

import math
import os
import statistics
import time
from itertools import product as combinations

from engine.domain.cluster import DeviceSpec
from engine.domain.efficiency import Efficiency
from engine.domain.host_times import ATTENTION, HostProfile
from engine.domain.rates import FormatBits, FormatRate, few_rows
from engine.ops.sizes import STORED_BITS

ROW_POINTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
WIDTHS = (32, 128, 384, 1024, 3072)
SHAPES = ((1, 1), (1, 4), (4, 1))
"""A layer's matrices as multiples of their smaller side: of attention, and of the feed-forward part."""

PEAK_WIDTH = 128
"""The width from which on products show the peak rate. Narrower ones take hardly longer than their call, so
that their own rate is not known well.
"""

TRAFFIC_BYTES = 8
"""An element-wise pass reads and writes 4 bytes per element."""


def device_row(profile: HostProfile, disk_byte_per_s: float) -> DeviceSpec:
    """One core of this machine as a device whose efficiencies are those of `profile`'s products.

    The memory rate is that of element-wise passes, or of the fastest reading of a matrix if that is faster:
    what products lose to memory is in their efficiencies. What messages cost is not known yet
    (`emulator/session/link_messages.py`).
    """
    rates = {
        (rows, width): _product_flop_per_s(profile, rows, width)
        for rows, width in combinations(ROW_POINTS, WIDTHS)
    }
    peak = max(rate for (_, width), rate in rates.items() if width >= PEAK_WIDTH)
    # one row: 2 FLOPs per element of 4 bytes
    reading = max(rate * 2 for (rows, width), rate in rates.items() if rows == 1 and width >= PEAK_WIDTH)
    memory_byte_per_s = _short(max(reading, TRAFFIC_BYTES / profile.elementwise_s_per_element))
    calls_s = _kernel_call_s(profile)
    runtime = profile.runtime
    return DeviceSpec(
        name="this-machine",
        title=f"{profile.host}, one core",
        flop_per_s=_short(peak / (1 + runtime.turn_frac)),
        memory_bytes=float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        memory_byte_per_s=memory_byte_per_s,
        disk_byte_per_s=_short(disk_byte_per_s),
        op_overhead_s=_short(calls_s),
        dispatch_s=_short(runtime.dispatch_s),
        handover_s=_short(runtime.handover_s),
        token_s=_short(runtime.token_s),
        efficiencies=tuple(
            Efficiency(
                rows=rows, width=width, frac=min(1.0, max(1e-4, round(rate / peak, 4))), basis="measured"
            )
            for (rows, width), rate in rates.items()
        ),
        measured_scale=1 + round(runtime.turn_frac, 4),
        format_rates=tuple(_packed_rate(profile, bits, memory_byte_per_s) for bits in profile.packed_bits),
        basis="calibrated",
        source=f"measured with EdgeLoom's calibrate on {time.strftime('%Y-%m-%d')}, one thread, float32",
    )


def _packed_rate(profile: HostProfile, bits: FormatBits, memory_byte_per_s: float) -> FormatRate:
    """What products with weights in `bits` bits reach: of one row by the bytes read, of many by the FLOPs.

    The share of the memory rate is small, because unpacking a number takes longer than reading it.
    """
    widths = [width for width in WIDTHS if width >= PEAK_WIDTH]
    one_row, many = (
        max(_product_flop_per_s(profile, rows, width, bits) for width in widths)
        for rows in (1, ROW_POINTS[-1])
    )
    flop_per_s = _short(many / (1 + profile.runtime.turn_frac))
    read_byte_per_s = one_row / 2 * STORED_BITS[bits] / 8
    return FormatRate(
        bits=bits,
        flop_per_s=flop_per_s,
        memory_frac=min(1.0, round(read_byte_per_s / memory_byte_per_s, 3)),
        half_rows=few_rows(bits, flop_per_s, memory_byte_per_s, math.inf),
        basis="calibrated",
    )


def _product_flop_per_s(profile: HostProfile, rows: int, width: int, bits: float = 0.0) -> float:
    """FLOP/s of products of `rows` rows with matrices whose smaller side is `width`: their geometric mean."""
    logs = []
    for inner, cols in SHAPES:
        seconds = profile.product_s("", rows, inner * width, cols * width, 1, bits) - profile.op_overhead_s
        logs.append(math.log(2 * rows * inner * cols * width**2 / seconds))
    return math.exp(statistics.fmean(logs))


def _kernel_call_s(profile: HostProfile) -> float:
    """Fixed seconds of a kernel: the mean of a product and of every kind of pass, and of all widths."""
    passes = [item.overhead_s for item in profile.passes if item.name != ATTENTION]
    product_s = sum(point.product_s for point in profile.calls) / max(1, len(profile.calls))
    pass_s = sum(point.pass_s for point in profile.calls) / max(1, len(profile.calls))
    return statistics.fmean([profile.op_overhead_s + product_s, *(own_s + pass_s for own_s in passes)])


def _short(value: float) -> float:
    """`value` with three digits, which are more than a measurement has."""
    return float(f"{value:.3g}")
