"""Measured times between the points of a table: linear in the logarithms, against the formula by hand."""

import pytest

from engine.domain.host_times import ATTENTION, CallCosts, HostProfile, MeasuredPass, MeasuredRow, PackedRow


def profile(points, **more) -> HostProfile:
    rows = tuple(MeasuredRow(rows=r, inner=i, cols=c, s_per_flop=s) for (r, i, c), s in points.items())
    return HostProfile(
        host="h",
        products=rows,
        elementwise_s_per_element=2.0,
        op_overhead_s=100.0,
        memory_byte_per_s=1.0,
        **more,
    )


LINE = {(1, 1, 1): 1.0, (100, 1, 1): 100.0}
SQUARE = {(1, 1, 1): 1.0, (1, 100, 1): 4.0, (100, 1, 1): 16.0, (100, 100, 1): 64.0}


def test_half_way_between_two_points_is_the_geometric_mean():
    # 10 is half way from 1 to 100 on a logarithmic axis, and sqrt(1 · 100) = 10
    assert profile(LINE).product_s("", 10, 1, 1, 1) == pytest.approx(2 * 10 * 10.0 + 100)


def test_two_axes_weigh_all_four_corners():
    # a quarter of the way in rows, half in inner: 16^(1/4) · 4^(1/2) = 4
    rows, inner = 100**0.25, 10
    place = profile(SQUARE)._products.s_per_flop(rows, inner, 1)
    assert place == pytest.approx(4.0)


def test_beyond_the_table_the_nearest_point_counts():
    found = profile(LINE)
    assert found.product_s("", 1000, 7, 9, 1) == pytest.approx(2 * 1000 * 7 * 9 * 100 + 100)


def test_products_in_a_batch_pay_the_overhead_once():
    assert profile(LINE).product_s("", 1, 1, 1, 5) == pytest.approx(5 * 2 * 1.0 + 100)


def test_scores_and_values_find_the_same_row_of_the_attention_table():
    table = (
        MeasuredRow(rows=1, inner=8, cols=32, s_per_flop=3.0),
        MeasuredRow(rows=1, inner=8, cols=64, s_per_flop=6.0),
    )
    found = profile(LINE, attention=table)
    scores, values = found.product_s(ATTENTION, 1, 8, 64, 1), found.product_s(ATTENTION, 1, 64, 8, 1)
    assert scores == values == pytest.approx(2 * 8 * 64 * 6.0 + 100)
    assert profile(LINE).product_s(ATTENTION, 1, 1, 1, 1) == pytest.approx(2 * 1.0 + 100)


def test_a_pass_without_a_name_of_its_own_takes_the_general_time():
    found = profile(LINE, passes=(MeasuredPass(name="norm", overhead_s=7.0, s_per_element=0.5),))
    assert found.pass_s("norm", 10) == 12.0
    assert found.pass_s("other", 10) == 120.0


def test_a_table_must_have_every_combination():
    with pytest.raises(ValueError, match="3 measured products are no full grid"):
        profile(dict(list(SQUARE.items())[:3]))


def test_calls_cost_what_lies_half_way_in_the_logarithm_of_the_width_and_are_constant_beyond_the_ends():
    points = (CallCosts(width=100, product_s=1.0, pass_s=2.0), CallCosts(width=400, product_s=3.0))
    found = profile(LINE, calls=points)
    between = found.calls_at(200)
    assert (between.product_s, between.pass_s, between.lookup_s) == (2.0, 1.0, 0.0)
    assert found.calls_at(50).product_s == 1.0 and found.calls_at(4000).product_s == 3.0
    assert profile(LINE).calls_at(200) == CallCosts(width=200)


def test_a_product_with_quantised_weights_takes_the_time_of_its_format():
    found = profile(LINE, packed=(PackedRow(bits=8, rows=1, s_per_flop=0.25),))
    assert found.product_s("", 1, 1, 1, 1, weight_bits=8.0) == pytest.approx(2 * 0.25 + 100)
    assert found.product_s("", 1, 1, 1, 1, weight_bits=4.125) == found.product_s("", 1, 1, 1, 1)
    assert (found.knows(8.0), found.knows(4.125), found.knows(0.0)) == (True, False, False)
