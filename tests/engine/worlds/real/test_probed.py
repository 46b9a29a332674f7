"""A host of which only the kernels are known is taken to be slower than they are, never faster."""

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.trace import Span
from engine.ops.kernels import product
from engine.ops.torch_kernels.linear_table import ROWS, SIDES, LinearChoice, LinearTable
from engine.worlds.real.dilation import CAUTIOUS, host_s
from engine.worlds.real.probed import MARGIN, probed_profile


def table(flop_per_s: float) -> LinearTable:
    """Every product at one rate by its fastest kernel, bfloat16 a hundred times as slow."""
    choices = tuple(
        LinearChoice(
            dtype=dtype,
            rows=rows,
            side=side,
            kernel="onednn",
            seconds={
                "default": slower * 2 * 2 * rows * side**2 / flop_per_s,
                "onednn": slower * 2 * rows * side**2 / flop_per_s,
            },
        )
        for dtype, slower in (("float32", 1), ("bfloat16", 100))
        for rows in ROWS
        for side in SIDES
    )
    return LinearTable(processor="one", torch="2", row_library="", choices=choices)


@given(rows=st.integers(1, 4000), inner=st.integers(1, 9000), cols=st.integers(1, 9000))
def test_products_take_the_probed_time_of_their_fastest_kernel_and_a_margin(rows, inner, cols):
    profile = probed_profile(table(1e10))
    kernel = product(rows, inner, cols, 4)
    found_s = profile.product_s("", rows, inner, cols, 1) - CAUTIOUS.op_overhead_s
    assert abs(found_s / (MARGIN * kernel.flops / 1e10) - 1) < 1e-6


def test_an_operation_takes_longer_than_its_products_alone_and_a_fast_host_less_than_a_slow_one():
    def of_layer(rate: float, rows: int) -> float:
        weights = 12 * 768**2
        span = Span("a", "compute", "op", 0, 0.0, 1.0, bytes=4 * weights, flops=2 * rows * weights)
        return host_s(span, probed_profile(table(rate)))

    for rows in (1, 8, 200):
        alone_s = 2 * rows * 12 * 768**2 / 1e10
        assert of_layer(1e10, rows) > MARGIN * alone_s
        assert of_layer(1e11, rows) < of_layer(1e10, rows) < of_layer(1e9, rows)


def test_memory_is_as_fast_as_one_row_reads_the_largest_matrix():
    assert abs(probed_profile(table(1e10)).memory_byte_per_s * MARGIN / 2e10 - 1) < 1e-6
