"""Presets compute as memory and arithmetic allow: one row waits for memory, no prompt passes the peak."""

from __future__ import annotations

import statistics

import pytest

import topologies
from bench.published.fit import PROCESSORS, kind
from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.rates import GRAPHICS_FRACS, PROCESSOR_FRACS, FormatBits
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models.catalogue import resolve
from engine.ops.cost import op_time_s
from engine.ops.kernels import Kernel
from engine.ops.sizes import model_bytes
from engine.runs.predict import predict
from topologies.presets import same_chips

BOARDS = [device for device in topologies.presets() if device.compute_model == "roofline"]
"""All but the papers' own devices, whose rates are fitted to what the papers publish."""

FORMATS: tuple[FormatBits, ...] = (32, 16, 8, 4)
PUBLISHED = ("fitted to published rates", "fitted in another format")
SIDE = 2048
CASES = [pytest.param(device, bits, id=f"{device.name}-{bits}") for device in BOARDS for bits in FORMATS]


def products(rows: int, bits: int) -> Kernel:
    size, stored = (2, float(bits)) if bits < 16 else (bits // 8, 0.0)
    return Kernel("product", rows, SIDE, SIDE, 1, size, weight_bits=stored)


def product_s(device: DeviceSpec, rows: int, bits: int) -> float:
    return op_time_s(device, [products(rows, bits)]) - device.op_overhead_s


@pytest.mark.parametrize(("device", "bits"), CASES)
def test_one_row_takes_at_most_half_as_long_again_as_reading_the_weights(
    device: DeviceSpec, bits: FormatBits
) -> None:
    """Of a published rate the row takes what it says; every other reads at the memory's rate, or nearly."""
    row = device.format_rate(bits)
    published_frac = row.memory_frac if row and row.basis in PUBLISHED else 1.0
    reading_s = SIDE * SIDE * bits / 8 / device.memory_byte_per_s
    assert reading_s <= product_s(device, 1, bits) <= 1.5 * reading_s / published_frac


@pytest.mark.parametrize(("device", "bits"), CASES)
def test_five_hundred_rows_are_near_the_peak_and_never_beyond_it(
    device: DeviceSpec, bits: FormatBits
) -> None:
    row = device.format_rate(bits)
    peak = row.flop_per_s if row else device.flop_per_s
    reached = 2 * 512 * SIDE * SIDE / product_s(device, 512, bits)
    assert 0.75 * peak <= reached <= peak


@pytest.mark.parametrize(("device", "bits"), CASES)
def test_more_rows_never_take_less_time(device: DeviceSpec, bits: FormatBits) -> None:
    times = [product_s(device, rows, bits) for rows in (1, 2, 3, 4, 8, 16, 32, 64, 128, 512)]
    assert times == sorted(times)


@pytest.mark.parametrize("device", BOARDS, ids=lambda device: device.name)
def test_every_preset_states_its_rates_with_quantised_weights_and_where_they_are_from(
    device: DeviceSpec,
) -> None:
    for bits in (8, 4):
        row = device.format_rate(bits)
        assert row and row.source, f"{bits} bits"
        assert row.basis in (*PUBLISHED, "derived from other boards")


@pytest.mark.parametrize(
    ("name", "memory_bound_s"), [("gemma-3-1b", 0.42), ("smollm2-360m", 0.15), ("gpt2", 0.10)]
)
def test_a_raspberry_pi_4_decodes_at_the_rate_of_its_memory(name: str, memory_bound_s: float) -> None:
    """Bytes of the weights over STREAM's 4.8 GB/s, worked out by hand from the models' published sizes."""
    model, weights = resolve(name)
    board = topologies.preset("raspberry-pi-4")
    assert model_bytes(model) / 4.8e9 == pytest.approx(memory_bound_s, rel=0.05)
    spec = RunSpec(
        cluster=ClusterSpec(name="one", source=board.name, devices=(board,)),
        model=model,
        weights=weights,
        workload=Workload(prompt_tokens=8, new_tokens=4),
        strategy="single",
    )
    assert predict(spec).tpot_s == pytest.approx(memory_bound_s, rel=0.25)


@pytest.mark.parametrize(("bits", "fracs"), [(8, (0.929, 0.929)), (4, (0.689, 0.896))])
def test_a_device_that_states_no_rates_reads_as_presets_of_its_kind_do_in_the_median(
    bits: FormatBits, fracs: tuple[float, float]
) -> None:
    found: dict[bool, list[float]] = {True: [], False: []}
    for device in topologies.presets():
        row = device.format_rate(bits)
        if row and row.basis == "fitted to published rates" and device.name not in same_chips():
            found[kind(device.name) == PROCESSORS].append(row.memory_frac)
    assert PROCESSOR_FRACS[bits] == fracs[0] == pytest.approx(statistics.median(found[True]), abs=0.001)
    assert GRAPHICS_FRACS[bits] == fracs[1] == pytest.approx(statistics.median(found[False]), abs=0.001)


@pytest.mark.parametrize(("model", "bits", "per_s"), [("llama-3.3-70b", 4, 4.1), ("llama-2-7b", 4, 57.2)])
def test_a_drawn_device_of_273_gigabytes_per_second_is_as_fast_as_published_ones(
    model: str, bits: int, per_s: float
) -> None:
    """4.0 to 4.2 tokens/s of a 70B model, and discussion 15013 of llama.cpp, both in 4 bits."""
    shape = resolve(model, "random")[0].model_copy(update={"dtype": "bfloat16", "weight_bits": float(bits)})
    drawn = DeviceSpec(name="spark", flop_per_s=31e12, memory_bytes=128e9, memory_byte_per_s=273e9)
    cluster = ClusterSpec(name="one", source="spark", devices=(drawn,))
    work = Workload(prompt_tokens=64, new_tokens=3)
    found = predict(RunSpec(cluster=cluster, model=shape, strategy="single", workload=work))
    assert 1 / 1.5 <= found.tpot_s * per_s <= 1.5
