"""Attention taken apart: project, attend and join are attention again, over any heads, rows and devices."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.domain.errors import PlanError, WrongProgram
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.heads import (
    Attend,
    Features,
    Importance,
    Join,
    Mix,
    Project,
    Recall,
    Regroup,
    Statistics,
    Weigh,
    kv_of,
)
from engine.ops.layout import kv_heads
from engine.ops.shapes import check_shapes
from engine.ops.tensors import Meta, meta_of
from engine.ops.tokens import Greedy
from tests.support.one_device import HEADS_APART, TINY, hidden_states, model_of, relative_error, run, store_of

NAMES = (*TINY, "grouped")
APART = (*HEADS_APART, "grouped")
CAUSAL = ("tiny-gpt2", "tiny-llama", "grouped")
ROWS = 9


def projected(store, x, first_row=0):
    """All heads: q [B, H, T, E] and kv [B, 2K, T, E]."""
    heads = store.model.num_heads
    packed = run(Project(0, 0, heads, first_row), store, x)
    return packed[:, :heads], packed[:, heads:]


def keys_values(model, kv, stored):
    """K and V of some KV heads out of all."""
    at = [*stored, *(model.num_kv_heads + head for head in stored)]
    return kv[:, at]


@pytest.mark.parametrize("name", APART)
def test_project_attend_and_join_of_a_range_are_its_attention(name):
    store, model = store_of(name), model_of(name)
    x = hidden_states(store, rows=ROWS)
    for start, stop in ((0, model.num_heads), (1, model.num_heads), (0, 1), (2, 2)):
        heads, (first, last) = tuple(range(start, stop)), kv_heads(model, start, stop)
        packed = run(Project(0, start, stop), store, x)
        attend = Attend(0, heads, tuple(range(first, last)))
        context = run(attend, store, packed[:, : len(heads)], packed[:, len(heads) :])
        for bias in (True, False):
            joined = run(Join(0, start, stop, heads, bias), store, context)
            expected = run(ops.Attention(0, start, stop, bias), store, x)
            assert torch.allclose(joined, expected, atol=1e-5), (start, stop, bias)


@pytest.mark.parametrize("name", NAMES)
def test_tiles_of_rows_are_projected_and_joined_one_by_one(name):
    store, model = store_of(name), model_of(name)
    x, heads = hidden_states(store, rows=ROWS), model.num_heads
    tiles = [run(Project(0, 0, heads, a), store, x[:, a:b]) for a, b in ((0, 4), (4, 5), (5, ROWS))]
    whole = run(Project(0, 0, heads), store, x)
    assert torch.allclose(torch.cat(tiles, dim=2), whole, atol=1e-5)
    context = whole[:, :heads]
    join = Join(0, 0, heads, tuple(range(heads)), True)
    rows = [run(join, store, context[:, :, a:b]) for a, b in ((0, 4), (4, ROWS))]
    assert torch.allclose(torch.cat(rows, dim=1), run(join, store, context), atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_heads_return_to_their_columns_whichever_device_attended_them(data, name):
    store, model = store_of(name), model_of(name)
    order = data.draw(st.permutations(range(model.num_heads)))
    cut = data.draw(st.integers(0, model.num_heads))
    x = hidden_states(store, rows=ROWS)
    q, kv = projected(store, x)
    contexts = []
    for heads in (tuple(order[:cut]), tuple(order[cut:])):
        stored = kv_of(model, heads)
        contexts.append(run(Attend(0, heads, stored), store, q[:, heads], keys_values(model, kv, stored)))
    joined = run(Join(0, 0, model.num_heads, tuple(order), True), store, torch.cat(contexts, dim=1))
    assert relative_error(joined, run(ops.Attention(0, 0, model.num_heads, True), store, x)) < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_head_counts_as_zero_and_the_bias_stays(name):
    store, model = store_of(name), model_of(name)
    x, every = hidden_states(store, rows=ROWS), tuple(range(model.num_heads))
    q, kv = projected(store, x)
    context = run(Attend(0, every, kv_of(model, every)), store, q, kv)
    kept = (3, 0)
    zeroed = context.clone()
    zeroed[:, [head for head in every if head not in kept]] = 0
    pruned = run(Join(0, 0, len(every), kept, True), store, context[:, kept])
    assert torch.allclose(pruned, run(Join(0, 0, len(every), every, True), store, zeroed), atol=1e-6)
    nothing = run(Join(0, 0, len(every), (), True), store, context[:, :0])
    bias = store.get(Join(0, 0, len(every), (), True).slices(model)[0]).get("o.bias")
    assert torch.equal(nothing, torch.zeros_like(x) if bias is None else bias.expand_as(x))


@settings(max_examples=30, deadline=None)
@given(data=st.data(), name=st.sampled_from(CAUSAL))
def test_any_heads_decode_from_caches_that_move_between_devices(data, name):
    store, model = store_of(name), model_of(name)
    every, kv_every = tuple(range(model.num_heads)), tuple(range(model.num_kv_heads))
    x = hidden_states(store, rows=ROWS)
    expected = run(ops.Attention(0, 0, model.num_heads, True), store, x)
    master, remote, held = {}, {}, None
    for a, b in ((0, 6), (6, 7), (7, ROWS)):
        lent = tuple(data.draw(st.lists(st.sampled_from(every), unique=True)))
        own = tuple(head for head in every if head not in lent)
        q, kv = projected(store, x[:, a:b], a)
        run(Attend(0, (), kv_every, "c"), store, q[:, :0], kv, caches=master)
        everything = run(Recall(0, kv_every, kv_every, 2, "c"), store, caches=master)
        contexts = [run(Attend(0, own, kv_every), store, q[:, own], everything)]
        stored = kv_of(model, lent)
        if held is not None:
            regroup = Regroup(0, held, stored, "c")
            before = run(Recall(0, regroup.arriving, kv_every, 2, "c"), store, caches=master)[:, :, :a]
            cached = remote["c", 0].rows
            cost = regroup.cost(model, (meta_of(before),), cached)
            sized = [remote["c", 0].keys[:, :, :cached].numel() if cached else 0]
            assert run(regroup, store, before, caches=remote).numel() == 0
            sized.append(remote["c", 0].keys[:, :, :a].numel())
            assert cost.kv_bytes == 2 * 4 * (sized[1] - sized[0])
            assert cached + cost.kv_rows == remote["c", 0].rows == a
        attend = Attend(0, lent, stored, "c")
        contexts.append(run(attend, store, q[:, lent], keys_values(model, kv, stored), caches=remote))
        held = stored
        joined = run(Join(0, 0, len(every), (*own, *lent), True), store, torch.cat(contexts, 1))
        assert torch.allclose(joined, expected[:, a:b], atol=1e-4)


def test_a_cache_of_other_heads_is_refused():
    store = store_of("tiny-llama")
    q, kv = projected(store, hidden_states(store))
    caches = {}
    run(Attend(0, (2,), (1,), "c"), store, q[:, 2:3], keys_values(store.model, kv, (1,)), caches=caches)
    for op in (Attend(0, (0,), (0,), "c"), Regroup(0, (0,), (0, 1), "c")):
        inputs = (q[:, :1], kv[:, :2]) if isinstance(op, Attend) else (kv[:, :2],)
        with pytest.raises(PlanError, match=r"has KV heads \(1,\), expected \(0,\)"):
            run(op, store, *inputs, caches=caches)


def with_inputs(model, x, q, kv):
    heads, kv_every = tuple(range(model.num_heads)), tuple(range(model.num_kv_heads))
    yield Project(0, 0, len(heads)), (x,)
    yield Project(0, 1, 2), (x,)
    yield Project(0, 2, 2), (x,)
    yield Attend(0, heads, kv_every), (q, kv)
    yield Attend(0, (3, 0), kv_every), (q[:, [3, 0]], kv)
    yield Attend(0, (), kv_every, "c"), (q[:, :0], kv)
    yield Attend(0, (1,), kv_every, "c"), (q[:, 1:2], kv)
    yield Attend(0, heads, kv_every), (q[:, :, -2:], kv)
    yield Join(0, 0, len(heads), heads, True), (q,)
    yield Join(0, 0, len(heads), (2, 1), False), (q[:, [2, 1]],)
    yield Join(0, 1, 3, (), True), (q[:, :0],)
    yield Regroup(0, (), (0,), "c"), (kv[:, :2],)
    yield Features(0, 64), (torch.cat((q, kv), dim=1),)
    keys = kv[:, : len(kv_every)]
    yield Importance(0, heads, kv_every), (q, keys)
    yield Importance(0, heads, kv_every), (q[:, :, -2:], keys)
    weights = q.new_ones(*q.shape[:3], q.shape[2])
    yield Weigh(0, heads, kv_every), (q, keys)
    yield Weigh(0, (2, 1), kv_of(model, (2, 1))), (q[:, [2, 1]], keys[:, list(kv_of(model, (2, 1)))])
    yield Statistics(0), (weights,)
    yield Mix(0, heads, kv_every), (weights, keys)


@pytest.mark.parametrize("name", APART)
def test_products_shapes_and_caches_are_what_torch_does(name):
    store, model = store_of(name), model_of(name)
    x = hidden_states(store, rows=ROWS)
    q, kv = projected(store, x)
    for op, inputs in with_inputs(model, x, q, kv):
        caches = {}
        cost = op.cost(model, tuple(meta_of(part) for part in inputs), 0)
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            output = run(op, store, *inputs, caches=caches)
        assert sum(k.flops for k in cost.kernels if k.kind == "product") == counter.get_total_flops(), op
        assert meta_of(output) == cost.output, op
        cache = caches.get(("c", 0))
        assert cost.kv_rows == (cache.rows if cache else 0), op
        assert cost.kv_bytes == (8 * cache.keys[:, :, : cache.rows].numel() if cache else 0), op


@pytest.mark.parametrize("name", APART)
def test_only_project_and_join_need_weights_and_only_those_they_name(name):
    full, model = store_of(name), model_of(name)
    x = hidden_states(full, rows=ROWS)
    for op, inputs in with_inputs(model, x, *projected(full, x)):
        store = WeightStore(model, full.ref, full.seed)
        for piece in op.slices(model):
            store.load(piece)
        needs_sinks = model.attention_sinks and isinstance(op, Attend) and bool(op.heads)
        assert bool(op.slices(model)) == (isinstance(op, Project | Join) or needs_sinks)
        assert torch.equal(run(op, store, *inputs), run(op, full, *inputs)), op


def test_statistics_of_weights_that_sum_to_one_are_refused_beside_sinks():
    model = model_of("tiny-gpt-oss")
    queries, keys = Meta((1, 2, ROWS, 8)), Meta((1, 1, ROWS, 8))
    check_shapes(Attend(0, (0, 1), (0,)), model, (queries, Meta((1, 2, ROWS, 8))), "d0")
    for op, inputs in (
        (Importance(0, (0, 1), (0,)), (queries, keys)),
        (Weigh(0, (0, 1), (0,)), (queries, keys)),
        (Statistics(0), (Meta((1, 2, ROWS, ROWS)),)),
    ):
        with pytest.raises(WrongProgram, match="has sinks beside its scores"):
            check_shapes(op, model, inputs, "d0")


def importance_of(model_name, scores):
    """Statistics of one head whose scaled scores q·k/√E are `scores` [n, n]."""
    store = store_of(model_name)
    n, wide = len(scores), store.model.head_dim
    q, k = torch.zeros(1, 1, n, wide), torch.zeros(1, 1, n, wide)
    q[0, 0, :, :n] = torch.tensor(scores) * wide**0.5
    k[0, 0, :, :n] = torch.eye(n)
    return run(Importance(0, (0,), (0,)), store, q, k)[0].tolist()


def test_importance_of_uniform_identity_and_causal_attention_over_four_tokens():
    uniform = [[0.0] * 4] * 4
    identity = [[200.0 * (i == j) for j in range(4)] for i in range(4)]
    assert importance_of("tiny-bert", uniform) == pytest.approx([0, math.log(4)], abs=1e-6)
    assert importance_of("tiny-bert", identity) == pytest.approx([0.1875, 0], abs=1e-6)
    assert importance_of("tiny-gpt2", uniform) == pytest.approx([0.067708, 0.794513], abs=1e-6)


@pytest.mark.parametrize("name", [name for name in NAMES if not model_of(name).attention_sinks])
def test_weights_measured_and_mixed_are_the_importance_and_the_attention(name):
    store, model = store_of(name), model_of(name)
    q, kv = projected(store, hidden_states(store, rows=ROWS))
    heads = (2, 0)
    stored = kv_of(model, heads)
    k, v = kv[:, list(stored)], kv[:, [model.num_kv_heads + head for head in stored]]
    weights = run(Weigh(0, heads, stored), store, q[:, heads], k)
    measured = run(Importance(0, heads, stored), store, q[:, heads], k)
    torch.testing.assert_close(run(Statistics(0), store, weights), measured)
    attended = run(Attend(0, heads, stored), store, q[:, heads], keys_values(model, kv, stored))
    torch.testing.assert_close(run(Mix(0, heads, stored), store, weights, v), attended, rtol=1e-5, atol=1e-5)


def test_the_importance_of_the_last_token_counts_its_row_alone():
    store, model = store_of("tiny-gpt2"), model_of("tiny-gpt2")
    q, kv = projected(store, hidden_states(store, batch=1, rows=5))
    keys = kv[:, : model.num_kv_heads]
    heads = tuple(range(model.num_heads))
    found = run(Importance(0, heads, heads), store, q[:, :, -1:], keys)
    for head in heads:
        row = torch.softmax(keys[0, head] @ q[0, head, -1] / model.head_dim**0.5, dim=0)
        expected = [row.square().sum() / 5 - 1 / 25, -(row * row.log()).sum()]
        torch.testing.assert_close(found[head], torch.stack(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_variance_and_entropy_have_their_known_extremes(n):
    uniform = [[0.0] * n] * n
    identity = [[300.0 * (i == j) for j in range(n)] for i in range(n)]
    assert importance_of("tiny-bert", uniform) == pytest.approx([0, math.log(n)], abs=1e-6)
    assert importance_of("tiny-bert", identity) == pytest.approx([(1 - 1 / n) / n, 0], abs=1e-6)


def test_features_are_means_of_queries_and_keys_and_their_products_per_token():
    model = model_of("tiny-gpt2").model_copy(update={"num_heads": 1, "num_kv_heads": 1, "head_dim": 2})
    q, k = [[1.0, 0], [0, 1], [1, 1]], [[1.0, 1], [0, 2], [1, 0]]
    packed = torch.tensor([[q, k, k]])
    store = store_of("tiny-gpt2")
    from engine.ops.torch_kernels import dispatch as arithmetic

    features = arithmetic.run(Features(0, 3), model, store, {}, (packed,))[0]
    torch.testing.assert_close(features, torch.tensor([2 / 3, 2 / 3, 2 / 3, 1, 1, 2, 1]))
    longer = arithmetic.run(Features(0, 5), model, store, {}, (packed,))[0]
    torch.testing.assert_close(longer[4:], torch.tensor([1, 1.5, 2, 1.5, 1]))


def test_grouped_heads_are_recognised_by_their_groups_keys():
    store, model = store_of("grouped"), model_of("grouped")
    x = hidden_states(store, batch=1, rows=ROWS)
    q, kv = projected(store, x)
    features = run(Features(0, 4), store, torch.cat((q, kv), dim=1))
    wide = model.head_dim
    for head in range(model.num_heads):
        key = kv[0, head // model.group_size]
        torch.testing.assert_close(features[head, :wide], q[0, head].mean(0))
        torch.testing.assert_close(features[head, wide : 2 * wide], key.mean(0))
        products = (q[0, head] * key).sum(-1)
        torch.testing.assert_close(features[head, [2 * wide, -1]], products[[0, -1]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_first_of_equal_logits_is_chosen(dtype):
    """As transformers does: bfloat16 has many equal logits."""
    logits = torch.zeros(3, 32000, dtype=dtype)
    logits[0, [700, 30000]] = 2.0
    logits[1, [31999, 3]] = 1.0
    store = store_of("tiny-gpt2")
    assert run(Greedy(), store, logits).tolist() == [700, 3, 0]
