"""FLOPs, memory traffic and time of operations, against sums worked out by hand."""

from dataclasses import replace

import pytest

from engine.domain.cluster import DeviceSpec
from engine.domain.efficiency import Efficiency
from engine.domain.errors import SpecError
from engine.domain.host_times import CallCosts, HostProfile, MeasuredRow, PackedRow
from engine.domain.rates import FormatRate, format_bits
from engine.ops import core as ops
from engine.ops.cost import measured_s, op_time, op_time_s
from engine.ops.kernels import Kernel, elementwise, product, total_bytes, total_flops
from engine.ops.quantised import QuantisedBlock
from engine.ops.tensors import Meta
from engine.ops.tokens import Greedy
from tests.support.hand_model import HAND, X, flops_and_bytes

DEVICE = DeviceSpec(
    name="d0",
    flop_per_s=1000,
    memory_bytes=1e6,
    memory_byte_per_s=100,
    op_overhead_s=0.5,
    half_rows=2,
)


def test_a_product_reads_both_matrices_and_writes_its_result():
    kernel = product(2, 3, 5, 4)
    assert kernel.flops == 60  # 2 · 2 · 3 · 5
    assert kernel.bytes == 4 * (6 + 15 + 10)


def test_products_in_a_batch_each_read_and_write_their_own_matrices():
    kernel = product(2, 3, 5, 4, count=7)
    assert kernel.flops == 7 * 60
    assert kernel.bytes == 7 * 4 * (6 + 15 + 10)


def test_an_elementwise_pass_reads_and_writes_every_element_once():
    kernel = elementwise(2, 5, 2, count=3)
    assert kernel.flops == 30
    assert kernel.bytes == 3 * 2 * (10 + 10)


def test_attention_on_two_rows_after_three_cached_ones():
    op = ops.Attention(0, 0, 4, True, "c")
    flops = [12, 288, 144, 144, 36, 240, 40, 240, 288]  # norm q k v rope scores softmax values o
    elements = [24, 108, 60, 60, 72, 4 * 31, 80, 4 * 31, 108]
    assert flops_and_bytes(op, X, cached=3) == (sum(flops), 4 * sum(elements))
    cost = op.cost(HAND, (X,), 3)
    # norm 6, queries and result 2·4·3, keys and values 2·2·3, scores 4·5: for each of two rows
    assert cost.scratch_bytes == 4 * 2 * (6 + 24 + 12 + 20)
    assert (cost.kv_rows, cost.kv_bytes) == (2, 4 * 2 * 2 * 2 * 3)


def test_norms_of_queries_and_keys_are_a_pass_over_the_numbers_of_all_their_heads():
    op, normed = ops.Attention(0, 0, 4, True, "c"), HAND.model_copy(update={"qk_norm": True})
    plain, more = (flops_and_bytes(op, X, model=model) for model in (HAND, normed))
    numbers = 2 * (4 + 2) * 3  # two rows of four query heads and two KV heads
    assert (more[0] - plain[0], more[1] - plain[1]) == (numbers, 8 * numbers)


def test_one_head_brings_its_kv_head_along():
    op = ops.Attention(0, 1, 2, False)
    flops = [12, 72, 72, 72, 2 * 6, 24, 4, 24, 72]  # the rows see two rows, and rope turns q and k
    elements = [24, 36, 36, 36, 24, 16, 8, 16, 36]
    assert flops_and_bytes(op, X) == (sum(flops), 4 * sum(elements))
    assert op.cost(HAND, (X,), 0).kv_bytes == 0


def test_a_gated_feed_forward_part_multiplies_three_matrices():
    op = ops.FeedForward(0, 0, 5, True)
    assert flops_and_bytes(op, X) == (12 + 120 + 120 + 20 + 120, 4 * (24 + 52 + 52 + 40 + 52))
    assert op.cost(HAND, (X,), 0).scratch_bytes == 4 * 2 * (6 + 5 + 5)


def test_a_layer_is_the_sum_of_its_parts_and_keeps_the_residual_stream():
    assert flops_and_bytes(ops.Block(0, "c"), X, cached=3) == (1432 + 392 + 2 * 12, 3040 + 880 + 2 * 144)
    cost = ops.Block(0, "c").cost(HAND, (X,), 3)
    assert cost.scratch_bytes == 4 * 12 + 496
    assert (cost.kv_rows, cost.kv_bytes) == (2, 96)


def test_the_head_multiplies_the_last_row_of_each_sequence_only():
    op = ops.Head()
    assert flops_and_bytes(op, Meta((3, 9, 6))) == (3 * (6 + 84), 4 * (3 * 12 + 3 * 6 + 42 + 3 * 7))
    assert op.cost(HAND, (X,), 0).output == Meta((1, 7))


