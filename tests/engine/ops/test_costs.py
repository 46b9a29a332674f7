"""What an operation says it costs is what torch does: products, shapes, cache."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.domain.plan import Slice
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.layout import kv_heads
from engine.ops.positions import PositionBlock
from engine.ops.sizes import kv_bytes_per_row
from engine.ops.tensors import Meta, meta_of, payload_bytes
from tests.support.one_device import CAUSAL, HEADS_APART, TINY, hidden_states, model_of, run, store_of

NAMES = (*TINY, "grouped")
ROWS = 9


def operations(model):
    """One or more of every kind that `model` can do, with the inputs' shapes."""
    heads, columns, hidden = model.num_heads, model.intermediate_size, model.hidden_size
    x = (2, ROWS, hidden)
    yield ops.Embed(0), ((2, ROWS),)
    ranges = ((0, heads), (1, heads), (0, 1), (2, 2))
    for start, stop in ranges[:1] if model.qk_norm_over_heads else ranges:
        yield ops.Attention(0, start, stop, True), (x,)
        yield ops.Attention(0, start, stop, False, normed=True), (x,)
    for start, stop in ((0, columns), (5, 19), (3, 3)):
        yield ops.FeedForward(0, start, stop, False), (x,)
        yield ops.FeedForward(0, start, stop, True, normed=True), (x,)
    for part in ("attention", "ffn"):
        yield ops.Residual(0, part), (x, x)
        yield ops.Norm(0, part), (x,)
    yield ops.Block(0), (x,)
    for start, stop in ((0, 4), (3, ROWS), (2, 2), (0, ROWS)):
        for score in ("naive", "reorder") if model.scores_reorder else ("naive",):
            for value in ("naive", "reorder"):
                yield PositionBlock(0, start, stop, ROWS, score, value), (x,)
    yield ops.Add(), (x, x)
    yield ops.FinalHidden(), (x,)
    if model.has_head:
        yield ops.Head(), (x,)
    if model.causal:
        yield PositionBlock(0, 0, 4, 4, "naive", "reorder"), (x,)
        yield PositionBlock(0, 2, 2, 6, cache="c"), (x,)
        yield PositionBlock(0, 2, 5, ROWS, cache="c"), (x,)
        yield ops.Attention(0, 0 if model.qk_norm_over_heads else 1, heads, True, "c"), (x,)
        yield ops.Block(0, "c"), (x,)


def tensors_of(model, shapes):
    if len(shapes[0]) == 2:
        return (torch.arange(2 * ROWS).reshape(2, ROWS) % model.vocab_size,)
    return tuple(torch.randn(shape) for shape in shapes)


@pytest.mark.parametrize("name", NAMES)
def test_products_shapes_and_cache_are_what_torch_does(name):
    store, model = store_of(name), model_of(name)
    for op, shapes in operations(model):
        inputs, caches = tensors_of(model, shapes), {}
        cost = op.cost(model, tuple(meta_of(x) for x in inputs), 0)
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            output = run(op, store, *inputs, caches=caches)
        counted = sum(kernel.flops for kernel in cost.kernels if kernel.kind == "product")
        assert counted == counter.get_total_flops(), op
        assert meta_of(output) == cost.output, op
        cache = caches.get(("c", 0))
        rows, heads = (cache.rows, cache.keys.shape[1]) if cache else (0, 0)
        assert cost.kv_rows == rows, op
        assert cost.kv_bytes == 2 * rows * kv_bytes_per_row(model, heads), op


@pytest.mark.parametrize("name", [*(name for name in CAUSAL if name in HEADS_APART), "grouped"])
def test_decoding_counts_all_cached_rows(name):
    store, model = store_of(name), model_of(name)
    caches = {}
    op = ops.Attention(1, 1, model.num_heads, False, "c")
    run(op, store, hidden_states(store, rows=ROWS), caches=caches)
    for new in (1, 3):
        x = hidden_states(store, rows=new)
        cached = caches["c", 1].rows
        cost = op.cost(model, (meta_of(x),), cached)
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            run(op, store, x, caches=caches)
        counted = sum(kernel.flops for kernel in cost.kernels if kernel.kind == "product")
        assert counted == counter.get_total_flops()
        assert cost.kv_rows == caches["c", 1].rows - cached == new


def test_the_kv_cache_grows_by_the_rows_of_its_own_heads_only():
    model = model_of("grouped")
    x = Meta((4, 5, model.hidden_size))
    cost = ops.Attention(0, 2, 4, True, "c").cost(model, (x,), 0)
    assert kv_heads(model, 2, 4) == (0, 2)
    assert cost.kv_bytes == 4 * 5 * kv_bytes_per_row(model, 2)
    one_group = ops.Attention(0, 0, 3, True, "c").cost(model, (x,), 0)
    assert one_group.kv_bytes == 4 * 5 * kv_bytes_per_row(model, 1)


def test_scores_are_the_working_set_that_grows_with_the_cache():
    model = model_of("tiny-gpt2")
    x = Meta((1, 1, model.hidden_size))
    op = ops.Attention(0, 0, 4, True, "c")
    grown = op.cost(model, (x,), 40).scratch_bytes - op.cost(model, (x,), 30).scratch_bytes
    assert grown == 10 * 4 * payload_bytes(Meta((1,)))


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_runs_with_just_the_slices_that_it_names(name):
    """Where a slice begins in memory decides how a product rounds: not each bit is the same every time."""
    full, model = store_of(name), model_of(name)
    for op, shapes in operations(model):
        store = WeightStore(model, full.ref, full.seed)
        for piece in op.slices(model):
            store.load(piece)
        inputs = tensors_of(model, shapes)
        ours, theirs = run(op, store, *inputs), run(op, full, *inputs)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, msg=str(op))


def test_a_post_norm_residual_needs_the_norm_that_comes_with_any_share():
    op = ops.Residual(0, "attention")
    assert op.slices(model_of("tiny-gpt2")) == ()
    assert op.slices(model_of("tiny-bert")) == (Slice(layer=0, part="attention", axis="heads"),)


@pytest.mark.parametrize("name", NAMES)
def test_norming_beforehand_gives_the_same_numbers_for_the_same_operations(name):
    store, model = store_of(name), model_of(name)
    x = hidden_states(store, rows=ROWS)
    for part, make in (
        ("attention", lambda normed: ops.Attention(1, 0, model.num_heads, True, normed=normed)),
        ("ffn", lambda normed: ops.FeedForward(1, 0, model.intermediate_size, True, normed)),
    ):
        norm, inside, outside = ops.Norm(1, part), make(False), make(True)
        assert torch.equal(run(outside, store, run(norm, store, x)), run(inside, store, x))
        together = [k for op in (norm, outside) for k in op.cost(model, (meta_of(x),), 0).kernels]
        assert together == [*inside.cost(model, (meta_of(x),), 0).kernels]


def test_bfloat16_halves_weights_and_traffic():
    model = model_of("tiny-gpt2").model_copy(update={"dtype": "bfloat16"})
    x = Meta((1, 4, model.hidden_size), "bfloat16")
    half, full = ops.Block(0).cost(model, (x,), 0), ops.Block(0).cost(model_of("tiny-gpt2"), (x,), 0)
    assert 2 * sum(k.bytes for k in half.kernels) == sum(k.bytes for k in full.kernels)
    assert half.output.dtype == "bfloat16"
