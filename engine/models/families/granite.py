"""Granite (IBM, 2024): Llama with factors of embeddings, scores, sums and logits; its mixtures of experts are
Granite-MoE, with a shared expert in some.
"""

from __future__ import annotations

from engine.models.families.family import StoredTensor
from engine.models.families.keys import NUMBER, TOKEN, TOKENS, Probability, harmless, read
from engine.models.families.llama import LLAMA, SIZES, VARIANTS
from engine.models.families.mixtures import PLAIN, ROUTER_KEYS

GRANITE = LLAMA._replace(
    name="granite",
    architecture="GraniteForCausalLM",
    keys={
        **SIZES,
        **VARIANTS,
        "mlp_bias": read(bool, False, "ffn_bias"),
        "embedding_multiplier": read(NUMBER, 1.0, "embedding_scale"),
        "attention_multiplier": read(NUMBER, 1.0, "attention_multiplier"),
        "residual_multiplier": read(NUMBER, 1.0, "residual_multiplier"),
        "logits_scaling": read(NUMBER, 1.0, "logits_scaling"),
        "bos_token_id": harmless(TOKEN, 1),
        "eos_token_id": harmless(TOKENS, 2),
    },
)

BLOCK = "layers.{}.block_sparse_moe."
GATE_UP = StoredTensor(f"{BLOCK}experts.gate_up_proj", fused=("gate", "up"), stacked=True)
SHARED_GATE_UP = StoredTensor("layers.{}.shared_mlp.input_linear", fused=("gate", "up"))

GRANITE_MOE = GRANITE._replace(
    name="granitemoe",
    architecture="GraniteMoeForCausalLM",
    fixed={**LLAMA.fixed, "ffn_bias": False},
    keys={
        **{key: entry for key, entry in GRANITE.keys.items() if key != "mlp_bias"},
        **ROUTER_KEYS,
        "attention_dropout": harmless(Probability | None, 0.0),
        "num_local_experts": read(int, 8, "num_experts"),
        "num_experts_per_tok": read(int, 2, "experts_per_token"),
    },
    tensors={
        **PLAIN,
        "layers.{}.ffn.router": StoredTensor(f"{BLOCK}router"),
        "layers.{}.ffn.experts.{}.up": GATE_UP,
        "layers.{}.ffn.experts.{}.gate": GATE_UP,
        "layers.{}.ffn.experts.{}.down": StoredTensor(f"{BLOCK}experts.down_proj", stacked=True),
    },
    older=(
        (
            ("experts.gate_up_proj", "input_linear.weight"),
            ("experts.down_proj", "output_linear.weight"),
            ("block_sparse_moe.router.", "block_sparse_moe.router.layer."),
        ),
    ),
)

GRANITE_MOE_SHARED = GRANITE_MOE._replace(
    name="granitemoeshared",
    architecture="GraniteMoeSharedForCausalLM",
    keys={**GRANITE_MOE.keys, "shared_intermediate_size": read(int, 0, "shared_intermediate_size")},
    tensors={
        **GRANITE_MOE.tensors,
        "layers.{}.ffn.shared.up": SHARED_GATE_UP,
        "layers.{}.ffn.shared.gate": SHARED_GATE_UP,
        "layers.{}.ffn.shared.down": StoredTensor("layers.{}.shared_mlp.output_linear"),
    },
)
