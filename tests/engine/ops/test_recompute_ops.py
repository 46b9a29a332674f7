"""Evicted rows computed again are the rows that a whole cache would have given, at the stated cost."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.ops import core as ops
from engine.ops.layout import kv_heads
from engine.ops.recompute import AttentionAgain, EmbedAgain
from engine.ops.sizes import kv_bytes_per_row
from engine.ops.tensors import meta_of
from tests.support.one_device import hidden_states, model_of, run, store_of

NAMES = ("tiny-gpt2", "tiny-llama", "grouped")
ROWS = 9


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kept", [3, 6, 8])
def test_rows_of_every_step_are_those_of_attention_over_everything(name, kept):
    store, model = store_of(name), model_of(name)
    x, prompt = hidden_states(store, rows=ROWS), 5
    for start, stop in ((0, model.num_heads), (1, model.num_heads), (2, 2)):
        whole = run(ops.Attention(0, start, stop, True), store, x)
        first, last = kv_heads(model, start, stop)
        caches, cached = {}, 0
        for position, new in ((0, prompt), (5, 1), (6, 1), (7, 2)):
            seen = position + new
            old = max(0, seen - kept)
            rows = torch.cat((x[:, : min(old, position)], x[:, position:seen]), dim=1)
            op = AttentionAgain(0, start, stop, True, "c", old, max(position, old))
            cost = op.cost(model, (meta_of(rows),), cached)
            with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
                output = run(op, store, rows, caches=caches)
            counted = sum(kernel.flops for kernel in cost.kernels if kernel.kind == "product")
            assert counted == counter.get_total_flops(), op
            assert torch.allclose(output[:, -new:], whole[:, position:seen][:, -new:], atol=1e-5)
            assert torch.allclose(output[:, :old], whole[:, :old], atol=1e-5)
            cached += cost.kv_rows
            if start < stop:
                assert cached == caches["c", 0].rows == seen - old
                assert cost.kv_bytes == x.shape[0] * cost.kv_rows * kv_bytes_per_row(model, last - first)


@pytest.mark.parametrize("name", NAMES)
def test_evicted_tokens_are_embedded_again_before_the_new_ones(name):
    store, model = store_of(name), model_of(name)
    ids = torch.arange(2 * ROWS).reshape(2, ROWS) % model.vocab_size
    whole, caches = run(ops.Embed(0), store, ids), {}
    for start, new, evicted in ((0, 6, 2), (6, 1, 3), (7, 1, 0), (8, 1, 8)):
        op = EmbedAgain(start, evicted, "c")
        output = run(op, store, ids[:, start : start + new], caches=caches)
        old = whole[:, : min(evicted, start)]
        assert torch.equal(output, torch.cat((old, whole[:, start : start + new]), dim=1))
        cost = op.cost(model, (meta_of(ids[:, start : start + new]),), start)
        assert cost.output == meta_of(output) and cost.kv_rows == new and cost.kv_bytes == 0


def test_a_cache_with_evicted_rows_keeps_its_newest_rows():
    from engine.ops.torch_kernels.storage import KVCache

    cache, rows = KVCache(0), torch.arange(10.0).reshape(1, 1, 10, 1)
    cache.append(rows[:, :, :7], rows[:, :, :7])
    cache.evict(4)
    keys, values = cache.append(rows[:, :, 7:], rows[:, :, 7:])
    assert keys.flatten().tolist() == values.flatten().tolist() == [4, 5, 6, 7, 8, 9]
