"""A model so small that its costs can be worked out by hand, and the single op's cost as plain numbers."""

from engine.domain.model import ModelSpec
from engine.ops.kernels import total_bytes, total_flops
from engine.ops.tensors import Meta

HAND = ModelSpec(
    name="hand",
    family="llama",
    num_layers=2,
    hidden_size=6,
    num_heads=4,
    num_kv_heads=2,
    head_dim=3,
    intermediate_size=5,
    vocab_size=7,
    max_positions=8,
    norm="rmsnorm",
    positions="rope",
    gated_ffn=True,
    attention_bias=False,
    ffn_bias=False,
    activation="silu",
    tied_head=False,
)
"""Two query heads per KV head; D = 6, E = 3, F = 5, V = 7; every number has 4 bytes."""

X = Meta((1, 2, 6))
"""Two hidden rows of one sequence."""


def flops_and_bytes(op, *inputs, cached=0, model=HAND):
    kernels = op.cost(model, inputs, cached).kernels
    return total_flops(kernels), total_bytes(kernels)
