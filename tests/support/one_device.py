"""Models of every family, a store with all weights, and a whole forward pass on one device."""

from functools import cache

import torch

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.layout import whole_model
from engine.ops.torch_kernels import dispatch as arithmetic

TINY = tuple(name for name in catalogue.smallest_models() if catalogue.resolve(name)[0].vision is None)
"""The smallest model of every family that reads text alone."""
HEADS_APART = tuple(name for name in TINY if not catalogue.resolve(name)[0].qk_norm_over_heads)
"""Of these, those whose heads can be computed apart."""
CAUSAL = tuple(name for name in TINY if catalogue.resolve(name)[0].causal)
LAPTOP = ClusterSpec(
    name="alone",
    source="d0",
    switches=[],
    links=[],
    devices=[{"name": "d0", "flop_per_s": 1e10, "memory_bytes": 4e8, "memory_byte_per_s": 4e9}],
)
GROUPED = ModelSpec(
    name="grouped",
    family="llama",
    num_layers=2,
    hidden_size=48,
    num_heads=6,
    num_kv_heads=2,
    head_dim=8,
    intermediate_size=70,
    vocab_size=97,
    max_positions=64,
    norm="rmsnorm",
    positions="rope",
    gated_ffn=True,
    attention_bias=True,
    ffn_bias=True,
    activation="silu",
    tied_head=False,
)
"""Three query heads per KV head, biases everywhere, and columns that no block size divides."""


def spec_of(name, **workload):
    model, weights = catalogue.resolve(name)
    if not workload:
        workload = {"prompt_tokens": 13, "new_tokens": 6 if model.has_head else 0, "requests": 2}
    return RunSpec(
        cluster=LAPTOP,
        model=model,
        weights=weights,
        workload=Workload(**workload),
        strategy="single",
        seed=11,
    )


@cache
def model_of(name):
    return GROUPED if name == "grouped" else catalogue.resolve(name)[0]


@cache
def store_of(name):
    """All weights of a model, of a directory or random from seed 11."""
    weights = spec_of("tiny-gpt2").weights if name == "grouped" else catalogue.resolve(name)[1]
    store = WeightStore(model_of(name), weights, 11)
    for piece in whole_model(store.model):
        store.load(piece)
    return store


def run(op, store, *inputs, caches=None):
    with torch.no_grad():
        return arithmetic.run(op, store.model, store, {} if caches is None else caches, inputs)


def hidden_states(store, batch=2, rows=9, seed=0):
    """Input rows of a layer: [B, T, D]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, rows, store.model.hidden_size, generator=generator)


def layers(store, x, caches=None):
    for layer in range(store.model.num_layers):
        x = run(ops.Block(layer, None if caches is None else "c"), store, x, caches=caches)
    return x


def generate(store, prompt, new_tokens):
    """Greedy logits [new_tokens, V] of one prompt, with a KV cache."""
    caches, ids, start, rows = {}, torch.tensor([prompt]), 0, []
    for _ in range(new_tokens):
        x = layers(store, run(ops.Embed(start), store, ids), caches)
        start += ids.shape[1]
        rows.append(run(ops.Head(), store, x)[0])
        ids = rows[-1].argmax().reshape(1, 1)
    return torch.stack(rows)


def encode(store, prompt):
    """Hidden states [T, D] of one prompt, without a KV cache."""
    x = layers(store, run(ops.Embed(0), store, torch.tensor([prompt])))
    return run(ops.FinalHidden(), store, x)[0]


def relative_error(ours, theirs):
    return float((ours - theirs).abs().max() / theirs.abs().max())
