"""Our products of one row are exact to rounding, for any shape and slice; their library is made whole."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.models.weights.quantise import quantise
from engine.ops.torch_kernels import linear as module
from engine.ops.torch_kernels import row_library
from engine.ops.torch_kernels.linear import PRODUCTS, linear, use
from engine.ops.torch_kernels.linear_table import ROWS, SIDES, LinearChoice, LinearTable
from engine.ops.torch_kernels.packed import Packed
from engine.ops.torch_kernels.row_library import compiler, loaded, make_library
from engine.ops.torch_kernels.row_products import (
    _functions,
    packed_product,
    read_four_rows_from,
    row_product,
)

needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")

ROUNDING = {torch.float32: 1e-5, torch.bfloat16: 2**-8}
"""Relative, and of bfloat16 half of what two neighbours differ by."""


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    _functions.cache_clear()
    loaded.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        make_library()
        yield
    _functions.cache_clear()
    loaded.cache_clear()


def drawn(seed, outputs, inputs, dtype, biased):
    one = torch.Generator().manual_seed(seed)
    weight = torch.randn(outputs, inputs, generator=one).to(dtype)
    x = torch.randn(1, 1, inputs, generator=one).to(dtype)
    return x, weight, torch.randn(outputs, generator=one).to(dtype) if biased else None


def assert_is_the_product(got, x, weight, bias):
    """To rounding, of the sum of all sizes: a sum near zero has large terms."""
    more = 0 if bias is None else bias.double()
    exact = x.double() @ weight.double().T + more
    sizes = x.double().abs() @ weight.double().abs().T + (0 if bias is None else more.abs())
    assert got.shape == exact.shape and got.dtype is x.dtype
    bound = 1e-5 * sizes + (ROUNDING[x.dtype] * exact.abs() if x.dtype is torch.bfloat16 else 0)
    assert bool(((got.double() - exact).abs() <= bound + 1e-30).all())


@needs_compiler
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 1000),
    outputs=st.integers(1, 40),
    inputs=st.integers(1, 300),
    before=st.integers(0, 5),
    after=st.integers(0, 5),
    dtype=st.sampled_from(sorted(ROUNDING, key=str)),
    biased=st.booleans(),
    four_from=st.sampled_from([None, 1, 100]),
)
def test_a_product_of_any_slice_of_a_matrix_is_exact_to_rounding(
    seed, outputs, inputs, before, after, dtype, biased, four_from
):
    x, whole, bias = drawn(seed, outputs + before, inputs + before + after, dtype, biased)
    weight = whole[before:, before : before + inputs]
    x, bias = x[..., :inputs], bias if bias is None else bias[before:]
    read_four_rows_from(four_from)
    try:
        assert_is_the_product(row_product(x, weight, bias), x, weight, bias)
    finally:
        read_four_rows_from(None)


@needs_compiler
def test_a_table_says_from_which_length_on_rows_are_read_four_in_turn():
    """Four sums of eight or more numbers round otherwise than two of them."""
    x, weight, _ = drawn(0, 64, 1000, torch.float32, False)
    found = []
    for four_from in (1000, 1001, 1, None):
        use(LinearTable(processor="", torch="0", row_library="ours", four_rows_from=four_from, choices=()))
        found.append(row_product(x, weight, None))
    use(None)
    four, one, four_again, one_again = found
    assert torch.equal(four, four_again) and torch.equal(one, one_again) and not torch.equal(four, one)


@needs_compiler
@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(1, 3),
    outputs=st.integers(1, 20),
    inputs=st.integers(1, 700),
    before=st.integers(0, 200),
    after=st.integers(0, 5),
    bits=st.sampled_from([8, 4]),
    dtype=st.sampled_from(sorted(ROUNDING, key=str)),
    biased=st.booleans(),
    by_columns=st.booleans(),
)
def test_a_product_with_any_slice_of_a_packed_matrix_is_exact_to_rounding(
    seed, rows, outputs, inputs, before, after, bits, dtype, biased, by_columns
):
    _, whole, bias = drawn(seed, outputs, before + inputs + after, torch.float32, biased)
    whole = whole.t().contiguous().t() if by_columns else whole
    weight = quantise(whole, bits, dtype)[:, before : before + inputs]
    x = drawn(seed + 1, inputs, rows, dtype, False)[1].T.contiguous()
    bias = bias if bias is None else bias.to(dtype)
    numbers = Packed(weight.numbers, inputs, torch.float32).restored()
    assert_is_the_product(packed_product(x[None], weight, bias), x[None], numbers, bias)


@needs_compiler
@pytest.mark.parametrize("bits", [8, 4])
def test_outliers_of_a_packed_row_do_not_spoil_its_small_numbers(bits):
    """Sums are made of the numbers themselves, not of differences of larger ones."""
    whole = torch.full((4, 256), 1e-3)
    whole[:, 7] = 1.0
    x = torch.ones(1, 256)
    x[0, 7] = 0
    weight = quantise(whole, bits, torch.float32)
    assert_is_the_product(packed_product(x, weight, None), x, weight.restored(), None)


@needs_compiler
def test_few_rows_read_a_packed_matrix_as_it_is_and_more_restore_it(monkeypatch):
    seen = []

    def spied(x, weight, bias):
        seen.append(len(x))
        return packed_product(x, weight, bias)

    monkeypatch.setattr(module, "packed_product", spied)
    use(LinearTable(processor="a test", torch="0", row_library="ours", packed_rows=3, choices=()))
    try:
        weight = quantise(torch.ones(40, 300), 8, torch.float32)
        for rows in (1, 3, 4):
            got = linear(torch.ones(rows, 300), weight)
            torch.testing.assert_close(got, torch.full((rows, 40), 300.0), rtol=1e-3, atol=0)
    finally:
        use(None)
    assert seen == [1, 3]


@needs_compiler
def test_a_matrix_that_lies_in_columns_is_left_to_torch():
    x, weight, _ = drawn(0, 300, 200, torch.float32, False)
    columns = weight.t().contiguous().t()
    assert_is_the_product(row_product(x, columns, None), x, columns, None)


@needs_compiler
def test_products_of_several_threads_do_not_disturb_each_other():
    cases = [drawn(seed, 500, 300 + seed, torch.float32, True) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for case, got in zip(cases * 4, pool.map(lambda case: row_product(*case), cases * 4), strict=True):
            assert_is_the_product(got, *case)


@needs_compiler
def test_one_row_of_a_slice_takes_our_product_and_more_rows_take_torchs(monkeypatch):
    choices = tuple(
        LinearChoice(
            dtype="float32", rows=rows, side=side, kernel="row" if rows == 1 else "default", seconds={}
        )
        for rows in ROWS
        for side in SIDES
    )
    seen = []

    def spied(*given):
        seen.append(given[0].shape)
        return row_product(*given)

    monkeypatch.setitem(PRODUCTS, "row", spied)
    use(LinearTable(processor="a test", torch="0", row_library="ours", choices=choices))
    try:
        whole = torch.ones(400, 700)
        for rows in (1, 3):
            assert bool((linear(torch.ones(rows, 500), whole[:, 100:600]) == 500).all())
    finally:
        use(None)
    assert seen == [(1, 500)]


@needs_compiler
def test_processes_that_compile_at_once_leave_one_whole_library(tmp_path):
    line = "from engine.ops.torch_kernels.row_library import make_library; print(make_library())"
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    begun = [
        subprocess.Popen((sys.executable, "-c", line), env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    names = {process.communicate()[0].strip() for process in begun}
    assert {file.name for file in (tmp_path / "edgeloom" / "compiled").iterdir()} == names
    assert len(names) == 1 and "" not in names


@needs_compiler
def test_a_library_whose_content_is_not_what_its_name_says_is_not_loaded_but_compiled_again(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    name = make_library()
    file = tmp_path / "edgeloom" / "compiled" / name
    whole = file.read_bytes()
    file.write_bytes(whole + b"more")
    assert row_library.library() is None
    monkeypatch.setenv(row_library.LIBRARY_VARIABLE, str(file))
    assert make_library() == "" and row_library.library() is None, "a session compiles none"
    monkeypatch.delenv(row_library.LIBRARY_VARIABLE)
    assert make_library() == name and file.read_bytes() == whole


@pytest.mark.parametrize("status", [None, 1, 0], ids=["none", "one that fails", "one that writes nonsense"])
def test_without_a_compiler_that_works_there_is_no_library_and_nothing_is_left(monkeypatch, tmp_path, status):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = tmp_path / "cc"
    begun = 'for word; do test "$before" = -o && echo half > $word; before=$word; done'
    script.write_text(f"#!/bin/sh\n{begun}\nexit {status}\n")
    script.chmod(0o755)
    monkeypatch.setattr(row_library, "compiler", lambda: None if status is None else str(script))
    assert make_library() == ""
    assert [file for file in (tmp_path / "cache").rglob("*") if file.is_file()] == []
