"""The feed-forward part taken apart: its two matrices, over any columns and rows, are the part again."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.heads import Project
from engine.ops.tensors import meta_of
from engine.ops.tiles import Contract, Expand
from tests.support.one_device import TINY, hidden_states, model_of, run, store_of

NAMES = (*(name for name in TINY if not model_of(name).num_experts), "grouped")
"""Models with one feed-forward part in each layer."""
ROWS = 9


@pytest.mark.parametrize("name", NAMES)
def test_tiles_of_rows_expanded_and_contracted_are_the_feed_forward_part(name):
    store, model = store_of(name), model_of(name)
    x = hidden_states(store, rows=ROWS)
    for start, stop in ((0, model.intermediate_size), (5, 19), (3, 3)):
        for bias in (True, False):
            expected = run(ops.FeedForward(0, start, stop, bias), store, x)
            tiles = [run(Expand(0, start, stop), store, x[:, a:b]) for a, b in ((0, 4), (4, 5), (5, ROWS))]
            sums = [run(Contract(0, start, stop, bias), store, tile) for tile in tiles]
            assert torch.allclose(torch.cat(sums, dim=1), expected, atol=1e-5), (start, stop, bias)


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_normed_already_are_not_normed_again(name):
    store, model = store_of(name), model_of(name)
    x, columns, heads = hidden_states(store, rows=ROWS), model.intermediate_size, model.num_heads
    for part, plain, told in (
        ("ffn", Expand(0, 0, columns), Expand(0, 0, columns, normed=True)),
        ("attention", Project(0, 0, heads), Project(0, 0, heads, normed=True)),
    ):
        normed = run(ops.Norm(0, part), store, x)
        assert torch.equal(run(told, store, normed), run(plain, store, x))


@pytest.mark.parametrize("name", NAMES)
def test_costs_are_what_torch_does_and_slices_are_enough(name):
    full, model = store_of(name), model_of(name)
    x = hidden_states(full, rows=ROWS)
    for start, stop in ((0, model.intermediate_size), (5, 19), (3, 3)):
        inner = torch.randn(*x.shape[:2], stop - start)
        for op, given in (
            (Expand(0, start, stop), x),
            (Expand(0, start, stop, normed=True), x),
            (Contract(0, start, stop, True), inner),
        ):
            store = WeightStore(model, full.ref, full.seed)
            for piece in op.slices(model):
                store.load(piece)
            cost = op.cost(model, (meta_of(given),), 0)
            with FlopCounterMode(display=False) as counter:
                output = run(op, store, given)
            assert meta_of(output) == cost.output, op
            counted = sum(kernel.flops for kernel in cost.kernels if kernel.kind == "product")
            assert counted == counter.get_total_flops(), op


def test_both_matrices_cost_what_the_whole_part_costs():
    for name in NAMES:
        model = model_of(name)
        x = meta_of(hidden_states(store_of(name), rows=ROWS))
        whole = ops.FeedForward(0, 0, 24, True).cost(model, (x,), 0)
        first = Expand(0, 0, 24).cost(model, (x,), 0)
        second = Contract(0, 0, 24, True).cost(model, (first.output,), 0)
        assert (*first.kernels, *second.kernels) == whole.kernels
