"""From measured seconds to the tables of a profile, by hand."""

import pytest

from emulator.calibration.calibrate import as_in_all
from emulator.calibration.operations import TimedOperation
from emulator.calibration.stopwatch import quartile
from emulator.calibration.tables import LEAST_FRAC, as_tables
from emulator.calibration.timed_kernels import (
    ATTENTION_HEADS,
    PASS_COLS,
    PASS_ROWS,
    WORKING_SET_BYTES,
    pass_names,
    passes_in,
)

CALL_S = 1e-6
TIMES = {
    ("call",): CALL_S,
    ("call in place",): 3e-6,
    ("memory",): 0.5,
    ("product", 2, 10, 100): CALL_S + 4e-5,
    ("packed call", 8, 1): 2e-5,
    ("packed call", 8, 2): 3e-5,
    ("packed", 8, 2, 10, 100): 3e-5 + 1e-5,
    ("attention", 1, 32, 128): 2 * CALL_S + 6e-5,
    **{
        ("pass", name, rows): 5e-6 + 2e-9 * rows * PASS_COLS * passes_in(name)
        for name in pass_names()
        for rows in PASS_ROWS
    },
}


def test_a_product_is_timed_without_its_call_and_per_flop() -> None:
    (row,) = as_tables(TIMES).products
    assert (row.rows, row.inner, row.cols) == (2, 10, 100)
    assert row.s_per_flop == pytest.approx(4e-5 / (2 * 2 * 10 * 100))


def test_a_product_with_weights_in_8_bits_is_a_row_of_that_format() -> None:
    (row,) = as_tables(TIMES).packed
    assert (row.bits, row.rows, row.inner, row.cols) == (8, 2, 10, 100)
    assert row.s_per_flop == pytest.approx(1e-5 / (2 * 2 * 10 * 100))


def test_a_small_product_takes_part_of_its_time_even_where_its_call_alone_seemed_longer() -> None:
    (row,) = as_tables(TIMES | {("packed", 8, 2, 10, 100): 2e-5}).packed
    assert row.s_per_flop == pytest.approx(LEAST_FRAC * 2e-5 / (2 * 2 * 10 * 100))


def test_a_call_of_one_row_with_weights_in_8_bits_costs_what_it_takes_beyond_any_call() -> None:
    assert as_tables(TIMES).calls_at(500).packed_s == pytest.approx(2e-5 - CALL_S)


def test_attention_is_two_products_for_every_head() -> None:
    (row,) = as_tables(TIMES).attention
    assert row.s_per_flop == pytest.approx(6e-5 / (2 * ATTENTION_HEADS * 2 * 1 * 32 * 128))


def test_a_pass_has_an_overhead_and_a_time_per_element() -> None:
    tables = as_tables(TIMES)
    assert {one.name for one in tables.passes} == set(pass_names())
    for one in tables.passes:
        assert one.overhead_s == pytest.approx(5e-6)
        assert one.s_per_element == pytest.approx(2e-9)
    assert tables.elementwise_s_per_element == pytest.approx(2e-9)


def test_the_overhead_is_that_of_a_call_between_others_and_memory_that_of_a_large_copy() -> None:
    tables = as_tables(TIMES)
    assert tables.op_overhead_s == 3e-6
    assert tables.memory_byte_per_s == WORKING_SET_BYTES / 0.5


def test_a_product_that_takes_no_longer_than_its_call_still_takes_time() -> None:
    (row,) = as_tables(TIMES | {("product", 2, 10, 100): 0.5 * CALL_S}).products
    assert row.s_per_flop > 0


def test_disturbed_samples_do_not_raise_the_lower_quartile() -> None:
    assert quartile([1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0]) == 1.0
    assert quartile([1.0, 2.0, 3.0]) == 1.0


def test_what_was_timed_in_the_first_round_alone_counts_at_the_speed_of_all_rounds() -> None:
    """The second round was a third slower but for one pass that something else slowed."""

    def timed(*seconds: float) -> list[TimedOperation]:
        return [TimedOperation("m", "block", 1, (), one) for one in seconds]

    rounds = [timed(3.0, 6.0, 30.0), timed(4.0, 8.0, 90.0)]
    assert [one.seconds for one in as_in_all(rounds, timed(6.0, 12.0))] == pytest.approx([7.0, 14.0])
    assert as_in_all(rounds[:1], timed(6.0)) == timed(6.0)
    assert as_in_all(rounds, []) == []
