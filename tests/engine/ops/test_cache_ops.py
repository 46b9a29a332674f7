"""Rows of a KV cache out and back: the same bits, the same bytes, and errors for rows that are not there."""

import pytest
import torch

from engine.domain.errors import PlanError
from engine.ops.core import Attention, Block
from engine.ops.kv_cache import DropRows, PutRows, TakeRows
from engine.ops.ledger import Ledger
from engine.ops.sizes import kv_bytes_per_row
from engine.ops.tensors import meta_of
from tests.support.one_device import hidden_states, model_of, run, store_of

NAMES = ("tiny-gpt2", "tiny-llama", "grouped")
ROWS = 9


def filled(store, batch=2):
    caches = {}
    run(Block(1, "c"), store, hidden_states(store, batch=batch, rows=ROWS), caches=caches)
    return caches


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_left_and_came_back_attend_bit_by_bit_the_same(name):
    store, model = store_of(name), model_of(name)
    caches, moved, elsewhere = filled(store), filled(store), {}
    rows = run(TakeRows(1, 4, ROWS, 2, "c"), store, caches=moved)
    run(PutRows(1, "c"), store, rows, caches=elsewhere)
    run(DropRows(1, 4, ROWS, 2, "c"), store, caches=moved)
    assert moved["c", 1].rows == 4 and elsewhere["c", 1].rows == 5
    back = run(TakeRows(1, 0, 5, 2, "c"), store, caches=elsewhere)
    run(PutRows(1, "c"), store, back, caches=moved)
    token = hidden_states(store, rows=1)
    op = Attention(1, 0, model.num_heads, True, "c")
    assert torch.equal(run(op, store, token, caches=moved), run(op, store, token, caches=caches))


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_bytes_are_what_torch_has(name):
    store, model = store_of(name), model_of(name)
    caches, row_bytes = filled(store), 2 * kv_bytes_per_row(model, model.num_kv_heads)
    take, put, drop = TakeRows(1, 2, 7, 2, "c"), PutRows(1, "c"), DropRows(1, 7, ROWS, 2, "c")
    rows = run(take, store, caches=caches)
    assert take.cost(model, (), ROWS).output == meta_of(rows)
    assert rows.numel() * model.element_bytes == 5 * row_bytes
    assert put.cost(model, (meta_of(rows),), ROWS)[1:5] == (meta_of(rows.new_empty(0)), 0, 5 * row_bytes, 5)
    assert drop.cost(model, (), ROWS)[1:5] == (meta_of(rows.new_empty(0)), 0, -2 * row_bytes, -2)


def test_the_ledger_counts_rows_that_leave_and_come():
    model, ledger = model_of("tiny-gpt2"), Ledger("d0", 1e9, model_of("tiny-gpt2"))
    row_bytes = kv_bytes_per_row(model, model.num_kv_heads)

    def account(op, *inputs):
        cost = op.cost(model, inputs, ledger.rows(op))
        ledger.run(op, inputs, cost)
        return cost.output

    rows = account(TakeRows(0, 0, 0, 1, "c"))
    assert rows.shape[3] == 0 and ledger.kv_bytes == 0
    account(PutRows(0, "c"), rows._replace(shape=(2, 1, model.num_kv_heads, 6, model.head_dim)))
    assert ledger.kv_bytes == 6 * row_bytes and ledger.rows(PutRows(0, "c")) == 6
    account(DropRows(0, 4, 6, 1, "c"))
    assert ledger.kv_bytes == 4 * row_bytes and ledger.rows(PutRows(0, "c")) == 4


@pytest.mark.parametrize(
    ("op", "sentence"),
    [
        (TakeRows(1, 5, ROWS + 1, 2, "c"), "take_rows of layer 1: the KV cache c has 9 rows, .* 5:10"),
        (DropRows(1, 2, 5, 2, "c"), "drop_rows of layer 1: .* has 9 rows, expected 5"),
    ],
)
def test_rows_that_are_not_there_or_not_the_newest_are_refused(op, sentence):
    with pytest.raises(PlanError, match=sentence):
        op.cost(model_of("tiny-gpt2"), (), ROWS)
