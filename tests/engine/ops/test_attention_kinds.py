"""Sliding windows, capped scores, partial rotation, and norms by 1 + weight, against sums written out."""

import cmath
import math

import pytest
import torch

from engine.domain.model import ModelSpec
from engine.domain.spec import WeightsRef
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.heads import Attend, Importance, Join, Project
from engine.ops.layout import whole_model
from engine.ops.positions import PositionBlock
from engine.ops.recompute import AttentionAgain
from engine.ops.tensors import Meta, meta_of
from engine.ops.torch_kernels.attention import mask_of
from tests.support.one_device import GROUPED, relative_error, run

WINDOW = 3
MODEL = ModelSpec.model_validate(
    GROUPED.model_dump()
    | {
        "name": "everything",
        "sliding_window": {"size": WINDOW, "layers": (0,), "rope_theta": 50.0},
        "layers_without_rope": (2,),
        "num_layers": 3,
        "query_pre_attn_scalar": 5.0,
        "score_softcap": 0.7,
        "logit_softcap": 0.4,
        "norm_adds_one": True,
        "sublayer_norm": True,
        "qk_norm": True,
        "output_bias": False,
        "partial_rotary_factor": 0.75,
        "embedding_scale": 6.9,
    }
)
ROWS = 9


@pytest.fixture(scope="module")
def store():
    made = WeightStore(MODEL, WeightsRef(kind="random"), 3)
    for piece in whole_model(MODEL):
        made.load(piece)
    return made


def rows_of(count=ROWS, seed=1):
    return torch.randn(1, count, MODEL.hidden_size, generator=torch.Generator().manual_seed(seed))


def normed(row, weight):
    mean = sum(value * value for value in row) / len(row)
    return [v / math.sqrt(mean + MODEL.norm_eps) * (1 + w) for v, w in zip(row, weight, strict=True)]


