"""Random weights in files that the devices of a run share: the same numbers, drawn once."""

import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from engine.domain.plan import Slice
from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.models.weights.drawn import RandomSource
from engine.models.weights.store import WeightStore
from engine.ops.torch_kernels.own_memory import copies

MODEL = catalogue.resolve("tiny-llama", None)[0].model_copy(
    update={"hidden_size": 256, "intermediate_size": 2500, "head_dim": 64}
)
PIECES = [
    Slice(layer=0, part="ffn"),
    Slice(layer=0, part="ffn", axis="columns", start=700, stop=1999),
    Slice(layer=1, part="attention", axis="heads", start=1, stop=3),
    Slice(layer=-1, part="embed"),
]


@pytest.mark.parametrize("piece", PIECES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_shared_tensors_have_the_numbers_of_those_drawn_alone(piece, dtype, tmp_path):
    model = MODEL.model_copy(update={"dtype": dtype})
    alone, shared = WeightStore(model, WeightsRef(), 5), WeightStore(model, WeightsRef(), 5, tmp_path)
    for store in (alone, shared):
        store.load(piece)
    for key, tensor in alone.get(piece).items():
        assert torch.equal(tensor, shared.get(piece)[key]), key


def test_a_tensor_is_drawn_once_however_many_want_it(tmp_path, monkeypatch):
    drawn = []
    draw = RandomSource._block
    monkeypatch.setattr(
        RandomSource,
        "_block",
        lambda self, model, part, number: (
            drawn.append((part.name, number)) or draw(self, model, part, number)
        ),
    )

    def load(_):
        store = WeightStore(MODEL, WeightsRef(), 9, tmp_path)
        store.load(Slice(layer=0, part="ffn", axis="columns", start=100, stop=2400))
        return store

    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(load, range(4)))
    large = [name for name in drawn if name[0].endswith((".up.weight", ".gate.weight", ".down.weight"))]
    assert len(large) == len(set(large)) > 3
    assert len(stores) == 4


def test_a_store_that_owns_its_memory_has_the_same_numbers_apart_from_the_files(tmp_path):
    model = MODEL.model_copy(update={"tied_head": True})
    head, table = Slice(layer=-1, part="lm_head"), Slice(layer=-1, part="embed")
    mapped, owned = (WeightStore(model, WeightsRef(), 5, tmp_path) for _ in range(2))
    for store in (mapped, owned):
        for piece in (*PIECES, head):
            store.load(piece)
    owned.own()
    for piece in (*PIECES, head):
        for key, tensor in mapped.get(piece).items():
            own = owned.get(piece)[key]
            assert torch.equal(tensor, own) and own.is_contiguous(), key
    mapped.get(PIECES[0])["up.weight"].zero_()
    mapped.get(head)["weight"].zero_()
    assert owned.get(PIECES[0])["up.weight"].count_nonzero()
    assert owned.get(head)["weight"].count_nonzero()
    assert owned.get(table)["tokens"] is owned.get(head)["weight"], "a tied table is in memory once"


def test_weights_become_owned_slice_by_slice_so_that_one_is_in_memory_twice_at_a_time(monkeypatch):
    store = WeightStore(MODEL, WeightsRef(), 5)
    pieces = [
        Slice(layer=0, part="attention", axis="heads", stop=MODEL.num_heads),
        Slice(layer=0, part="ffn", axis="columns", stop=MODEL.intermediate_size),
        Slice(layer=1, part="attention", axis="heads", stop=MODEL.num_heads),
        Slice(layer=1, part="ffn", axis="columns", stop=MODEL.intermediate_size),
    ]
    for piece in pieces:
        store.load(piece)
    originals = [[weakref.ref(tensor) for tensor in store.get(piece).values()] for piece in pieces]
    copy, left = copies, []

    def counting(tensors):
        left.append(sum(all(tensor() is not None for tensor in of_piece) for of_piece in originals))
        return copy(tensors)

    monkeypatch.setattr("engine.models.weights.store.copies", counting)
    store.own()
    assert left == [4, 3, 2, 1]


def test_a_tied_table_that_is_loaded_later_is_the_owned_one(tmp_path):
    model = MODEL.model_copy(update={"tied_head": True})
    head, table = Slice(layer=-1, part="lm_head"), Slice(layer=-1, part="embed")
    store = WeightStore(model, WeightsRef(), 5, tmp_path)
    store.load(head)
    store.own()
    store.load(table)
    assert store.get(table)["tokens"] is store.get(head)["weight"]


def test_what_operations_looked_up_is_forgotten_when_the_tensors_change(tmp_path):
    store = WeightStore(MODEL, WeightsRef(), 5, tmp_path)
    store.load(PIECES[0])
    for change in (store.own, lambda: store.evict(PIECES[0])):
        store.found["part"] = store.get(PIECES[0])
        change()
        assert not store.found
