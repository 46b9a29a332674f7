"""Bytes of weights and KV caches, against sums worked out by hand."""

import pytest

from engine.domain.plan import Slice
from engine.ops.layout import TensorPart, whole_model
from engine.ops.sizes import kv_bytes_per_row, model_bytes, num_parameters, quantised_bytes, weight_bytes
from tests.support.hand_model import HAND

NORM, Q, KV, OUT = 6, 72, 36, 72
TIED = HAND.model_copy(update={"tied_head": True})


def attention(**more):
    return Slice(layer=0, part="attention", **more)


def ffn(**more):
    return Slice(layer=1, part="ffn", **more)


@pytest.mark.parametrize(
    ("piece", "elements"),
    [
        (attention(), NORM + Q + 2 * KV + OUT),
        (attention(axis="positions", start=0, stop=1), NORM + Q + 2 * KV + OUT),
        (attention(axis="heads", start=0, stop=1), NORM + 18 + 2 * 18 + 18),
        (attention(axis="heads", start=1, stop=3), NORM + 36 + 2 * 36 + 36),  # a head of either KV head
        (attention(axis="heads", start=1, stop=3, bare=True), 36 + 2 * 36 + 36),
        (attention(axis="heads", start=2, stop=2), NORM),
        (ffn(), NORM + 30 + 30 + 30),
        (ffn(axis="columns", start=1, stop=3), NORM + 12 + 12 + 12),
        (Slice(layer=-1, part="embed"), 42),
        (Slice(layer=-1, part="lm_head"), NORM + 42),
    ],
)
def test_a_slice_has_its_rows_and_columns_of_every_matrix(piece, elements):
    assert weight_bytes(HAND, piece) == 4 * elements


def test_eight_bits_keep_a_scale_of_two_bytes_per_output():
    expected = 12 * (6 + 2) + 2 * 6 * (6 + 2) + 6 * (12 + 2) + 4 * NORM
    assert weight_bytes(HAND, attention(bits=8)) == expected


def test_four_bits_put_two_numbers_into_a_byte():
    expected = 12 * (3 + 2) + 2 * 6 * (3 + 2) + 6 * (6 + 2) + 4 * NORM
    assert weight_bytes(HAND, attention(bits=4)) == expected


@pytest.mark.parametrize(("inputs", "size"), [(128, 64 + 2), (129, 65 + 2 * 2), (256, 128 + 2 * 2)])
def test_four_bits_keep_a_scale_per_128_inputs(inputs, size):
    matrix = TensorPart("w", "w", (3, inputs), 0, 0, 3, 1)
    assert quantised_bytes(matrix, 4) == 3 * size


def test_a_token_adds_a_key_and_a_value_for_every_kv_head():
    assert kv_bytes_per_row(HAND, 2) == 2 * 2 * 3 * 4


def test_a_tied_table_counts_once_in_the_whole_model():
    layer = NORM + Q + 2 * KV + OUT + NORM + 90
    assert num_parameters(HAND) == 42 + 2 * layer + NORM + 42
    assert num_parameters(TIED) == 42 + 2 * layer + NORM
    assert model_bytes(TIED.model_copy(update={"dtype": "bfloat16"})) == 2 * (42 + 2 * layer + NORM)


def test_a_whole_model_in_8_or_4_bits_has_the_bytes_of_its_parts():
    for bits in (8.0, 4.0, 4.5):
        model = HAND.model_copy(update={"weight_bits": bits})
        assert model_bytes(model) == sum(weight_bytes(model, piece) for piece in whole_model(model))
    assert model_bytes(HAND.model_copy(update={"weight_bits": 4.0})) < model_bytes(HAND) / 2
