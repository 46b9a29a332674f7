"""Voltage's layer: rows of the whole layer whatever the order, and its published counts of products."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.models import catalogue
from engine.ops import core as ops
from engine.ops.positions import PositionBlock
from engine.ops.tensors import Meta
from tests.support.one_device import (
    CAUSAL,
    TINY,
    hidden_states,
    layers,
    model_of,
    relative_error,
    run,
    store_of,
)

NAMES = (*TINY, "grouped")
ROWS = 9


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    start=st.integers(0, ROWS),
    rows=st.integers(0, ROWS),
    trim=st.booleans(),
    score=st.sampled_from(("naive", "reorder")),
    value=st.sampled_from(("naive", "reorder")),
)
def test_any_rows_in_any_order_are_rows_of_the_whole_layer(name, start, rows, trim, score, value):
    store, model = store_of(name), model_of(name)
    assume(model.scores_reorder or score == "naive")
    stop = min(ROWS, start + rows)
    x = hidden_states(store, rows=ROWS)
    op = PositionBlock(1, start, stop, stop if trim and model.causal else ROWS, score, value)
    whole = run(ops.Block(1), store, x)[:, start:stop]
    got = run(op, store, x)
    assert got.shape == whole.shape
    if stop > start:
        assert relative_error(got, whole) < 1e-5


@pytest.mark.parametrize("name", [*CAUSAL, "grouped"])
@pytest.mark.parametrize("start", [0, 4, ROWS], ids=["all rows", "some rows", "no rows"])
def test_the_owner_of_the_cache_decodes_as_if_it_had_done_the_prompt_alone(name, start):
    store = store_of(name)
    x = hidden_states(store, rows=ROWS)
    new = hidden_states(store, rows=1, seed=1)
    alone, caches = {}, {}
    expected = layers(store, x, alone)
    shared = x
    for layer in range(store.model.num_layers):
        run(PositionBlock(layer, start, ROWS, ROWS, cache="c"), store, shared, caches=caches)
        shared = run(ops.Block(layer), store, shared)
    assert relative_error(shared, expected) < 1e-5
    assert relative_error(layers(store, new, caches), layers(store, new, alone)) < 1e-5


@pytest.mark.parametrize(
    ("op", "name", "match"),
    [
        (PositionBlock(0, 0, 3, ROWS, "reorder"), "tiny-llama", "rotary"),
        (PositionBlock(0, 0, 3, ROWS, "reorder"), "tiny-qwen3", "rotary"),
        (PositionBlock(0, 0, 3, 3), "tiny-bert", "not causal"),
        (PositionBlock(0, 2, 5, 4), "tiny-gpt2", "keys_stop is 4"),
        (PositionBlock(0, 0, 3, ROWS, value_order="reorder", cache="c"), "tiny-gpt2", "KV cache"),
    ],
)
def test_impossible_orders_and_rows_are_refused_by_cost_and_arithmetic_alike(op, name, match):
    store = store_of(name)
    with pytest.raises(PlanError, match=match):
        op.cost(store.model, (Meta((2, ROWS, store.model.hidden_size)),), 0)
    with pytest.raises(PlanError, match=match):
        run(op, store, hidden_states(store, rows=ROWS))


def macs(op, model, rows):
    cost = op.cost(model, (Meta((1, rows, model.hidden_size)),), 0)
    return sum(kernel.flops for kernel in cost.kernels if kernel.kind == "product") // 2


BERT_LARGE = catalogue.resolve("bert-large")[0]


@pytest.mark.parametrize(
    ("rows", "attention_naive", "attention_reorder", "order", "layer"),
    [
        # Hu, Li: Voltage (ICDCS 2024), section IV, for N = 200 positions and 2 to 6 devices
        (100, 565248000, 969932800, "naive", 1508966400),
        (67, 517128192, 649854976, "naive", 1149419520),
        (50, 492339200, 484966400, "reorder", 956825600),
        (40, 477757440, 387973120, "reorder", 765460480),
        (34, 469008384, 329777152, "reorder", 650641408),
    ],
)
def test_products_of_a_bert_large_layer_are_voltage_s(rows, attention_naive, attention_reorder, order, layer):
    hidden, columns = 1024, 4096
    rest = rows * hidden * hidden + 2 * rows * hidden * columns
    naive = macs(PositionBlock(0, 0, rows, 200, "naive", "naive"), BERT_LARGE, 200)
    assert naive == attention_naive + rest
    reordered = macs(PositionBlock(0, 0, rows, 200, "reorder", "reorder"), BERT_LARGE, 200)
    assert reordered == attention_reorder + rest
    assert macs(PositionBlock(0, 0, rows, 200, order, order), BERT_LARGE, 200) == layer


def test_products_of_the_whole_layer_are_those_of_all_positions():
    whole = macs(ops.Block(0), BERT_LARGE, 200)
    assert whole == 2598502400 == macs(PositionBlock(0, 0, 200, 200), BERT_LARGE, 200)


@pytest.mark.parametrize(("positions", "rows", "naive", "reorder"), [(6, 2, 544, 384), (12, 4, 1280, 1152)])
def test_products_per_head_of_the_paper_s_small_example(positions, rows, naive, reorder):
    model = ModelSpec(
        name="small",
        family="bert",
        num_layers=1,
        hidden_size=8,
        num_heads=2,
        num_kv_heads=2,
        head_dim=4,
        intermediate_size=16,
        vocab_size=10,
        max_positions=16,
        causal=False,
        norm_position="post",
    )
    rest = rows * 8 * 8 + 2 * rows * 8 * 16
    for order, per_head in (("naive", naive), ("reorder", reorder)):
        op = PositionBlock(0, 0, rows, positions, order, order)
        assert macs(op, model, positions) == 2 * per_head + rest


@settings(max_examples=200, deadline=None)
@given(
    heads=st.integers(1, 8),
    wide=st.integers(1, 16),
    positions=st.integers(1, 64),
    share=st.floats(0, 1),
)
def test_the_cheaper_order_is_the_one_of_the_integer_inequality(heads, wide, positions, share):
    hidden, rows = heads * wide, max(1, int(share * positions))
    model = ModelSpec(
        name="any",
        family="bert",
        num_layers=1,
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=wide,
        intermediate_size=8,
        vocab_size=10,
        max_positions=64,
        causal=False,
        norm_position="post",
    )
    counts = {
        (score, value): macs(PositionBlock(0, 0, rows, positions, score, value), model, positions)
        for score in ("naive", "reorder")
        for value in ("naive", "reorder")
    }
    reorder = (positions - rows) * hidden * wide > rows * positions * (hidden - wide)
    chosen = "reorder" if reorder else "naive"
    assert counts[chosen, chosen] == min(counts.values())


def test_rows_of_all_devices_together_are_the_layer():
    store = store_of("tiny-bert")
    x = hidden_states(store, rows=ROWS)
    parts = [
        run(PositionBlock(0, a, b, ROWS, order, order), store, x)
        for a, b, order in ((0, 2, "reorder"), (2, 2, "naive"), (2, 9, "naive"))
    ]
    assert relative_error(torch.cat(parts, 1), run(ops.Block(0), store, x)) < 1e-5
