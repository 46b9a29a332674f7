"""A device's memory, counted to the byte: weights, KV caches, working sets and rows on disk."""

import pytest

from engine.domain.errors import OutOfMemory, PlanError
from engine.domain.plan import Slice
from engine.ops import core as ops
from engine.ops.ledger import Ledger
from engine.ops.tensors import Meta
from tests.support.hand_model import HAND

EMBED, HEAD = Slice(layer=-1, part="embed"), Slice(layer=-1, part="lm_head")
ATTENTION = Slice(layer=0, part="attention")
ATTENTION_BYTES = 4 * 222
ROW_BYTES = 2 * 2 * 3 * 4
TIED = HAND.model_copy(update={"tied_head": True})


def ledger(memory_bytes=1e6, model=HAND):
    return Ledger("d0", memory_bytes, model)


def attend(books, rows=2, cache="c"):
    """Run layer 0's attention on `rows` new rows."""
    op, x = ops.Attention(0, 0, 4, True, cache), Meta((1, rows, 6))
    books.run(op, (x,), op.cost(HAND, (x,), books.rows(op)))


def with_rows(rows):
    books = ledger()
    books.load(ATTENTION)
    attend(books, rows)
    return books


def test_a_slice_is_loaded_once_and_evicted_whole():
    books = ledger()
    assert (books.load(ATTENTION), books.load(ATTENTION)) == (ATTENTION_BYTES, 0)
    assert books.resident_bytes == ATTENTION_BYTES
    books.evict(ATTENTION)
    books.evict(ATTENTION)
    assert (books.resident_bytes, books.peak_bytes) == (0, ATTENTION_BYTES)


@pytest.mark.parametrize("order", [(EMBED, HEAD), (HEAD, EMBED)])
def test_a_tied_head_and_the_embedding_share_one_table(order):
    books, apart = ledger(model=TIED), ledger()
    for piece in order:
        books.load(piece)
        apart.load(piece)
    assert books.weights_bytes == 4 * (42 + 6)
    assert apart.weights_bytes == 4 * (42 + 6 + 42)


def test_memory_may_be_full_to_the_last_byte():
    ledger(ATTENTION_BYTES).load(ATTENTION)
    with pytest.raises(OutOfMemory, match="d0"):
        ledger(ATTENTION_BYTES - 1).load(ATTENTION)


def test_an_operation_has_its_input_output_and_scratch_in_memory_while_it_runs():
    books = with_rows(2)
    scratch = 4 * 2 * (6 + 24 + 12 + 4 * 2)
    working = 48 + 48 + scratch
    assert books.resident_bytes == ATTENTION_BYTES + 2 * ROW_BYTES
    assert books.peak_bytes == books.resident_bytes + working
    exact = ledger(books.peak_bytes)
    exact.load(ATTENTION)
    attend(exact)
    short = ledger(books.peak_bytes - 1)
    short.load(ATTENTION)
    with pytest.raises(OutOfMemory):
        attend(short)


def test_weights_must_be_resident_and_a_larger_slice_serves():
    books = ledger()
    heads = Slice(layer=0, part="attention", axis="heads", start=0, stop=2)
    books.load(heads)
    with pytest.raises(PlanError, match="attention of layer 0 needs attention heads 0:4, which"):
        attend(books)
    books.load(ATTENTION)
    books.evict(heads)
    attend(books)


def test_a_cache_grows_by_the_new_rows_and_is_released_by_its_name():
    books = with_rows(3)
    attend(books, 1)
    attend(books, 2, "other")
    assert books.rows(ops.Attention(0, 0, 4, True, "c")) == 4
    assert books.kv_bytes == 6 * ROW_BYTES
    books.release("c")
    assert books.kv_bytes == 2 * ROW_BYTES
    books.release_all()
    assert books.resident_bytes == ATTENTION_BYTES


def test_stored_rows_leave_memory_when_dropped_and_come_back_when_fetched():
    books = with_rows(5)
    assert books.store_rows("c", 0, 3) == 3 * ROW_BYTES
    assert books.store_rows("c", 0, 3) == 0
    assert books.kv_bytes == 5 * ROW_BYTES
    assert books.drop_rows("c", 0) == 3
    assert books.kv_bytes == 2 * ROW_BYTES
    with pytest.raises(PlanError, match="3 of them are only on disk"):
        attend(books, 1)
    assert books.fetch_rows("c", 0) == 3 * ROW_BYTES
    assert books.fetch_rows("c", 0) == 0
    assert books.kv_bytes == 5 * ROW_BYTES
    attend(books, 1)
    assert books.store_rows("c", 0, 4) == ROW_BYTES


def test_rows_that_memory_lacks_are_neither_stored_nor_dropped():
    books = with_rows(2)
    with pytest.raises(PlanError, match="in memory are the last 2"):
        books.store_rows("c", 0, 3)
    with pytest.raises(PlanError, match="store or fetch them first"):
        books.drop_rows("c", 0)
    books.store_rows("c", 0, 1)
    books.drop_rows("c", 0)
    with pytest.raises(PlanError, match="store or fetch them first"):
        books.drop_rows("c", 0)


def test_a_released_cache_leaves_nothing_on_disk():
    books = with_rows(2)
    books.store_rows("c", 0, 1)
    books.drop_rows("c", 0)
    books.release("c")
    assert books.fetch_rows("c", 0) == 0
    assert books.kv_bytes == 0


def test_a_restarted_device_has_no_weights_and_keeps_its_peak():
    books = with_rows(2)
    peak = books.peak_bytes
    books.empty()
    assert (books.resident_bytes, books.peak_bytes) == (0, peak)
    with pytest.raises(PlanError, match="not resident"):
        attend(books)


def test_an_operation_without_a_cache_leaves_no_rows():
    books = ledger()
    books.load(ATTENTION)
    attend(books, 2, None)
    assert (books.kv_bytes, books.cached) == (0, {})


def test_an_operation_whose_weights_were_evicted_is_refused_although_it_ran_before():
    books = with_rows(2)
    books.evict(ATTENTION)
    with pytest.raises(PlanError, match="not resident"):
        attend(books)
    books.load(ATTENTION)
    attend(books)
    books.empty()
    with pytest.raises(PlanError, match="not resident"):
        attend(books)


def test_the_peak_counts_the_largest_working_set_and_stays():
    books = with_rows(8)
    peak_bytes = books.peak_bytes
    attend(books, rows=1)
    assert books.peak_bytes == peak_bytes
