"""Measures how fast one thread of this machine runs the kernels of models. Takes half a minute.

The result has two parts. A `HostProfile` is the table of times for the compute model `measured` and for the
choice of the dilation. A `DeviceSpec` describes this machine in a cluster file, with the roofline that fits
the table.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.calibration.known import Calibration, host_name
from emulator.calibration.operations import TimedOperation, random_weights, time_operations, time_sequence
from emulator.calibration.residuals import TimedPrediction, compare
from emulator.calibration.roofline import fit_roofline
from emulator.calibration.timed_kernels import (
    ATTENTION_HEADS,
    FLOAT_BYTES,
    LARGE_BYTES,
    PASS_COLS,
    PASS_ROWS,
    Name,
    TimedKernels,
    pass_names,
    passes_in,
)
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import ATTENTION, HostProfile, MeasuredPass, MeasuredRow
from engine.ops.cost import Kernel, elementwise, measured_s
from engine.ops.cost import product as matrix_product

if TYPE_CHECKING:  # torch takes a while to import
    from engine.models.weights.store import WeightStore

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SIDES = (32, 128, 384, 1024, 3072)  # of the matrices
ROUNDS = 3
"""How often everything is timed, some time apart. The least counts: other processes only add time."""

SMALLEST = (
    "tiny-gpt2",
    "tiny-bert",
    "tiny-llama",
)  # models whose operations mostly take the time of calling them
DISK_BYTES = 64 << 20

Times = Mapping[Name, float]
"""Seconds of every figure of `timed_kernels.py`."""


def calibrate(
    models: Sequence[str] = (), rows: Sequence[int] = ()
) -> tuple[Calibration, list[TimedPrediction]]:
    """Measure now; time operations of `models` on `rows` rows in turn with the rest, and compare.

    The speed of a shared machine changes within minutes; measuring in turn lets it change both alike.
    Sets torch to one thread in this process.
    """
    stores = [random_weights(name) for name in models]
    profile, timed = host_profile(stores=stores, operation_rows=rows)
    found = Calibration(profile, device_row(profile, _disk_byte_per_s()))
    return found, compare(found, timed)


def host_profile(
    rows: Sequence[int] = ROWS,
    sides: Sequence[int] = SIDES,
    stores: Sequence[WeightStore] = (),
    operation_rows: Sequence[int] = (),
) -> tuple[HostProfile, list[TimedOperation]]:
    """This host's times of kernels, products on a grid of `rows` and of `sides` of the matrices.

    Also the times of the operations of the models of `stores` on `operation_rows`.
    """
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    times: dict[Name, float] = {}
    operations: dict[Name, TimedOperation] = {}
    with torch.inference_mode(), TimedKernels(torch) as kernels:
        for _ in range(ROUNDS):
            for name, figure in kernels.figures(rows, sides):
                times[name] = min(figure.seconds(), times.get(name, math.inf))
            for timed in time_operations(stores, operation_rows):
                key = (timed.model, timed.operation, timed.rows)
                operations[key] = min(timed, operations.get(key, timed), key=lambda item: item.seconds)
        tables = as_tables(times)
        passes = (*tables.passes, _attention_call(tables, kernels.crowd))
    return tables.model_copy(update={"passes": passes}), list(operations.values())


def as_tables(times: Times) -> HostProfile:
    """The profile from the times, without the cost of calling attention."""
    passes = tuple(_pass(times, name) for name in pass_names())
    return HostProfile(
        host=host_name(),
        products=tuple(_products(times)),
        elementwise_s_per_element=statistics.fmean(item.s_per_element for item in passes),
        op_overhead_s=times["call in place",],
        memory_byte_per_s=LARGE_BYTES / times["memory",],
        attention=tuple(_attention(times)),
        passes=passes,
    )


def device_row(profile: HostProfile, disk_byte_per_s: float) -> DeviceSpec:
    """This machine, one core of it, as a device with the roofline that fits `profile`."""
    fit = fit_roofline(list(_kernel_times(profile)))
    return DeviceSpec(
        name="this-machine",
        title=f"{profile.host}, one core",
        flop_per_s=float(f"{fit.flop_per_s:.3g}"),
        memory_bytes=float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        memory_byte_per_s=float(f"{fit.memory_byte_per_s:.3g}"),
        disk_byte_per_s=float(f"{disk_byte_per_s:.3g}"),
        op_overhead_s=float(f"{fit.op_overhead_s:.2g}"),
        half_rows=float(f"{fit.half_rows:.2g}"),
        source=f"measured with loom calibrate on {time.strftime('%Y-%m-%d')}, one thread, float32",
    )


def _kernel_times(profile: HostProfile) -> Iterator[tuple[Kernel, float]]:
    """The kernels of which a model's time is composed, and their times by `profile`."""
    for row in profile.products:
        if row.inner >= SIDES[1] and row.cols >= SIDES[1]:
            kernel = matrix_product(int(row.rows), int(row.inner), int(row.cols), FLOAT_BYTES)
            yield kernel, kernel.flops * row.s_per_flop + profile.op_overhead_s
    for rows in ROWS:
        kernel = elementwise(rows, PASS_COLS, FLOAT_BYTES)
        yield kernel, profile.pass_s(kernel.name, kernel.flops)


