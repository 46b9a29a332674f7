"""Which rows and columns of which tensors a slice of a model has."""

import itertools

import pytest

from engine.domain.errors import PlanError
from engine.domain.plan import Slice
from engine.ops.layout import kv_heads, tensor_parts, whole_model
from tests.support.hand_model import HAND
from tests.support.one_device import model_of


def cuts_of(piece, model=HAND):
    return {part.key: (part.dim, part.start, part.stop) for part in tensor_parts(model, piece)}


@pytest.mark.parametrize(("heads", "kv"), [(12, 12), (12, 4), (12, 3), (12, 1)])
def test_a_range_of_query_heads_reads_every_kv_head_that_one_of_them_reads(heads, kv):
    model = HAND.model_copy(update={"num_heads": heads, "num_kv_heads": kv})
    for start, stop in itertools.combinations(range(heads + 1), 2):
        read = {head // (heads // kv) for head in range(start, stop)}
        assert set(range(*kv_heads(model, start, stop))) == read
    assert kv_heads(model, 5, 5)[0] == kv_heads(model, 5, 5)[1]


def test_heads_are_rows_of_q_k_and_v_and_columns_of_o():
    assert cuts_of(Slice(layer=1, part="attention", axis="heads", start=1, stop=2)) == {
        "norm.weight": (0, 0, 6),
        "q.weight": (0, 3, 6),
        "k.weight": (0, 0, 3),
        "v.weight": (0, 0, 3),
        "o.weight": (1, 3, 6),
    }


def test_columns_are_rows_of_up_and_gate_and_columns_of_down():
    assert cuts_of(Slice(layer=1, part="ffn", axis="columns", start=2, stop=5)) == {
        "norm.weight": (0, 0, 6),
        "up.weight": (0, 2, 5),
        "gate.weight": (0, 2, 5),
        "down.weight": (1, 2, 5),
    }


def test_a_bare_slice_leaves_norms_and_output_biases_to_others():
    model = model_of("grouped")  # biases everywhere
    piece = Slice(layer=0, part="attention", axis="heads", start=0, stop=2)
    bare = cuts_of(piece.model_copy(update={"bare": True}), model)
    assert set(cuts_of(piece, model)) - set(bare) == {"norm.weight", "o.bias"}
    assert {"q.bias", "k.bias", "v.bias"} <= set(bare)


def test_a_tied_head_reads_the_embedding_table():
    (norm, table) = tensor_parts(HAND.model_copy(update={"tied_head": True}), Slice(layer=-1, part="lm_head"))
    assert (norm.name, table.name) == ("lm_head.norm.weight", "embed.tokens")


def test_a_whole_model_is_its_parts_in_the_order_of_computation():
    assert [(piece.layer, piece.part) for piece in whole_model(HAND)] == [
        (-1, "embed"),
        (0, "attention"),
        (0, "ffn"),
        (1, "attention"),
        (1, "ffn"),
        (-1, "lm_head"),
    ]
    assert whole_model(model_of("tiny-llava"))[0].part == "vision"


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (Slice(layer=2, part="ffn"), "ffn of layer 2: hand has layers 0 to 1"),
        (Slice(layer=-1, part="ffn"), "ffn of layer -1: hand has layers 0 to 1"),
        (
            Slice(layer=0, part="ffn", axis="heads", start=0, stop=1),
            "no slice heads 0:1, hand has columns",
        ),
        (Slice(layer=0, part="ffn", axis="columns", start=0, stop=6), "no slice columns 0:6"),
        (Slice(layer=0, part="attention", axis="heads", start=3, stop=2), "no slice heads 3:2"),
        (Slice(layer=0, part="ffn", axis="columns", stop=2, bits=8), "only whole parts are quantised"),
        (Slice(layer=-1, part="vision"), "vision: hand has no tower"),
    ],
)
def test_a_slice_that_the_model_does_not_have_is_refused(piece, message):
    with pytest.raises(PlanError, match=message):
        tensor_parts(HAND, piece)
