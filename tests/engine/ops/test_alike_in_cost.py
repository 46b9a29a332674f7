"""One operation stands for all that cost the same, and no other."""

import pytest

from engine.domain.model import ModelSpec, layer_kinds
from engine.ops import core as ops
from engine.ops.operation import alike_in_cost
from engine.ops.tensors import Meta
from tests.support.one_device import GROUPED

WINDOWED = (1, 2, 4)
MIXED = ModelSpec.model_validate(
    GROUPED.model_dump()
    | {
        "name": "mixed",
        "num_layers": 6,
        "sliding_window": {"size": 3, "layers": WINDOWED},
        "layers_without_rope": (2, 3),
    }
)
CACHED = 7
KINDS = {0: 0, 1: 1, 2: 2, 3: 3, 4: 1, 5: 0}
"""Of each layer the first one with the same window and the same positions, read off `MIXED`."""


def of_layer(layer, cache):
    yield ops.Attention(layer, 0, 2, True, cache)
    yield ops.Block(layer, cache)
    yield ops.FeedForward(layer, 0, 5, False)


@pytest.mark.parametrize("layer", range(6))
def test_an_operation_costs_what_the_one_that_stands_for_it_costs(layer):
    x = Meta((1, 2, MIXED.hidden_size), "float32")
    for op in of_layer(layer, "r3"):
        alike = alike_in_cost(op, MIXED)
        assert (alike.layer, alike.cache) == (KINDS[layer], "any" if op.cache else None)
        assert alike.cost(MIXED, (x,), CACHED) == op.cost(MIXED, (x,), CACHED)


def test_layers_of_different_kinds_cost_different_amounts():
    x = Meta((1, 2, MIXED.hidden_size), "float32")
    costs = {layer: ops.Block(layer, "c").cost(MIXED, (x,), CACHED) for layer in range(4)}
    assert len(set(costs.values())) == 4


def test_an_operation_with_a_cache_does_not_stand_for_one_without():
    assert alike_in_cost(ops.Block(5, "r1"), MIXED) == alike_in_cost(ops.Block(0, "r2"), MIXED)
    assert alike_in_cost(ops.Block(5), MIXED) == ops.Block(0)
    assert alike_in_cost(ops.Embed(4), MIXED) == ops.Embed(4)


def test_the_kinds_of_layers_and_their_shares():
    assert [(kind.layer, kind.share * 6) for kind in layer_kinds(MIXED)] == [(0, 2), (1, 2), (2, 1), (3, 1)]
