"""What a mixture of experts costs and chooses, against sums worked out by hand and choices drawn."""

from random import Random

import pytest
import torch

from engine.domain.errors import WrongProgram
from engine.domain.plan import Slice
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.layout import tensor_parts
from engine.ops.mixture import Experts, chosen_experts
from engine.ops.operation import whole_share
from engine.ops.quantised import QuantisedBlock
from engine.ops.shapes import check_shapes
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import Meta
from engine.ops.tiles import Expand
from tests.support.hand_model import HAND, X, flops_and_bytes
from tests.support.one_device import hidden_states, model_of, run, store_of

MIXTURE = HAND.model_copy(update={"num_experts": 4, "experts_per_token": 2})
"""D = 6, F = 5; two of four experts."""


def test_two_rows_read_the_three_experts_that_they_choose_in_expectation():
    """4·(1 − (1/2)²) = 3: one expert has two of the four pairs, two have one each."""
    op = ops.FeedForward(0, 0, 5, True)
    one, two = 2 * 1 * 6 * 5, 2 * 2 * 6 * 5
    flops = 12 + 2 * 2 * 6 * 4 + 8 + 3 * two + 2 * 10 + 2 * 3 * one + 4 * 5 + 24 + 24
    read = [24, 12 + 24 + 8, 16]  # norm, router and its softmax
    read += [2 * (12 + 30 + 10), 2 * 20, 10 + 30 + 12, 4 * (6 + 30 + 5), 4 * 10, 2 * (5 + 30 + 6)]
    read += [48, 72]  # weighing the four sums, and adding each to its row
    assert flops_and_bytes(op, X, model=MIXTURE) == (flops, 4 * sum(read))


def test_one_row_reads_the_experts_that_it_chooses_and_a_device_has_all():
    x = Meta((1, 1, 6))
    read = [
        k for k in ops.FeedForward(0, 0, 5, True).cost(MIXTURE, (x,), 0).kernels if k.inner * k.cols == 30
    ]
    assert sum(kernel.count for kernel in read) == 2 * 3
    whole = weight_bytes(MIXTURE, Slice(layer=0, part="ffn"))
    assert whole == 4 * (6 + 4 * 6 + 4 * 3 * 30)  # norm, router, four experts


@pytest.mark.parametrize(("experts", "each", "rows"), [(8, 2, 1), (8, 2, 5), (64, 8, 20), (60, 4, 200)])
def test_so_many_different_experts_as_independent_choices_give(experts, each, rows):
    model = MIXTURE.model_copy(update={"num_experts": experts, "experts_per_token": each})
    random, times = Random(7), 400
    drawn = [
        len({expert for _ in range(rows) for expert in random.sample(range(experts), each)})
        for _ in range(times)
    ]
    assert chosen_experts(model, rows) == pytest.approx(sum(drawn) / times, abs=0.8)


def test_fewer_likely_experts_are_read_by_fewer():
    few = MIXTURE.model_copy(update={"num_experts": 64, "experts_per_token": 2, "likely_experts": 4})
    assert [chosen_experts(few, rows) for rows in (0, 1, 2, 100)] == [0, 2, 3, 4]


def test_shares_of_the_shared_expert_are_all_of_it():
    model = MIXTURE.model_copy(update={"shared_intermediate_size": 12, "shared_expert_gate": True})
    cuts = [(0, 2), (2, 3), (3, 5)]
    pieces = [Slice(layer=0, part="ffn", axis="columns", start=a, stop=b) for a, b in cuts]
    found = [
        (part.start, part.stop)
        for piece in pieces
        for part in tensor_parts(model, piece)
        if part.key == "shared.up.weight"
    ]
    assert found == [(0, 4), (4, 7), (7, 12)]


def test_experts_are_not_read_that_no_row_chooses():
    full = store_of("tiny-mixtral")
    x = hidden_states(full, 1, 1)
    expected = run(ops.FeedForward(0, 0, 40, True), full, x)
    store = WeightStore(full.model, full.ref, full.seed)
    store.load(Slice(layer=0, part="ffn"))
    whole = store.get(Slice(layer=0, part="ffn"))
    spoiled = 0
    for number in range(4):
        kept = whole[f"experts.{number}.down.weight"].clone()
        whole[f"experts.{number}.down.weight"].fill_(torch.nan)
        spoiled += bool(run(ops.FeedForward(0, 0, 40, True), store, x).isnan().any())
        whole[f"experts.{number}.down.weight"].copy_(kept)
    assert torch.equal(run(ops.FeedForward(0, 0, 40, True), store, x), expected)
    assert spoiled == 2


def test_a_quantised_layer_restores_the_experts_that_are_read():
    model = model_of("tiny-qwen3-moe")
    x = Meta((1, 1, model.hidden_size))
    restored = [k for k in QuantisedBlock(0, 4).cost(model, (x,), 0).kernels if k.name == "dequantise"]
    assert len(restored) == 4 + 3 * 3  # attention's matrices, and those of three of eight experts


def test_operations_within_one_feed_forward_part_are_refused_on_a_mixture():
    with pytest.raises(WrongProgram, match="4 experts in each layer"):
        check_shapes(Expand(0, 0, 5), MIXTURE, (X,), "d0")


def test_devices_with_parts_of_the_pairs_compute_all_of_the_rows_together():
    """Where two of a row's seven experts are, two sevenths of it are computed. No part of it may get lost by
    rounding: predictions of many steps were refused.
    """
    model = HAND.model_copy(update={"num_experts": 17, "experts_per_token": 7})
    x = Meta((1, 1, 6 + 17))
    pieces = [Experts(0, 0, 6, 2, 2), Experts(0, 6, 9, 2, 2), Experts(0, 9, 17, 3, 3)]
    shares = [piece.share(model, (x,))[1] for piece in pieces]
    assert sum(shares) == pytest.approx(whole_share(model, 1)[1], rel=1e-12)
