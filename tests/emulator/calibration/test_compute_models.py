"""What a host was measured to do is what the compute model `measured` says it does."""

from math import log
from statistics import median

import pytest

from emulator.calibration.calibrate import host_profile
from emulator.calibration.operations import random_weights, time_sequence
from emulator.calibration.residuals import TimedPrediction, residuals
from emulator.calibration.shapes import SHORT
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import SpecError
from engine.domain.host_times import ATTENTION, HostProfile, MeasuredPass, MeasuredRow
from engine.ops.cost import op_time_s
from engine.ops.kernels import attention_kernels, elementwise, product, total_flops
from tests.support.hand_model import HAND

DEVICE = DeviceSpec(name="host", flop_per_s=1e11, memory_bytes=1e9, memory_byte_per_s=1e10)
GRID = [(rows, inner, cols) for rows in (1, 100) for inner in (10, 1000) for cols in (10, 1000)]


def profile(**more) -> HostProfile:
    """Products take 1e-9 s per FLOP at one row, 1e-11 at 100, whatever the matrix."""
    rows = [MeasuredRow(rows=r, inner=i, cols=c, s_per_flop=1e-9 / r) for r, i, c in GRID]
    return HostProfile(
        host="made",
        products=tuple(rows),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-6,
        memory_byte_per_s=1e10,
        **more,
    )


def measured_s(kernels, **more) -> float:
    return op_time_s(DEVICE, kernels, profile(**more), "measured")


def test_between_two_points_the_logarithm_is_linear() -> None:
    assert measured_s([product(10, 100, 100, 4)]) == pytest.approx(2 * 10 * 1e4 * 1e-10 + 1e-6)
    assert measured_s([product(1, 10, 1000, 4)]) == pytest.approx(2e4 * 1e-9 + 1e-6)


def test_beyond_the_ends_the_time_per_flop_stays() -> None:
    assert measured_s([product(1000, 4000, 4000, 4)]) == pytest.approx(2 * 1000 * 16e6 * 1e-11 + 1e-6)
    assert measured_s([product(1, 2, 3, 4)]) == pytest.approx(12 * 1e-9 + 1e-6)


def test_a_pass_of_a_known_name_takes_its_own_time() -> None:
    norm = MeasuredPass(name="layernorm", overhead_s=5e-6, s_per_element=2e-9)
    passes = {"passes": (norm,)}
    assert measured_s([elementwise(10, 100, 4, name="layernorm")], **passes) == pytest.approx(7e-6)
    assert measured_s([elementwise(10, 100, 4)], **passes) == pytest.approx(2e-6)


def test_attention_is_one_computation_with_a_table_of_its_own() -> None:
    table = (MeasuredRow(rows=1, inner=64, cols=64, s_per_flop=3e-9),)
    call = MeasuredPass(name=ATTENTION, overhead_s=4e-5, s_per_element=0.0)
    kernels = attention_kernels(HAND.model_copy(update={"head_dim": 64}), 0, range(120, 128), 128, 12)
    expected = total_flops([kernels[0], kernels[2]]) * 3e-9 + 2e-6 + 4e-5
    assert measured_s(kernels, attention=table, passes=(call,)) == pytest.approx(expected)


def test_a_slower_device_takes_its_multiple_and_no_work_no_time() -> None:
    slow = DEVICE.model_copy(update={"measured_scale": 4.0})
    kernels = [product(10, 100, 100, 4)]
    assert op_time_s(slow, kernels, profile(), "measured") == pytest.approx(4 * measured_s(kernels))
    assert measured_s([product(0, 100, 100, 4)]) == 0.0


def test_a_table_with_a_hole_is_refused() -> None:
    rows = profile().products[:-1]
    with pytest.raises(SpecError, match="7 measured products are no full grid over rows, inner and cols"):
        HostProfile.parse(profile().model_dump() | {"products": rows}, "profile")


def test_residuals_are_relative_errors_and_that_of_the_sum() -> None:
    first = TimedPrediction("m", "block", 1, 1.0, (0.5, 1.1, 1.0))
    timed = [first, TimedPrediction("m", "block", 2, 3.0, (1.5, 3.0, 3.0))]
    assert residuals(timed, "flops") == pytest.approx((0.5, 0.5, -0.5))
    assert residuals(timed, "roofline") == pytest.approx((0.1, 0.0, 0.025), abs=1e-9)
    assert residuals(timed, "measured") == (0.0, 0.0, 0.0)


@pytest.mark.alone
@pytest.mark.long("emulator/calibration", "engine/ops")
def test_six_position_shards_cost_what_the_host_makes_of_them_not_what_flops_say() -> None:
    """BERT-Large, 200 rows: a shard of 34 rows, products in the order of fewest FLOPs, has a quarter of a
    layer's. Its products are skinny, so it takes more than that: the table of the host says how much more,
    with less than half the error of FLOPs. How good its predictions are is what benchmarks measure.

    Ratios within one run, so that the speed of the machine and most of its other load cancel out.
    """
    store = random_weights("bert-large")
    turns = [[time_sequence(store, name, 200, 0)[1] for name in ("blocks", "shards")] for _ in range(3)]
    block, shard = turns[0]  # the second of each, after the look-up of tokens
    by_flops = total_flops(block.kernels) / total_flops(shard.kernels)
    assert by_flops == pytest.approx(3.99, abs=0.01)
    grid = SHORT._replace(kernel_rows=(32, 64, 256), kernel_sides=(1024, 4096), kernel_rounds=2)
    host = host_profile(grid).profile
    predicted = [op_time_s(DEVICE, timed.kernels, host, "measured") for timed in (block, shard)]
    happened = median(block.seconds / shard.seconds for block, shard in turns)
    assert happened < 0.9 * by_flops
    assert abs(log(predicted[0] / predicted[1] / happened)) < log(by_flops / happened) / 2
