"""`linear`: every kernel computes the same product, and the table decides which one."""

import pytest
import torch

from engine.ops.torch_kernels import linear as module
from engine.ops.torch_kernels import linear_probe
from engine.ops.torch_kernels.linear import PRODUCTS, linear, use
from engine.ops.torch_kernels.linear_table import (
    ROWS,
    SIDES,
    LinearChoice,
    LinearTable,
    row_class,
    size_class,
)


@pytest.fixture(autouse=True)
def default_kernels():
    yield
    use(None)


def table_of(kernel_of):
    """A table whose kernel is `kernel_of(rows, side)`."""
    choices = tuple(
        LinearChoice(dtype="float32", rows=rows, side=side, kernel=kernel_of(rows, side), seconds={})
        for rows in ROWS
        for side in SIDES
    )
    return LinearTable(processor="a test", torch="0", row_library="", choices=choices)


@pytest.fixture
def called(monkeypatch):
    """The names of the kernels that `linear` calls, other than torch's default."""
    names = []

    def spied(name):
        product = PRODUCTS[name]
        return lambda *inputs: names.append(name) or product(*inputs)

    monkeypatch.setattr(module, "PRODUCTS", {name: spied(name) for name in PRODUCTS})
    return names


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("kernel", "rows"), [("vector", 1), ("onednn", 1), ("onednn", 3), ("onednn", 40)])
def test_every_kernel_computes_the_product(kernel, rows, biased):
    torch.manual_seed(0)
    x, weight, bias = torch.randn(1, rows, 190), torch.randn(210, 190), torch.randn(210)
    exact = x.double() @ weight.double().T + (bias.double() if biased else 0)
    use(table_of(lambda rows, side: kernel))
    with torch.inference_mode():
        got = linear(x, weight, bias if biased else None)
    assert got.shape == (1, rows, 210)
    torch.testing.assert_close(got.double(), exact, rtol=0, atol=1e-4)


def test_the_class_of_rows_and_size_decides(called):
    use(table_of(lambda rows, side: "onednn" if (rows, side) == (8, 512) else "default"))
    for rows, side in ((8, 512), (3, 512), (8, 256), (8, 1024), (1, 512)):
        linear(torch.zeros(rows, side), torch.zeros(side, side))
    assert called == ["onednn", "default", "default", "default", "default"]


def test_the_length_of_the_matrixs_rows_decides_for_one_row(called):
    use(table_of(lambda rows, side: "vector" if (rows, side) == (1, 2048) else "default"))
    for inner, cols in ((2048, 512), (512, 2048), (512, 32_000)):
        linear(torch.zeros(1, inner), torch.zeros(cols, inner))
    assert called == ["vector", "default", "default"]


def test_every_probed_product_is_in_a_class_of_its_own():
    assert [row_class(rows) for rows in ROWS] == [0, 1, 2, 3, 4]
    assert [size_class(side * side) for side in SIDES] == [0, 1, 2, 3]
    assert (row_class(2), row_class(10_000)) == (1, 4)
    assert size_class(32_000 * 4096) == 3


@pytest.mark.parametrize(
    ("x", "weight"),
    [
        (torch.zeros(8, 20), torch.zeros(20, 20)),  # the call takes longer than the product
        (torch.zeros(8, 300), torch.zeros(512, 512)[:, 100:400]),  # a view with gaps
        (torch.zeros(8, 512, dtype=torch.float64), torch.zeros(512, 512, dtype=torch.float64)),
        (torch.zeros(0, 512), torch.zeros(512, 512)),
    ],
    ids=["small", "with gaps", "a dtype that was not probed", "no rows"],
)
def test_what_no_class_covers_takes_the_default(called, x, weight):
    use(table_of(lambda rows, side: "onednn"))
    assert linear(x, weight).shape == (x.shape[0], weight.shape[0])
    assert called == []


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [
        ({"default": 1.0, "vector": 1.2, "onednn": 0.5}, "onednn"),
        ({"default": 1.0, "vector": 0.5, "onednn": 0.8}, "vector"),
        ({"default": 1.0, "vector": 0.95, "onednn": 0.95}, "default"),  # a tie
        ({"default": 1.0, "vector": 0.95, "row": 1.0}, "row"),
        ({"default": 0.95, "row": 1.0}, "row"),
        ({"default": 1.0, "vector": 0.85, "row": 1.0}, "vector"),
        ({"default": 0.85, "row": 1.0}, "default"),
    ],
)
def test_the_probe_takes_the_fastest_and_in_a_tie_keeps_ours_or_else_the_default(seconds, chosen):
    choice = linear_probe.choice(linear_probe.Place("float32", 1, 256), seconds)
    assert (choice.kernel, choice.seconds) == (chosen, seconds)


