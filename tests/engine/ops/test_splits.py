"""Partial sums over any uneven cut of heads or columns add up to the whole part."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.spec import WeightsRef
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.layout import whole_model
from tests.support.one_device import (
    CAUSAL,
    GROUPED,
    HEADS_APART,
    TINY,
    hidden_states,
    model_of,
    relative_error,
    run,
    store_of,
)

NAMES = (*TINY, "grouped")


def cuts(size):
    """Bounds 0 = b0 <= b1 <= … = size: empty shares are allowed."""
    return st.lists(st.integers(0, size), max_size=4).map(lambda inner: [0, *sorted(inner), size])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from((*HEADS_APART, "grouped")))
def test_partial_sums_of_heads_add_up_to_the_whole_attention(data, name):
    store = store_of(name)
    heads = store.model.num_heads
    bounds = data.draw(cuts(heads))
    owner = data.draw(st.integers(0, len(bounds) - 2))
    x = hidden_states(store)
    shares = [
        run(ops.Attention(0, a, b, bias=i == owner), store, x)
        for i, (a, b) in enumerate(itertools.pairwise(bounds))
    ]
    whole = run(ops.Attention(0, 0, heads, True), store, x)
    assert relative_error(torch.stack(shares).sum(0), whole) < 1e-5


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_partial_sums_of_columns_add_up_to_the_whole_feed_forward(data, name):
    store = store_of(name)
    columns = store.model.intermediate_size
    bounds = data.draw(cuts(columns))
    owner = data.draw(st.integers(0, len(bounds) - 2))
    x = hidden_states(store)
    shares = [
        run(ops.FeedForward(1, a, b, bias=i == owner), store, x)
        for i, (a, b) in enumerate(itertools.pairwise(bounds))
    ]
    whole = run(ops.FeedForward(1, 0, columns, True), store, x)
    assert relative_error(torch.stack(shares).sum(0), whole) < 1e-5


@settings(max_examples=40, deadline=None)
@given(data=st.data(), name=st.sampled_from((*(name for name in CAUSAL if name in HEADS_APART), "grouped")))
def test_heads_decode_from_their_own_caches(data, name):
    store = store_of(name)
    heads = store.model.num_heads
    bounds = data.draw(cuts(heads))
    x = hidden_states(store, rows=7)
    whole = run(ops.Attention(0, 0, heads, True), store, x)
    total = torch.zeros_like(whole)
    for index, (a, b) in enumerate(itertools.pairwise(bounds)):
        caches = {}
        op = ops.Attention(0, a, b, bias=index == 0, cache="c")
        total += torch.cat([run(op, store, x[:, s:e], caches=caches) for s, e in ((0, 5), (5, 6), (6, 7))], 1)
    assert relative_error(total, whole) < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_is_its_four_operations(name):
    store, model = store_of(name), model_of(name)
    x = hidden_states(store)
    y = run(ops.Residual(0, "attention"), store, x, run(ops.Attention(0, 0, model.num_heads, True), store, x))
    part = run(ops.FeedForward(0, 0, model.intermediate_size, True), store, y)
    y = run(ops.Residual(0, "ffn"), store, y, part)
    assert torch.equal(y, run(ops.Block(0), store, x))


def test_the_output_bias_is_added_by_the_device_that_is_asked_to():
    store = store_of("tiny-gpt2")
    x = hidden_states(store)
    heads, columns = store.model.num_heads, store.model.intermediate_size
    for with_bias, without, key in (
        (ops.Attention(0, 0, heads, True), ops.Attention(0, 0, heads, False), "o.bias"),
        (ops.FeedForward(0, 0, columns, True), ops.FeedForward(0, 0, columns, False), "down.bias"),
    ):
        bias = store.get(with_bias.slices(store.model)[0])[key]
        assert bias.abs().min() > 0
        torch.testing.assert_close(run(with_bias, store, x) - run(without, store, x), bias.expand_as(x))


def test_a_cache_of_other_kv_heads_is_refused():
    store = store_of("tiny-llama")
    x, caches = hidden_states(store), {}
    run(ops.Attention(0, 0, 2, True, "c"), store, x, caches=caches)
    with pytest.raises(PlanError, match="must keep its heads"):
        run(ops.Attention(0, 2, 4, True, "c"), store, x, caches=caches)


def assert_a_layer_is_its_parts(store, batch, rows):
    x = hidden_states(store, batch, rows)
    attention, residual, ffn, residual_ffn = ops.Block(1).parts(store.model)
    y = run(residual, store, x, run(attention, store, x))
    expected = run(residual_ffn, store, y, run(ffn, store, y))
    before = x.clone()
    assert relative_error(run(ops.Block(1), store, x), expected) < 1e-5
    assert torch.equal(x, before), "the input is kept"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("batch", "rows"), [(1, 1), (2, 1), (1, 5)])
def test_a_layer_is_its_parts_and_their_additions(name, batch, rows):
    """One row takes a way of its own, which adds within the products."""
    assert_a_layer_is_its_parts(store_of(name), batch, rows)


@pytest.mark.parametrize("absent", ["output_bias", "ffn_bias"])
def test_a_layer_of_one_row_keeps_the_bias_of_either_part(absent):
    store = WeightStore(GROUPED.model_copy(update={absent: False}), WeightsRef(kind="random"), 3)
    for piece in whole_model(store.model):
        store.load(piece)
    assert_a_layer_is_its_parts(store, 1, 1)
