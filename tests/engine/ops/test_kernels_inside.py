"""Which kernels of an operation have no call of their own on a host."""

from dataclasses import replace

import pytest

from engine.domain.cluster import DeviceSpec
from engine.ops.core import Attention, Block, FeedForward, Residual
from engine.ops.cost import op_time_s
from engine.ops.tensors import Meta
from tests.support.one_device import model_of

BOARD = DeviceSpec(
    name="board", flop_per_s=1e11, memory_bytes=1e9, memory_byte_per_s=1e10, op_overhead_s=1e-5, half_rows=4
)


def kernels(op, model, rows=1, cached=7):
    x = Meta((1, rows, model.hidden_size), model.dtype)
    inputs = (x, x) if isinstance(op, Residual) else (x,)
    return op.cost(model, inputs, cached if op.cache else 0).kernels


def parts_of(model):
    return Attention(0, 0, model.num_heads, True, "a"), FeedForward(0, 0, model.intermediate_size, True)


def test_one_row_goes_through_a_part_made_as_llamas_in_one_call() -> None:
    model = model_of("tiny-llama")
    for part in parts_of(model):
        assert all(kernel.inside for kernel in kernels(part, model))
        assert not any(kernel.inside for kernel in kernels(part, model, rows=2))


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-gemma", "tiny-qwen3"])
def test_other_parts_are_computed_kernel_by_kernel(name) -> None:
    model = model_of(name)
    for part in parts_of(model):
        assert not any(kernel.inside for kernel in kernels(part, model))


@pytest.mark.parametrize(
    ("name", "sums"), [("tiny-llama", [True, True]), ("tiny-gemma", [True, True]), ("tiny-gpt2", [False] * 2)]
)
def test_products_without_biases_add_the_row_that_came_into_a_block(name, sums) -> None:
    model = model_of(name)
    block = kernels(Block(0, "a"), model)
    assert [kernel.inside for kernel in block if kernel.name == "add"] == sums
    assert not any(kernel.inside for kernel in kernels(Residual(0, "ffn"), model))
    assert not any(kernel.inside for kernel in kernels(Block(0, "a"), model, rows=3) if kernel.name == "add")


def test_a_boards_time_does_not_depend_on_the_calls_of_a_host() -> None:
    model = model_of("tiny-llama")
    block = kernels(Block(0, "a"), model)
    apart = [replace(kernel, inside=False) for kernel in block]
    for compute_model in ("flops", "roofline", "serial"):
        assert op_time_s(BOARD, block, None, compute_model) == op_time_s(BOARD, apart, None, compute_model)