@pytest.mark.parametrize(
    ("op", "inputs", "elements"),
    [
        (ops.Embed(0), (Meta((1, 2), "int64"),), 12),
        (ops.Norm(0, "ffn"), (X,), 12),
        (ops.FinalHidden(), (X,), 12),
        (Greedy(), (Meta((1, 7)),), 7),
    ],
)
def test_a_pass_over_rows_costs_one_operation_and_eight_bytes_per_element(op, inputs, elements):
    assert flops_and_bytes(op, *inputs) == (elements, 8 * elements)


@pytest.mark.parametrize("op", [ops.Add(), ops.Residual(0, "ffn")])
def test_a_sum_reads_both_operands_and_writes_a_third(op):
    assert flops_and_bytes(op, X, X) == (12, 3 * 4 * 12)


def test_quantised_matrices_are_restored_before_each_use():
    cost = QuantisedBlock(0, 8, "c", speed=2.0).cost(HAND, (X,), 3)
    matrices = [72, 36, 36, 72, 30, 30, 30]  # q k v o up gate down
    assert total_flops(cost.kernels) == 1848 + sum(matrices)
    assert total_bytes(cost.kernels) == 4208 + 8 * sum(matrices)
    assert cost.scratch_bytes == 544 + 4 * 72
    assert cost.speed == 2.0


def test_flops_alone_divide_by_the_peak_rate():
    kernels = [product(2, 3, 5, 4), elementwise(2, 5, 4)]
    assert op_time_s(DEVICE, kernels, override="flops") == pytest.approx(70 / 1000)


def test_the_roofline_takes_the_slower_of_arithmetic_and_memory_and_pays_for_every_kernel():
    bound_by_memory = product(2, 3, 5, 4)  # 60 FLOPs at half rate: 0.12 s; 124 bytes: 1.24 s
    bound_by_arithmetic = product(6, 1000, 6, 4)  # 72,000 at 6/8 of the peak: 96 s; 48,144 bytes: 481.44 s
    fast_memory = DEVICE.model_copy(update={"memory_byte_per_s": 1e6})
    assert op_time_s(DEVICE, [bound_by_memory]) == pytest.approx(1.24 + 0.5)
    assert op_time_s(fast_memory, [bound_by_arithmetic]) == pytest.approx(96 + 0.5)
    both = op_time_s(DEVICE, [bound_by_memory, elementwise(2, 5, 4)])
    assert both == pytest.approx((1.24 + 0.5) + (0.8 + 0.5))


def test_a_serial_device_adds_arithmetic_and_memory():
    assert op_time_s(DEVICE, [product(2, 3, 5, 4)], override="serial") == pytest.approx(0.12 + 1.24 + 0.5)


QUARTER = FormatRate(bits=4, flop_per_s=2000, memory_frac=0.5, basis="data sheet")
STORED = Kernel("product", 2, 16, 8, 1, 4, weight_bits=4.5)  # 512 FLOPs; weights of 72 bytes, 512 restored
RESTORING = elementwise(1, 128, 4, name="dequantise", weight_bits=4.5)


def test_a_device_with_rates_of_a_format_reads_such_weights_as_they_are_stored():
    device = DEVICE.model_copy(update={"format_rates": (QUARTER,)})
    moved = 4 * 2 * (16 + 8) + 72
    found = op_time(device, [RESTORING, STORED])
    assert found.time_s == pytest.approx(moved / (100 * 0.5) + 0.5)  # arithmetic: 0.512 s
    assert (found.flops, found.bytes) == (512, moved)
    fast_memory = device.model_copy(update={"memory_byte_per_s": 1e6})
    assert op_time_s(fast_memory, [STORED]) == pytest.approx(0.512 + 0.5)


@pytest.mark.parametrize(("flop_per_s", "frac"), [(1000.0, 0.689), (2000.0, 0.896)])
def test_a_device_without_rates_of_the_format_reads_it_as_boards_of_its_kind_do(flop_per_s, frac):
    of_8_bits = QUARTER.model_copy(update={"bits": 8})
    drawn = DEVICE.model_copy(update={"flop_per_s": flop_per_s})
    for device in (drawn, drawn.model_copy(update={"format_rates": (of_8_bits,)})):
        found = op_time(device, [RESTORING, STORED])
        moved = 4 * 2 * (16 + 8) + 72
        assert found.time_s == pytest.approx(moved / (100 * frac) + 0.5)
        assert (found.flops, found.bytes) == (512, moved)


def test_a_measured_table_of_few_rows_does_not_make_quantised_weights_as_slow_as_whole_ones():
    """One row of a float32 product is bound by memory, which is what such a table has measured."""
    row = Efficiency(rows=1, width=64, frac=0.05, basis="measured")
    device = DEVICE.model_copy(update={"efficiencies": (row,), "op_overhead_s": 0.0})
    plain, packed = product(1, 512, 512, 4), product(1, 512, 512, 4, weight_bits=8.0)
    # 2 FLOPs a byte at 100 B/s take more than the 50 FLOP/s of the table
    assert op_time_s(device, [plain]) == pytest.approx((4 * 512 * 514) / 100, rel=0.01)
    assert op_time_s(device, [packed]) == pytest.approx((512 * 512 + 8 * 512) / 92.9, rel=0.01)