def test_the_probe_tries_a_vector_with_one_row_alone():
    assert set(linear_probe.kernels_for("float32", 1, "")) == {"default", "vector", "onednn"}
    assert set(linear_probe.kernels_for("float32", 1, "ours.so")) == {"default", "vector", "onednn", "row"}
    assert set(linear_probe.kernels_for("float32", 3, "ours.so")) == {"default", "onednn"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 8])
def test_this_processor_computes_with_every_kernel_that_the_probe_tries(dtype, rows):
    x, weight = (
        torch.ones(1, rows, 64, dtype=getattr(torch, dtype)),
        torch.ones(64, 64).to(getattr(torch, dtype)),
    )
    tried = linear_probe.kernels_for(dtype, rows, linear_probe.make_library())
    for name in tried:
        assert PRODUCTS[name](x, weight, None).unique().tolist() == [64.0], name
    assert "default" in tried


def test_a_processor_without_bfloat16_is_not_asked_for_onednns_product_of_it(monkeypatch):
    for able in (True, False):
        monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda able=able: able)
        assert ("onednn" in linear_probe.kernels_for("bfloat16", 8, "")) is able
        assert "onednn" in linear_probe.kernels_for("float32", 8, "")


@pytest.mark.parametrize(("longest_s", "rounds"), [(0.0, 1), (1e9, linear_probe.ROUNDS)])
def test_the_probe_of_a_busy_host_ends_after_the_first_round(monkeypatch, longest_s, rounds):
    turns = []
    monkeypatch.setattr(linear_probe, "LONGEST_S", longest_s)
    monkeypatch.setattr(linear_probe, "WORKING_SET_BYTES", 4 * SIDES[-1] ** 2)
    monkeypatch.setattr(
        linear_probe, "_turn_s", lambda product, x, matrices: turns.append(product) or 1.0 / len(turns)
    )
    table = linear_probe.probe(["float32"])
    kernels = {rows: len(linear_probe.kernels_for("float32", rows, table.row_library)) for rows in ROWS}
    tried = len(SIDES) * (sum(kernels.values()) + (linear_probe.ROW_ROUNDS - 1) * kernels[1])
    packed = 2 * linear_probe.ROUNDS if table.row_library else 0
    four_in_turn = 2 * linear_probe.ROUNDS * len(linear_probe.LENGTHS) if table.row_library else 0
    assert (len(turns) - packed - rounds * tried) in range(four_in_turn + 1)
    assert len(table.choices) == len(ROWS) * len(SIDES)
    assert table.choices[-1].seconds["default"] > 0


@pytest.mark.parametrize(
    ("shares", "found"),
    [
        ((1.0, 0.95, 0.8, 0.7), 2048),
        ((0.5, 0.5, 0.5, 0.5), 512),
        ((0.5, 1.0, 0.5, 0.5), 2048),
        ((0.5, 0.5, 0.5, 0.95), None),
    ],
)
def test_four_rows_are_read_in_turn_from_the_length_on_from_which_that_is_a_tenth_faster(
    monkeypatch, shares, found
):
    """`shares`: the time of four in turn, as a part of that of one after the other, by length."""
    by_length = dict(zip(linear_probe.LENGTHS, shares, strict=True))
    set_to = []

    def turn_s(product, x, matrices):
        length = x.shape[-1]
        assert next(matrices).shape[1] == length
        return 1.0 if set_to[-1] is None or length < set_to[-1] else by_length[length]

    monkeypatch.setattr(linear_probe, "read_four_rows_from", set_to.append)
    monkeypatch.setattr(linear_probe, "_turn_s", turn_s)
    memory = torch.zeros(2 * 1024 * 4096, dtype=torch.bfloat16)
    assert linear_probe.four_rows_from(memory) == found
    assert set_to[-1] == found


@pytest.mark.parametrize(
    ("seconds", "whole"),
    [
        ([1.05, 1.05, 1.05, 1.05], True),
        ([0.7, 0.9, 1.1, 1.3], True),
        ([1.2, 1.2, 1.2, 1.2], False),
        ([1.0, 1.0, 1.0, 1.6], False),
        ([None, None, None, None], False),
    ],
)
def test_one_row_takes_whole_parts_of_a_layer_where_our_product_is_not_slower_in_the_mean(seconds, whole):
    """`seconds`: of our product where torch's default takes 1, by size."""
    found = {
        side: {"default": 1.0} | ({} if ours is None else {"row": ours})
        for side, ours in zip(SIDES, seconds, strict=True)
    }
    choices = table_of(lambda rows, side: "default").choices
    timed = tuple(
        one.model_copy(update={"seconds": found[one.side] if one.rows == 1 else {}}) for one in choices
    )
    table = LinearTable(processor="a test", torch="0", row_library="ours", choices=timed)
    assert table.whole_parts is whole
    assert not table.model_copy(update={"row_library": ""}).whole_parts
