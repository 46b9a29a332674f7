"""The steps of EdgeFormer's decisions, called one by one on real tensors."""

import pytest
import torch

from bench.strategies.prefill_decisions import PrefillDecisions
from engine.models.weights.store import WeightStore
from engine.ops.core import Block, Embed
from engine.ops.layout import whole_model
from engine.ops.torch_kernels import dispatch
from tests.support.small_cases import LLAMA, spec_of, star


def test_heads_that_were_added_are_hits_and_others_are_not():
    cluster = star([1e10] * 3)
    store = WeightStore(LLAMA, spec_of("single", LLAMA, cluster).weights, 5)
    for piece in whole_model(LLAMA):
        store.load(piece)

    def compute(op, *inputs):
        return dispatch.run(op, LLAMA, store, {}, inputs)

    def inputs(seed):
        generator = torch.Generator().manual_seed(seed)
        states = [compute(Embed(0), torch.randint(LLAMA.vocab_size, (1, 9), generator=generator))]
        for layer in range(LLAMA.num_layers - 1):
            states.append(compute(Block(layer), states[-1]))
        return states

    decisions = PrefillDecisions(LLAMA, cluster, 9, compute)
    decisions.read(inputs(0))
    decisions.features()
    assert decisions.look_up() == [{"raw": [], "hit": []}] * LLAMA.num_layers
    decisions.learn()
    exact = [[variance for variance, _ in block.tolist()] for block in decisions.importance()]
    found = decisions.look_up()
    torch.testing.assert_close(torch.tensor([block["raw"] for block in found]), torch.tensor(exact))
    assert all(all(block["hit"]) for block in found)
    assert decisions.sites[0].head_s == pytest.approx(4 * 9 * 9 * LLAMA.head_dim / 1e10), (
        "nine rows over nine"
    )
    for allocation, scores in decisions.allocate():
        assert set(allocation.device_of) <= {0, 1, 2} and len(scores) == LLAMA.num_heads
