"""Measures this machine as a device: one thread, the same operations that models run. About 10 seconds.

Gives two things. A `HostProfile` is the table behind the compute model `measured` and behind the choice
of the dilation. A `DeviceSpec` is this machine as a row for a cluster file: the roofline that fits it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from emulator.host import Calibration, host_name
from engine.cluster import DeviceSpec
from engine.cost import HostProfile, MeasuredRow

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SIZE = 1024  # inner and outer dimension of the products
MATRICES = 24  # 100 MB of them in turn, as layers are: none is still in the cache when its turn comes
ELEMENTWISE_ROWS = 128
LARGE_BYTES = 256 << 20
POINT_S = 0.4  # time spent on one figure
FIT_FROM_ROWS = 16  # below, memory bandwidth decides and says nothing about the arithmetic
DISK_BYTES = 64 << 20


def calibrate() -> Calibration:
    """Measure now. Sets torch to one thread in this process."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.inference_mode():
        overhead_s = _op_overhead_s(torch)
        table = _products(torch)
        elementwise_s = _elementwise_s(torch)
        byte_per_s = _memory_byte_per_s(torch)
    profile = HostProfile(
        host=host_name(),
        products=tuple(
            MeasuredRow(rows=rows, s_per_flop=max(1e-15, seconds - overhead_s) / (2 * rows * SIZE * SIZE))
            for rows, seconds in table
        ),
        elementwise_s_per_element=elementwise_s,
        op_overhead_s=overhead_s,
        memory_byte_per_s=byte_per_s,
    )
    return Calibration(profile, device_row(profile, _disk_byte_per_s()))


def device_row(profile: HostProfile, disk_byte_per_s: float) -> DeviceSpec:
    """This machine, one core of it, as a device with the roofline that fits `profile`."""
    flop_per_s, half_rows = fit_roofline([(row.rows, 1 / row.s_per_flop) for row in profile.products])
    return DeviceSpec(
        name="this-machine",
        title=f"{profile.host}, one core",
        flop_per_s=float(f"{flop_per_s:.3g}"),
        memory_bytes=float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        memory_byte_per_s=float(f"{profile.memory_byte_per_s:.3g}"),
        disk_byte_per_s=float(f"{disk_byte_per_s:.3g}"),
        op_overhead_s=float(f"{profile.op_overhead_s:.2g}"),
        half_rows=float(f"{half_rows:.2g}"),
        source=f"measured with loom calibrate on {time.strftime('%Y-%m-%d')}, one thread, float32",
    )


def fit_roofline(rates: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(peak FLOP/s, half_rows) of rate = peak · rows / (rows + half_rows), by least squares.

    1 / rate is linear in 1 / rows: 1 / peak + half_rows / peak · (1 / rows). Relative errors count.
    """
    points = [(1 / rows, 1 / rate) for rows, rate in rates if rows >= FIT_FROM_ROWS]
    weights = [1 / y**2 for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    above = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points, strict=True))
    below = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    slope = max(0.0, above / below)
    intercept = mean_y - slope * mean_x
    if intercept <= 0:  # still rising at the largest product: that one is the peak
        return max(rate for _, rate in rates), 0.0
    return 1 / intercept, slope / intercept


def _products(torch: Any) -> list[tuple[int, float]]:
    weights = [torch.randn(SIZE, SIZE) for _ in range(MATRICES)]
    table = []
    for rows in ROWS:
        x = torch.randn(rows, SIZE)
        turn = iter(range(1 << 30))

        def multiply(x: Any = x, turn: Any = turn) -> None:
            torch.nn.functional.linear(x, weights[next(turn) % MATRICES])

        table.append((rows, typical_s(multiply)))
    return table


def _elementwise_s(torch: Any) -> float:
    """Seconds per element of the passes between products: a residual, a norm, an activation."""
    x, y = torch.randn(ELEMENTWISE_ROWS, SIZE), torch.randn(ELEMENTWISE_ROWS, SIZE)
    weight = torch.ones(SIZE)
    passes: tuple[Callable[[], Any], ...] = (
        lambda: x + y,
        lambda: torch.nn.functional.layer_norm(x, (SIZE,), weight, weight),
        lambda: torch.nn.functional.gelu(x, approximate="tanh"),
    )
    return statistics.fmean(typical_s(work) for work in passes) / (ELEMENTWISE_ROWS * SIZE)


def _op_overhead_s(torch: Any) -> float:
    x, y = torch.randn(1, 8), torch.randn(1, 8)
    return typical_s(lambda: x + y)


def _memory_byte_per_s(torch: Any) -> float:
    """Reading: a matrix far larger than any cache times one vector."""
    matrix = torch.ones(LARGE_BYTES // 4 // SIZE, SIZE)
    vector = torch.ones(SIZE)
    return LARGE_BYTES / typical_s(lambda: torch.mv(matrix, vector))


def _disk_byte_per_s() -> float:
    """Writing through to the disk and dropping it from the cache, then reading it once."""
    block = os.urandom(1 << 20)
    with tempfile.NamedTemporaryFile(dir=Path.home()) as file:
        for _ in range(DISK_BYTES >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, DISK_BYTES, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        began_s = time.perf_counter()
        while file.read(1 << 20):
            continue
        return DISK_BYTES / (time.perf_counter() - began_s)


def typical_s(work: Callable[[], Any]) -> float:
    """Seconds of `work` when nothing disturbs: the lower quartile of its processor time, after a warm-up.

    Processor time, because others may be using this machine; batches, because the clock has a cost too.
    """
    work()
    began_s = time.perf_counter()
    work()
    batch = max(1, int(1e-3 / max(1e-9, time.perf_counter() - began_s)))
    times: list[float] = []
    end_s = time.perf_counter() + POINT_S
    while time.perf_counter() < end_s or len(times) < 4:
        began_s = time.thread_time()
        for _ in range(batch):
            work()
        times.append((time.thread_time() - began_s) / batch)
    return statistics.quantiles(times, n=4)[0]


def main() -> int:
    """In a process of its own, so that its torch threads and memory end with it."""
    sys.stdout.write(calibrate().to_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