def turned(head, position, theta):
    """The first six of eight numbers as three complex ones, each turned by its own angle."""
    pairs = [complex(head[i], head[i + 3]) for i in range(3)]
    pairs = [pair * cmath.exp(1j * position / theta ** (2 * i / 6)) for i, pair in enumerate(pairs)]
    return [pair.real for pair in pairs] + [pair.imag for pair in pairs] + head[6:]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def by_hand(store, layer, x):
    """Attention of one sequence [T, D] before the norm of its sum: every number on its own."""
    (piece,) = ops.Attention(layer, 0, 6, True).slices(MODEL)
    w = {key: value.double() for key, value in store.get(piece).items()}
    theta = {0: 50.0, 1: MODEL.rope_theta, 2: None}[layer]
    heads = {"q": [], "k": [], "v": []}
    for position, row in enumerate(x.double().tolist()):
        h = torch.tensor(normed(row, w["norm.weight"].tolist()), dtype=torch.float64)
        for key, found in heads.items():
            wide = (w[f"{key}.weight"] @ h + w[f"{key}.bias"]).view(-1, 8).tolist()
            if key != "v":
                wide = [normed(head, w[f"{key}_norm.weight"].tolist()) for head in wide]
                wide = wide if theta is None else [turned(head, position, theta) for head in wide]
            found.append(wide)
    result = []
    for i in range(len(x)):
        context = []
        for head in range(6):
            seen = [j for j in range(i + 1) if layer != 0 or i - j < WINDOW]
            products = [dot(heads["q"][i][head], heads["k"][j][head // 3]) for j in seen]
            scores = [math.exp(0.7 * math.tanh(p / math.sqrt(5) / 0.7)) for p in products]
            context += [
                sum(s * heads["v"][j][head // 3][e] for s, j in zip(scores, seen, strict=True)) / sum(scores)
                for e in range(8)
            ]
        result.append(w["o.weight"] @ torch.tensor(context, dtype=torch.float64))
    return torch.stack(result)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_attention_is_what_its_sums_say_in_one_pass_in_pieces_and_by_heads(store, layer):
    x = rows_of()
    expected = by_hand(store, layer, x[0]).float()
    whole = run(ops.Attention(layer, 0, 6, True), store, x)
    assert relative_error(whole[0], expected) < 1e-5
    caches = {}
    op = ops.Attention(layer, 0, 6, True, "c")
    cuts = ((0, 1), (1, 3), (3, 7), (7, 8), (8, 9))
    pieces = [run(op, store, x[:, a:b], caches=caches) for a, b in cuts]
    assert relative_error(torch.cat(pieces, 1)[0], expected) < 1e-5
    parts = [run(ops.Attention(layer, a, b, a == 1), store, x) for a, b in ((0, 1), (1, 5), (5, 6))]
    assert relative_error(sum(parts)[0], expected) < 1e-5


@pytest.mark.parametrize("layer", [0, 1])
def test_heads_computed_elsewhere_and_rows_recomputed_give_the_same(store, layer):
    x = rows_of()
    expected = run(ops.Attention(layer, 0, 6, True), store, x)
    packed = run(Project(layer, 0, 6), store, x)
    q, kv = packed[:, :6], packed[:, 6:]
    context = run(Attend(layer, tuple(range(6)), (0, 1)), store, q, kv)
    assert relative_error(run(Join(layer, 0, 6, tuple(range(6)), True), store, context), expected) < 1e-5
    caches = {}
    run(ops.Attention(layer, 0, 6, True, "c"), store, x[:, :8], caches=caches)
    again = AttentionAgain(layer, 0, 6, True, "c", 5, 8)
    inputs = torch.cat((x[:, :5], x[:, 8:]), dim=1)
    assert relative_error(run(again, store, inputs, caches=caches)[:, -1], expected[:, -1]) < 1e-5


@pytest.mark.parametrize("order", ["naive", "reorder"])
@pytest.mark.parametrize(("start", "stop", "keys"), [(0, 4, 4), (0, 4, ROWS), (5, 7, ROWS), (8, 9, 9)])
def test_rows_of_a_layer_are_the_same_wherever_they_are_computed(store, start, stop, keys, order):
    x = rows_of()
    for layer in (0, 1):
        whole = run(ops.Block(layer), store, x)
        rows = run(PositionBlock(layer, start, stop, keys, "naive", order), store, x)
        assert relative_error(rows, whole[:, start:stop]) < 1e-5


def test_a_sublayer_norm_is_of_the_sum_before_it_is_added(store):
    x, total = rows_of(), rows_of(seed=2)
    w = store.get(ops.Residual(0, "ffn").slices(MODEL)[0])["post_norm.weight"].tolist()
    expected = [
        [a + b for a, b in zip(row, normed(addend, w), strict=True)]
        for row, addend in zip(x[0].tolist(), total[0].tolist(), strict=True)
    ]
    ours = run(ops.Residual(0, "ffn"), store, x, total)[0]
    assert relative_error(ours, torch.tensor(expected)) < 1e-5


def test_logits_are_capped_and_embeddings_scaled(store):
    logits = run(ops.Head(), store, rows_of())[0]
    uncapped = WeightStore(MODEL.model_copy(update={"logit_softcap": None}), store.ref, store.seed)
    for piece in ops.Head().slices(MODEL):
        uncapped.load(piece)
    raw = run(ops.Head(), uncapped, rows_of())[0].tolist()
    assert logits.tolist() == pytest.approx([0.4 * math.tanh(x / 0.4) for x in raw], rel=1e-5)
    table = store.get(ops.Embed(0).slices(MODEL)[0])["tokens"]
    torch.testing.assert_close(run(ops.Embed(4), store, torch.tensor([[7]]))[0, 0], table[7] * 6.9)


def test_importance_is_of_the_windowed_and_capped_scores(store):
    x = rows_of(6)
    packed = run(Project(0, 0, 6), store, x)
    q, k = packed[:, :6], packed[:, 6:8]
    ((variance, entropy),) = run(Importance(0, (4,), (0, 1)), store, q[:, 4:5], k).tolist()
    squares = entropies = 0.0
    for i in range(6):
        seen = range(max(0, i - WINDOW + 1), i + 1)
        products = [dot(q[0, 4, i].tolist(), k[0, 1, j].tolist()) for j in seen]
        weights = [math.exp(0.7 * math.tanh(p / math.sqrt(5) / 0.7)) for p in products]
        shares = [weight / sum(weights) for weight in weights]
        squares += sum(share * share for share in shares)
        entropies -= sum(share * math.log(share) for share in shares)
    assert variance == pytest.approx(squares / 36 - 1 / 36, rel=1e-4)
    assert entropy == pytest.approx(entropies / 6, rel=1e-4)


def test_a_mask_shows_the_newest_keys_and_the_querys_own():
    assert mask_of(2, 2, 5, window=2).int().tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0]]
    assert mask_of(0, 2, 2).int().tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize(("cached", "rows", "read"), [(0, 2, 2), (0, 9, 9), (7, 1, 3), (7, 4, 6), (1, 1, 2)])
def test_attention_in_a_window_costs_the_keys_that_it_reads(cached, rows, read):
    """The keys that any of the rows sees: with one row the window, with more the rows before it too."""
    x = Meta((2, rows, MODEL.hidden_size))
    op = ops.Attention(0, 0, 6, True, "c")
    windowed, whole = (
        op.cost(MODEL, (x,), cached),
        ops.Attention(1, 0, 6, True, "c").cost(MODEL, (x,), cached),
    )
    seen = cached + rows
    saved = sum(kernel.flops for kernel in whole.kernels) - sum(kernel.flops for kernel in windowed.kernels)
    assert saved == 2 * 6 * rows * (seen - read) * (2 * 8 + 2 * 8 + 2)
    assert whole.scratch_bytes - windowed.scratch_bytes == 2 * 6 * rows * (seen - read) * 4
    assert windowed.kv_bytes == whole.kv_bytes, "the cache keeps all rows"


def test_what_heads_elsewhere_cost_in_a_window_is_what_all_together_cost():
    x = Meta((2, 4, MODEL.hidden_size))
    heads = tuple(range(6))
    apart = [
        Project(0, 0, 6).cost(MODEL, (x,), 0),
        Attend(0, heads, (0, 1), "c").cost(MODEL, (Meta((2, 6, 4, 8)), Meta((2, 4, 4, 8))), 7),
        Join(0, 0, 6, heads, True).cost(MODEL, (Meta((2, 6, 4, 8)),), 0),
    ]
    together = ops.Attention(0, 0, 6, True, "c").cost(MODEL, (meta_of(x),), 7)
    assert sum(k.flops for cost in apart for k in cost.kernels) == sum(k.flops for k in together.kernels)