def test_the_papers_arithmetic_restores_quantised_matrices_first():
    found = op_time(DEVICE, [RESTORING, STORED], override="flops")
    assert found.time_s == pytest.approx((128 + 512) / 1000)


@pytest.mark.parametrize(("element_bytes", "bits"), [(4, 32), (2, 16)])
def test_the_format_of_a_models_own_numbers_has_its_own_rates_too(element_bytes, bits):
    device = DEVICE.model_copy(update={"format_rates": (QUARTER.model_copy(update={"bits": bits}),)})
    kernel = product(2, 16, 8, element_bytes)
    assert op_time_s(device, [kernel]) == pytest.approx(kernel.bytes / 50 + 0.5)


@pytest.mark.parametrize(("weight_bits", "bits"), [(4.1, 4), (4.9, 4), (6.6, 8), (8.5, 8), (16, 16)])
def test_weights_are_of_the_format_whose_bits_with_scales_they_take(weight_bits, bits):
    assert format_bits(weight_bits) == bits


def test_elementwise_passes_run_at_the_peak_rate_whatever_their_rows():
    fast_memory = DEVICE.model_copy(update={"memory_byte_per_s": 1e9})
    assert op_time_s(fast_memory, [elementwise(1, 50, 4)]) == pytest.approx(0.05 + 0.5)


@pytest.mark.parametrize("compute_model", ["flops", "roofline", "serial"])
def test_kernels_without_work_take_no_time(compute_model):
    assert op_time_s(DEVICE, [product(0, 3, 5, 4)], override=compute_model) == 0


PROFILE = HostProfile(
    host="test",
    products=(MeasuredRow(rows=1, s_per_flop=0.01),),
    elementwise_s_per_element=0.1,
    op_overhead_s=0.25,
    memory_byte_per_s=1.0,
    call_s=2.0,
)


def test_a_measured_operation_is_one_call_and_its_kernels_by_the_hosts_tables():
    thrice = DEVICE.model_copy(update={"measured_scale": 3.0})
    kernels = [product(2, 3, 5, 4), elementwise(2, 5, 4)]  # 60 FLOPs: 0.6 s; 10 elements: 1 s
    took_s = op_time_s(thrice, kernels, PROFILE, override="measured")
    assert took_s == pytest.approx(3 * (2 + (0.6 + 0.25) + (1 + 0.25)))


def test_a_measured_operation_without_work_is_not_even_called():
    assert op_time_s(DEVICE, [product(0, 3, 5, 4)], PROFILE, override="measured") == 0


def test_measured_times_need_a_profile():
    with pytest.raises(SpecError, match="d0: compute_model is measured and this host is not calibrated"):
        op_time_s(DEVICE, [product(2, 3, 5, 4)], override="measured")


@pytest.mark.parametrize("compute_model", ["roofline", "serial"])
def test_times_that_reuse_those_of_the_call_before_are_the_same(compute_model):
    op, before = ops.Block(0, "c"), []
    for rows in (0, 1, 2, 9, 2):
        kernels = op.cost(HAND, (X,), rows).kernels
        found = op_time(DEVICE, kernels, override=compute_model, before=before)
        assert found == op_time(DEVICE, kernels, override=compute_model)
        assert (found.flops, found.bytes) == (total_flops(kernels), total_bytes(kernels))
        assert [known.kernel for known in before] == list(kernels)
    for others in (kernels[1:], (*kernels, elementwise(1, 50, 4))):
        found = op_time(DEVICE, others, override=compute_model, before=before)
        assert found == op_time(DEVICE, others, override=compute_model)


def test_on_a_host_that_was_timed_with_quantised_weights_restoring_them_is_part_of_the_product():
    known = HostProfile.model_validate(
        dict(PROFILE) | {"packed": (PackedRow(bits=4, rows=2, s_per_flop=3.0),)}
    )
    assert measured_s(known, RESTORING) == 0.0
    assert measured_s(known, STORED) == pytest.approx(512 * 3.0 + known.op_overhead_s)
    assert measured_s(PROFILE, RESTORING) > 0.0


def test_on_such_a_host_restoring_weights_is_no_call_and_their_product_is_one_of_its_own():
    calls = CallCosts(width=1, product_s=1.0, packed_s=5.0, pass_s=100.0)
    table = {"packed": (PackedRow(bits=4, rows=2, s_per_flop=3.0),)}
    known = HostProfile.model_validate(dict(PROFILE) | table)
    calling = HostProfile.model_validate(dict(known) | {"calls": (calls,)})

    def added_s(kernels) -> float:
        return op_time_s(DEVICE, kernels, calling, "measured") - op_time_s(DEVICE, kernels, known, "measured")

    assert added_s([RESTORING, STORED]) == pytest.approx(DEVICE.measured_scale * 5.0)
    assert added_s([replace(STORED, weight_bits=0.0)]) == pytest.approx(DEVICE.measured_scale * 1.0)
