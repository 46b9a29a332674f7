"""Layers entered together, and operations whose weights come and go: as one operation after the other."""

import pytest

from engine.domain.errors import OutOfMemory, PlanError
from engine.domain.plan import Slice
from engine.ops.layers import layers
from engine.ops.ledger import Ledger, working_bytes
from engine.ops.operation import piece_of
from engine.ops.tensors import Meta
from tests.support.hand_model import HAND

MODEL = HAND.model_copy(update={"num_layers": 4})
THREE = layers(0, 3, "c")
X = Meta((1, 1, 6))


def ledger(memory_bytes=1e6, held=range(4)):
    books = Ledger("d0", memory_bytes, MODEL)
    for layer in held:
        books.load(piece_of(layer, "attention"))
        books.load(piece_of(layer, "ffn"))
    return books


def costs(books):
    return [op.cost(MODEL, (X,), books.rows(op)) for op in THREE.ops]


def enter_one_by_one(books):
    for op, cost in zip(THREE.ops, costs(books), strict=True):
        books.run(op, (X,), cost)


def enter_together(books):
    cost = costs(books)[0]
    books.enter_all(THREE, working_bytes((X,), cost), cost.kv_rows, cost.kv_bytes)


def state(books):
    return books.cached, books.kv_bytes, books.resident_bytes, books.peak_bytes


def test_layers_entered_together_leave_what_they_leave_one_by_one():
    together, apart = ledger(), ledger()
    for _ in range(3):
        enter_together(together)
        enter_one_by_one(apart)
    assert state(together) == state(apart)
    assert together.rows_of_all(THREE) == 3


def test_layers_with_different_rows_are_not_one_group():
    books = ledger()
    enter_together(books)
    books.run(THREE.ops[1], (X,), costs(books)[1])
    assert books.rows_of_all(THREE) is None
    assert books.rows_of_all(layers(0, 1, "c")) == 1


def test_layers_some_of_whose_rows_are_only_on_disk_are_not_one_group():
    books = ledger()
    enter_together(books)
    for layer in range(3):
        books.store_rows("c", layer, 1)
        books.drop_rows("c", layer)
    assert books.rows_of_all(THREE) is None


def test_memory_too_small_for_the_last_of_several_layers_is_found():
    enough = ledger()
    enter_together(enough)
    enter_together(ledger(enough.peak_bytes))
    with pytest.raises(OutOfMemory):
        enter_together(ledger(enough.peak_bytes - 1))


def test_layers_one_of_which_was_evicted_are_refused_until_it_is_loaded_again():
    books = ledger()
    enter_together(books)
    books.evict(piece_of(1, "ffn"))
    with pytest.raises(PlanError, match="layer 1 needs ffn"):
        enter_together(books)
    books.load(piece_of(1, "ffn"))
    enter_together(books)


def test_an_operation_needs_all_its_weights_again_whatever_was_evicted_first():
    attention, ffn, op = piece_of(0, "attention"), piece_of(0, "ffn"), THREE.ops[0]
    for first, second in ((attention, ffn), (ffn, attention)):
        books = ledger()
        books.need(op)
        books.evict(first)
        books.evict(second)
        for piece in (first, second):
            with pytest.raises(PlanError):
                books.need(op)
            books.load(piece)
        books.need(op)


def test_weights_in_other_bits_do_not_stand_for_those_that_were_evicted():
    books, attention = ledger(), piece_of(0, "attention")
    books.need(THREE.ops[0])
    books.evict(attention)
    books.load(Slice(layer=0, part="attention", bits=8))
    with pytest.raises(PlanError):
        books.need(THREE.ops[0])
