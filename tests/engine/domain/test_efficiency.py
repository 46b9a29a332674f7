"""Efficiency over rows and width: a grid of points, and what is between them."""

import pytest

from engine.domain.efficiency import Efficiency, check_grid, efficiency
from engine.ops.cost import op_time_s
from engine.ops.kernels import product
from tests.support.small_cases import star


def point(rows, width, frac):
    return Efficiency(rows=rows, width=width, frac=frac, basis="fitted")


TABLE = (point(1, 8, 0.1), point(1, 32, 0.2), point(16, 8, 0.5), point(16, 32, 0.8))


@pytest.mark.parametrize(
    ("rows", "width", "expected"),
    [
        (1, 8, 0.1),
        (16, 32, 0.8),
        (1, 16, 0.15),  # half of the way from 8 to 32 on a logarithmic scale
        (4, 8, 0.3),
        (4, 16, (0.15 + 0.65) / 2),
        (1, 1, 0.1),  # constant beyond the table
        (1000, 1000, 0.8),
        (1000, 16, 0.65),
    ],
)
def test_efficiency_is_linear_in_logarithms_between_points_and_constant_beyond(rows, width, expected):
    assert efficiency(TABLE, rows, width) == pytest.approx(expected)


def test_a_grid_with_a_hole_or_a_point_twice_is_refused():
    check_grid(TABLE)
    with pytest.raises(ValueError, match=r"no point for rows 16 and width 32"):
        check_grid(TABLE[:3])
    with pytest.raises(ValueError, match=r"a point is there twice"):
        check_grid((*TABLE, TABLE[0]))
    with pytest.raises(ValueError, match=r"no point for rows 16 and width 32"):
        star([1e9], efficiencies=TABLE[:3])


def test_a_product_takes_its_flops_at_the_efficiency_of_its_rows_and_its_narrower_side():
    device = star([1e9], efficiencies=TABLE, compute_model="serial", op_overhead_s=0.0).devices[0]
    for inner, cols in ((8, 100), (100, 8)):
        kernel = product(1, inner, cols, 4)
        expected_s = 2 * inner * cols / (1e9 * 0.1) + kernel.bytes / device.memory_byte_per_s
        assert op_time_s(device, [kernel]) == pytest.approx(expected_s)
