"""Whole passes correct the times of single kernels: made-up hosts whose passes are known exactly."""

from dataclasses import replace

import pytest

from emulator.calibration.correction import ROW_KNOTS, correct, terms_of
from emulator.calibration.operations import TimedOperation
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import ATTENTION, CallCosts, HostProfile, MeasuredPass, MeasuredRow, PackedRow
from engine.ops.cost import op_time_s, width_of
from engine.ops.kernels import attention_kernels, elementwise, product, weighted
from tests.support.hand_model import HAND

DEVICE = DeviceSpec(name="host", flop_per_s=1e11, memory_bytes=1e9, memory_byte_per_s=1e10)
SIDES = (32, 128, 384, 1024, 3072)
ALONE = HostProfile(
    host="made",
    products=tuple(
        MeasuredRow(rows=rows, inner=inner, cols=cols, s_per_flop=1e-10 / rows**0.5)
        for rows in ROW_KNOTS
        for inner in SIDES
        for cols in SIDES
    ),
    elementwise_s_per_element=1e-9,
    op_overhead_s=2e-6,
    memory_byte_per_s=1e10,
    attention=tuple(MeasuredRow(rows=rows, inner=64, cols=128, s_per_flop=1e-10) for rows in ROW_KNOTS),
    passes=(
        MeasuredPass(name="layernorm", overhead_s=5e-6, s_per_element=1e-9),
        MeasuredPass(name="lookup", overhead_s=5e-6, s_per_element=1e-9),
        MeasuredPass(name=ATTENTION, overhead_s=1e-5, s_per_element=0.0),
    ),
)
MODEL = HAND.model_copy(update={"head_dim": 64})


