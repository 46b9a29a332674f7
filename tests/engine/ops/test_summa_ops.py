"""SUMMA's blocks of a feed-forward part: the same numbers, what they cost, and when to activate."""

from itertools import pairwise

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from engine.ops import core as ops
from engine.ops.summa import SummaActivate, SummaDown, SummaUp
from engine.ops.tensors import meta_of
from engine.ops.torch_kernels.core import ACTIVATIONS
from tests.support.one_device import hidden_states, run, store_of

NAMES = ("tiny-gpt2", "tiny-bert", "tiny-llama", "grouped")


def blocks_of(size, parts):
    bounds = [size * i // parts for i in range(parts + 1)]
    return list(pairwise(bounds))


def feed_forward(store, x, parts):
    """Block by block, the sum over input blocks complete before the activation."""
    model = store.model
    units, output = blocks_of(model.hidden_size, parts), 0
    for number, columns in enumerate(blocks_of(model.intermediate_size, parts)):
        sums = sum(run(SummaUp(0, *unit, *columns), store, x[..., slice(*unit)]) for unit in units)
        h = run(SummaActivate(0, *columns), store, sums)
        output = output + torch.cat(
            [run(SummaDown(0, *columns, *unit, bias=number == 0), store, h) for unit in units], dim=-1
        )
    return output


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_blocks_give_the_feed_forward_part(name, parts):
    store, x = store_of(name), hidden_states(store_of(name))
    whole = run(ops.FeedForward(0, 0, store.model.intermediate_size, True, normed=True), store, x)
    torch.testing.assert_close(feed_forward(store, x, parts), whole, rtol=1e-4, atol=1e-5)


def test_activating_partial_sums_gives_other_numbers():
    store = store_of("tiny-gpt2")
    model, x = store.model, 4 * hidden_states(store)
    parts = [
        run(SummaUp(0, *unit, 0, model.intermediate_size), store, x[..., slice(*unit)])
        for unit in blocks_of(model.hidden_size, 2)
    ]
    activation = ACTIVATIONS[model.activation]
    assert float((activation(sum(parts)) - sum(map(activation, parts))).abs().max()) > 0.5


@pytest.mark.parametrize("name", NAMES)
def test_products_and_shapes_are_what_torch_does(name):
    store = store_of(name)
    model, matrices = store.model, 1 + store.model.gated_ffn
    for op, inner in (
        (SummaUp(0, 2, 7, 5, 19), 5),
        (SummaUp(0, 2, 7, 4, 4), 5),
        (SummaActivate(0, 5, 19), 14 * matrices),
        (SummaDown(0, 5, 19, 2, 7, True), 14),
        (SummaDown(0, 4, 4, 2, 7, False), 0),
    ):
        x = torch.randn(2, 3, inner)
        with FlopCounterMode(display=False) as counter:
            output = run(op, store, x)
        cost = op.cost(model, (meta_of(x),), 0)
        assert cost.output == meta_of(output), op
        products = sum(kernel.flops for kernel in cost.kernels if kernel.kind == "product")
        assert products == counter.get_total_flops(), op
