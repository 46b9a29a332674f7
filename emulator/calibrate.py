"""Measures this machine as a device: one thread, the same arithmetic that models run. About 20 seconds.

Gives two things. A `HostProfile` is the table behind the compute model `measured` and behind the choice
of the dilation. A `DeviceSpec` is this machine as a row for a cluster file: the roofline that fits it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

from emulator.host import Calibration, host_name
from emulator.operations import random_weights, time_sequence
from emulator.roofline import fit_roofline
from emulator.stopwatch import in_place_s, typical_s
from engine.cluster import DeviceSpec
from engine.cost import Kernel, elementwise, measured_s
from engine.cost import product as matrix_product
from engine.host_times import ATTENTION, HostProfile, MeasuredPass, MeasuredRow

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 512)
SIDES = (32, 128, 384, 1024, 3072)  # of the matrices
WORKING_SET_BYTES = 100 << 20  # of matrices in turn, as a model's are: large ones leave the cache meanwhile
MATRICES = 144  # at most: a model of 12 layers is as large as so many squares of its hidden size
ATTENTION_ROWS, ATTENTION_WIDTHS, ATTENTION_SEEN = (1, 8, 32, 128, 512), (32, 64, 128), (32, 128, 512)
ATTENTION_HEADS = 12
ELEMENTWISE_ROWS, ELEMENTWISE_COLS = 128, 1024
LARGE_BYTES = 256 << 20
POINT_S = 0.03  # time spent on one figure of a grid
FIGURE_S = 0.1  # and on one that stands alone
SMALLEST = ("tiny-gpt2", "tiny-bert", "tiny-llama")  # models in which calling is what takes the time
DISK_BYTES = 64 << 20
FLOAT_BYTES = 4


def calibrate() -> Calibration:
    """Measure now. Sets torch to one thread in this process."""
    profile = host_profile()
    return Calibration(profile, device_row(profile, _disk_byte_per_s()))


def host_profile(rows: Sequence[int] = ROWS, sides: Sequence[int] = SIDES) -> HostProfile:
    """This host's times; of products with weights, on a grid of `rows` and of `sides` of the matrices."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.inference_mode():
        crowd = _crowd_out(torch)
        add = _pass_works(torch, "add", 1)
        overhead_s = in_place_s(add, crowd, FIGURE_S)
        passes = tuple(_passes(torch, crowd))
        tables = HostProfile(
            host=host_name(),
            products=tuple(_products(torch, rows, sides)),
            elementwise_s_per_element=statistics.fmean(item.s_per_element for item in passes),
            op_overhead_s=overhead_s,
            memory_byte_per_s=_memory_byte_per_s(torch),
            attention=tuple(_attention(torch)),
            passes=passes,
        )
        return tables.model_copy(update={"passes": (*passes, _attention_call(tables, crowd))})


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
    """The kernels that a model's time is made of, and what they take by `profile`."""
    for row in profile.products:
        if row.inner >= SIDES[1] and row.cols >= SIDES[1]:
            kernel = matrix_product(int(row.rows), int(row.inner), int(row.cols), FLOAT_BYTES)
            yield kernel, kernel.flops * row.s_per_flop + profile.op_overhead_s
    for rows in ROWS:
        kernel = elementwise(rows, ELEMENTWISE_COLS, FLOAT_BYTES)
        yield kernel, profile.pass_s(kernel.name, kernel.flops)