def operations() -> list[tuple]:
    """Kernels of an attention part, a feed-forward part and an embedding, of several sizes and rows."""
    found = []
    for rows in ROW_KNOTS:
        for side in SIDES[1:]:
            attention = attention_kernels(MODEL, 0, range(rows), rows, side // 64)
            norm = elementwise(rows, side, 4, name="layernorm")
            found.append(
                (rows, (norm, product(rows, side, 3 * side, 4), *attention, product(rows, side, side, 4)))
            )
            found.append((rows, (norm, product(rows, side, 4 * side, 4), product(rows, 4 * side, side, 4))))
            found.append((rows, (elementwise(rows, side, 4, name="lookup"),)))
    return found


def timed(seconds_of) -> list[TimedOperation]:
    return [
        TimedOperation("m", str(number), rows, kernels, seconds_of(kernels))
        for number, (rows, kernels) in enumerate(operations())
    ]


def seconds(kernels, profile=ALONE) -> float:
    return op_time_s(DEVICE, kernels, profile, "measured")


def test_passes_that_take_what_their_kernels_take_leave_the_profile_as_it_is() -> None:
    found = correct(ALONE, timed(seconds))
    for rows, kernels in operations():
        assert seconds(kernels, found) == pytest.approx(seconds(kernels), rel=0.01), rows


def test_products_that_are_slower_in_passes_become_slower_in_the_profile() -> None:
    """Weights from memory: products of one row take half as long again, others a tenth."""

    def in_a_pass(kernels) -> float:
        slower = {1: 1.5}
        return sum(
            seconds([kernel]) * (slower.get(kernel.rows, 1.1) if kernel.kind == "product" else 1.0)
            for kernel in kernels
        )

    found = correct(ALONE, timed(in_a_pass))
    assert seconds([product(1, 1024, 4096, 4)], found) == pytest.approx(
        1.5 * seconds([product(1, 1024, 4096, 4)]), rel=0.03
    )
    assert seconds([product(128, 1024, 4096, 4)], found) == pytest.approx(
        1.1 * seconds([product(128, 1024, 4096, 4)]), rel=0.03
    )


def test_matrices_in_8_and_4_bits_have_factors_of_their_own() -> None:
    """Alone, one row takes 0.4 of float32's time in 8 bits and 0.3 in 4; in passes a fifth more in 8 bits and
    a fifth less in 4, also in the head, which is wider than the table.
    """
    alone = HostProfile.model_validate(
        dict(ALONE)
        | {
            "packed": tuple(
                PackedRow(bits=bits, **dict(row) | {"s_per_flop": share * row.s_per_flop})
                for bits, share in ((8, 0.4), (4, 0.3))
                for row in ALONE.products
            )
        }
    )
    model, in_passes = MODEL.model_copy(update={"hidden_size": 1024}), {0: 1.0, 8: 1.2, 4: 0.8}

    def of(bits: int, rows: int, inner: int, cols: int) -> tuple:
        stored = model.model_copy(update={"weight_bits": float(bits)})
        return (weighted(stored, rows, inner, cols),)

    shapes = [(r, i, c) for r in (1, 128) for i in (384, 1024) for c in (1024, 3072, 32768)]
    passes = [
        TimedOperation("m", f"{bits}", shape[0], of(bits, *shape), factor * seconds(of(bits, *shape), alone))
        for bits, factor in in_passes.items()
        for shape in shapes
    ]
    found = correct(alone, passes)
    for bits, factor in in_passes.items():
        for shape in shapes:
            expected = factor * seconds(of(bits, *shape), alone)
            assert seconds(of(bits, *shape), found) == pytest.approx(expected, rel=0.05), (bits, shape)


def test_restoring_weights_is_no_term_of_its_own_where_their_product_is_known() -> None:
    bits = MODEL.model_copy(update={"weight_bits": 8.0})
    alone = HostProfile.model_validate(
        dict(ALONE) | {"packed": tuple(PackedRow(bits=8, **dict(row)) for row in ALONE.products)}
    )
    kernels = weighted(bits, 128, 384, 384), elementwise(1, 384 * 384, 4, name="dequantise", weight_bits=8.5)
    assert {term[0] for term in terms_of(alone, kernels)} == {"operation_s", "packed_s", "product"}


def test_calls_of_products_with_quantised_matrices_have_a_cost_of_their_own() -> None:
    """One row times a matrix takes 50 µs more by itself if the matrix is quantised, 5 µs more if it is not,
    and none more within a call for a whole part.
    """
    alone = HostProfile.model_validate(
        dict(ALONE)
        | {
            "packed": tuple(PackedRow(bits=8, **dict(row)) for row in ALONE.products),
            "calls": (CallCosts(width=1, packed_s=20e-6),),
        }
    )
    shapes = [(width, cols) for width in (384, 1024) for cols in (width, 4 * width)]

    def of(bits: float, inside: bool, width: int, cols: int) -> tuple:
        return (weighted(MODEL.model_copy(update={"weight_bits": bits}), 1, width, cols, 1, inside),)

    def in_a_pass(bits: float, inside: bool, width: int, cols: int) -> float:
        own_s = seconds(of(bits, True, width, cols), alone)
        return own_s if inside else own_s + (50e-6 if bits else 5e-6)

    kinds = [(bits, inside, *shape) for bits in (0.0, 8.0) for inside in (False, True) for shape in shapes]
    passes = [TimedOperation("m", "", 1, of(*kind), in_a_pass(*kind)) for kind in kinds]
    found = correct(alone, passes)
    for kind in kinds:
        assert seconds(of(*kind), found) == pytest.approx(in_a_pass(*kind), rel=0.1), kind
    measured_s = 20e-6 + ALONE.op_overhead_s
    assert found.calls_at(128).packed_s == pytest.approx(measured_s, rel=1e-3), "no pass is as narrow"


def test_a_few_passes_that_another_user_of_the_machine_slowed_change_little() -> None:
    """Of the passes of three alike models every thirteenth took three times as long as on a quiet one."""
    passes = [
        item._replace(seconds=3 * item.seconds) if number % 13 == 5 else item
        for number, item in enumerate(3 * timed(seconds))
    ]
    found = correct(ALONE, passes)
    for rows, kernels in operations():
        assert seconds(kernels, found) == pytest.approx(seconds(kernels), rel=0.1), rows


def test_what_every_operation_costs_beside_its_kernels_is_found_by_the_short_ones() -> None:
    found = correct(ALONE, timed(lambda kernels: seconds(kernels) + 40e-6))
    errors = [seconds(kernels, found) / (seconds(kernels) + 40e-6) - 1 for _, kernels in operations()]
    assert max(abs(error) for error in errors) < 0.15
    assert sum(abs(error) for error in errors) / len(errors) < 0.05


def test_calls_take_longer_in_wider_models_whose_weights_leave_the_caches() -> None:
    """A norm by itself costs 3 µs more in a model 128 wide and 11 µs more in one 1024 wide, 7 µs between."""
    more_s = {128: 3e-6, 384: 7e-6, 1024: 11e-6, 3072: 11e-6}

    def in_a_pass(kernels) -> float:
        return seconds(kernels) + more_s[width_of(kernels)]

    widths = [(rows, side) for rows in ROW_KNOTS for side in SIDES[1:]]
    norms = [(rows, (elementwise(rows, side, 4, name="layernorm"),)) for rows, side in widths]
    passes = timed(in_a_pass) + [TimedOperation("m", "norm", rows, k, in_a_pass(k)) for rows, k in norms]
    found = correct(ALONE, passes)
    for width, added_s in ((128, 3e-6), (1024, 11e-6)):
        (norm,) = (elementwise(1, width, 4, name="layernorm"),)
        assert seconds([norm], found) - seconds([norm]) == pytest.approx(added_s, abs=1e-6)


def test_what_is_computed_inside_a_call_for_a_whole_part_costs_no_call_of_its_own() -> None:
    """A product alone takes 30 µs more in a pass than its kernel, one inside such a call no more."""

    def in_a_pass(kernels) -> float:
        apart = [k for k in kernels if k.kind == "product" and k.name != ATTENTION and not k.inside]
        return seconds(kernels) + 30e-6 * len(apart)

    def inside(kernels) -> tuple:
        return tuple(replace(kernel, inside=True) for kernel in kernels)

    of_one_row = [inside(kernels) for rows, kernels in operations() if rows == 1]
    kinds = [kernels for _, kernels in operations()] + of_one_row
    found = correct(ALONE, [TimedOperation("m", "", 1, kernels, in_a_pass(kernels)) for kernels in kinds])
    for width in (384, 1024):
        part = product(1, width, 4 * width, 4), elementwise(1, 4 * width, 4, name="layernorm")
        for kernels in (part, inside(part)):
            assert seconds(kernels, found) == pytest.approx(in_a_pass(kernels), rel=0.1)


def test_the_terms_of_an_operation_add_up_to_its_time() -> None:
    """With every factor 1 and every fixed cost as measured alone."""
    fixed_s = {"operation_s": 0.0, "product_s": 2e-6, "attention_s": 1.4e-5, "lookup_s": 5e-6, "pass_s": 0.0}
    for _, kernels in operations():
        terms = terms_of(ALONE, kernels)
        total_s = sum(amount * fixed_s.get(term[0], 1.0) for term, amount in terms.items())
        assert total_s == pytest.approx(seconds(kernels))