def _products(times: Times) -> Iterator[MeasuredRow]:
    for name, seconds in times.items():
        if name[0] == "product":
            yield _row(name[1:], 1, seconds - times["call",])


def _attention(times: Times) -> Iterator[MeasuredRow]:
    for name, seconds in times.items():
        if name[0] == "attention":
            # the two products share the time: each has half of the FLOPs
            yield _row(name[1:], 2 * ATTENTION_HEADS, seconds - 2 * times["call",])


def _row(sizes: Sequence[int], count: int, seconds: float) -> MeasuredRow:
    rows, inner, cols = sizes
    flops = 2 * rows * inner * cols * count
    return MeasuredRow(rows=rows, inner=inner, cols=cols, s_per_flop=max(1e-15, seconds / flops))


def _attention_call(tables: HostProfile, crowd: Callable[[], Any]) -> MeasuredPass:
    """The time of attention beyond that of its kernels in `tables`: views, RoPE tables, the KV cache."""
    surplus = []
    for name in SMALLEST:
        timed = time_sequence(random_weights(name), "parts", 1, 16, crowd)
        (attention,) = (item for item in timed if item.operation == "attention")
        # without the pass whose cost is computed here
        kernels = [k for k in attention.kernels if (k.kind, k.name) != ("elementwise", ATTENTION)]
        surplus.append(attention.seconds - sum(measured_s(tables, kernel) for kernel in kernels))
    return MeasuredPass(name=ATTENTION, overhead_s=max(0.0, statistics.fmean(surplus)), s_per_element=0.0)


def _pass(times: Times, name: str) -> MeasuredPass:
    """Overhead and time per element of a pass, from its times on few and on many rows."""
    few, many = (rows * PASS_COLS * passes_in(name) for rows in PASS_ROWS)
    few_s, many_s = (times["pass", name, rows] for rows in PASS_ROWS)
    per_element_s = max(0.0, many_s - few_s) / (many - few)
    return MeasuredPass(
        name=name, overhead_s=max(0.0, few_s - per_element_s * few), s_per_element=per_element_s
    )


def _disk_byte_per_s() -> float:
    """Write a file to the disk, drop it from the page cache, and time reading it once."""
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


def main(models: str, rows: str) -> int:
    """Print the calibration as JSON. It has its own process, so that its torch threads and memory end."""
    found, comparisons = calibrate(models.split(",") if models else (), json.loads(f"[{rows}]"))
    json.dump({"calibration": found.to_json(), "comparisons": comparisons}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