def _products(torch: Any, rows: Sequence[int], sides: Sequence[int]) -> Iterator[MeasuredRow]:
    overhead_s = typical_s(_pass_works(torch, "add", 1))
    for inner, cols in product(sides, sides):
        matrices = max(3, min(MATRICES, WORKING_SET_BYTES // (FLOAT_BYTES * inner * cols)))
        weights = cycle([torch.randn(cols, inner) for _ in range(matrices)])
        for count in rows:
            x = torch.randn(1, count, inner)

            def multiply(x: Any = x, weights: Any = weights) -> None:
                torch.nn.functional.linear(x, next(weights))

            yield _row(count, inner, cols, 1, typical_s(multiply, POINT_S) - overhead_s)


def _attention(torch: Any) -> Iterator[MeasuredRow]:
    """Scores, softmax and values of some heads, and their merging: on views, as operations have them."""
    overhead_s = typical_s(_pass_works(torch, "add", 1))
    for rows, wide, seen in product(ATTENTION_ROWS, ATTENTION_WIDTHS, ATTENTION_SEEN):
        heads = ATTENTION_HEADS
        q = torch.randn(1, rows, heads, wide).transpose(1, 2)
        k, v = (torch.randn(1, seen, heads, wide).transpose(1, 2) for _ in range(2))

        def attend(q: Any = q, k: Any = k, v: Any = v) -> None:
            context = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            context.transpose(1, 2).flatten(2)

        # the two products share the time: each has half of the FLOPs
        yield _row(rows, wide, seen, 2 * heads, typical_s(attend, POINT_S) - 2 * overhead_s)


def _row(rows: int, inner: int, cols: int, count: int, seconds: float) -> MeasuredRow:
    flops = 2 * rows * inner * cols * count
    return MeasuredRow(rows=rows, inner=inner, cols=cols, s_per_flop=max(1e-15, seconds / flops))


def _attention_call(tables: HostProfile, crowd: Callable[[], Any]) -> MeasuredPass:
    """What attention costs beyond what `tables` say of its kernels: views, tables, the KV cache."""
    surplus = []
    for name in SMALLEST:
        timed = time_sequence(random_weights(name), "parts", 1, 16, crowd)
        (attention,) = (item for item in timed if item.operation == "attention")
        # without the pass whose cost is to be found
        kernels = [k for k in attention.kernels if (k.kind, k.name) != ("elementwise", ATTENTION)]
        surplus.append(attention.seconds - sum(measured_s(tables, kernel) for kernel in kernels))
    return MeasuredPass(name=ATTENTION, overhead_s=max(0.0, statistics.fmean(surplus)), s_per_element=0.0)


def _passes(torch: Any, crowd: Callable[[], Any]) -> Iterator[MeasuredPass]:
    """Element-wise passes by name: what one row costs, and every element beyond."""
    from engine.models.torch_ops import ACTIVATIONS

    for name in (*ACTIVATIONS, "add", "layernorm", "rmsnorm", "softmax", "lookup", "rope"):
        few_s, many_s = (
            in_place_s(_pass_works(torch, name, rows), crowd, FIGURE_S) for rows in (1, ELEMENTWISE_ROWS)
        )
        twice = 2 if name in ("silu", "rope") else 1
        per_element_s = max(0.0, many_s - few_s) / ((ELEMENTWISE_ROWS - 1) * ELEMENTWISE_COLS * twice)
        overhead_s = max(0.0, few_s - per_element_s * ELEMENTWISE_COLS * twice)
        yield MeasuredPass(name=name, overhead_s=overhead_s, s_per_element=per_element_s)


def _pass_works(torch: Any, name: str, rows: int) -> Callable[[], Any]:
    """The pass on some rows, the way `engine/models` computes it.

    Gated families multiply after silu and count that as a second pass; rotary positions are for q and k.
    """
    from engine.models.torch_ops import ACTIVATIONS

    functional, cols = torch.nn.functional, ELEMENTWISE_COLS
    if name == "add":  # one operand is a residual from before the products
        old, new = cycle([torch.randn(1, rows, cols) for _ in range(24)]), torch.randn(1, rows, cols)
        return lambda: next(old) + new
    x, y, weight = torch.randn(1, rows, cols), torch.randn(1, rows, cols), torch.ones(cols)
    if name == "silu":
        return lambda: functional.silu(x) * y
    if name in ACTIVATIONS:
        return lambda: ACTIVATIONS[name](x)
    tokens, table = torch.arange(rows).unsqueeze(0), torch.randn(ELEMENTWISE_ROWS, cols)
    heads = [z.view(1, rows, cols // 64, 64).transpose(1, 2) for z in (x, y)]
    angles = torch.randn(rows, 64)

    def rotate() -> None:
        for z in heads:
            low, high = z.chunk(2, dim=-1)
            z * angles + torch.cat((-high, low), dim=-1) * angles

    works: dict[str, Callable[[], Any]] = {
        "layernorm": lambda: functional.layer_norm(x, (cols,), weight, weight),
        "rmsnorm": lambda: functional.rms_norm(x, (cols,), weight),
        "softmax": lambda: torch.softmax(x, dim=-1),
        "lookup": lambda: functional.embedding(tokens, table),
        "rope": rotate,
    }
    return works[name]


def _crowd_out(torch: Any) -> Callable[[], Any]:
    """What runs between two passes of a model, and leaves little of them in the nearest caches."""
    side = 1024
    weights = cycle([torch.randn(side, side) for _ in range(WORKING_SET_BYTES // (FLOAT_BYTES * side**2))])
    x = torch.randn(1, side)
    return lambda: torch.nn.functional.linear(x, next(weights))


def _memory_byte_per_s(torch: Any) -> float:
    """Reading: a matrix far larger than any cache times one vector."""
    matrix = torch.ones(LARGE_BYTES // FLOAT_BYTES // 1024, 1024)
    vector = torch.ones(1024)
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


def main() -> int:
    """In a process of its own, so that its torch threads and memory end with it."""
    sys.stdout.write(calibrate().to_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
