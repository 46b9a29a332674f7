"""EdgeFormer's mapping tables on real tensors: heads that were learnt are found again."""

import pytest
import torch

from engine.models.weights.store import WeightStore
from engine.ops.core import Block, Embed
from engine.ops.heads import Features, Importance, Project
from engine.ops.layout import whole_model
from engine.ops.tensors import narrow
from engine.ops.torch_kernels import dispatch
from engine.strategies.edgeformer.choices import Learn, Lookup, MappingTables
from engine.strategies.edgeformer.params import EdgeFormerParams
from engine.strategies.edgeformer.table_size import CAPACITY, FEATURE_POINTS
from tests.support.small_cases import LLAMA, spec_of, star

HEADS, KV_HEADS, WIDTH = tuple(range(LLAMA.num_heads)), tuple(range(LLAMA.num_kv_heads)), 2 * LLAMA.head_dim


def test_heads_that_were_learnt_are_hits_with_their_importance_and_others_are_not():
    store = WeightStore(LLAMA, spec_of("single", LLAMA, star([1e10] * 3)).weights, 5)
    for piece in whole_model(LLAMA):
        store.load(piece)

    def compute(op, *inputs):
        return dispatch.run(op, LLAMA, store, {}, inputs)

    def statistics_and_features(seed):
        """Of every block, for a random prompt."""
        state = compute(
            Embed(0), torch.randint(LLAMA.vocab_size, (1, 9), generator=torch.Generator().manual_seed(seed))
        )
        for layer in range(LLAMA.num_layers):
            packed = compute(Project(layer, 0, LLAMA.num_heads), state)
            queries, keys = (
                narrow(packed, 1, start, stop)
                for start, stop in ((0, len(HEADS)), (len(HEADS), len(HEADS) + len(KV_HEADS)))
            )
            yield (
                compute(Importance(layer, HEADS, KV_HEADS), queries, keys),
                compute(Features(layer, FEATURE_POINTS), packed),
            )
            state = compute(Block(layer), state)

    tables = MappingTables(EdgeFormerParams(), CAPACITY, same_prompt=False)
    for layer, (statistics, features) in enumerate(statistics_and_features(0)):
        look_up = Lookup(tables, layer, WIDTH, seen=False)
        assert look_up(features) == {"raw": [], "hit": []}
        Learn(tables, layer, WIDTH, HEADS)(statistics, features)
        known = look_up(features)
        assert known["raw"] == pytest.approx([variance for variance, _ in statistics.tolist()])
        assert all(known["hit"])
    for layer, (_, features) in enumerate(statistics_and_features(1)):
        assert not all(Lookup(tables, layer, WIDTH, seen=False)(features)["hit"])
