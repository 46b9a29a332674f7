"""Mixtures of experts: Mixtral (Jiang et al., arXiv 2401.04088), Qwen2-MoE (arXiv 2407.10671) and Qwen3-MoE
(arXiv 2505.09388).

Attention is that of Mistral, Qwen2 and Qwen3; the experts are Llama's feed-forward part several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.models.families.family import StoredTensor, heads, padding
from engine.models.families.keys import NUMBER, TOKEN, harmless, only, read, refused
from engine.models.families.llama import LLAMA, QK_NORMS, QWEN3, SIZES, UNBIASED, VARIANTS
from engine.models.families.mistral import MISTRAL
from engine.models.families.rope import REFUSES, rope
from engine.models.families.windows import FULL, WINDOW_KEYS


def _no_layer_slides(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Files that the library wrote list the attention of every layer."""
    for kind in given["layer_types"] or ():
        if kind != FULL:
            raise refused(where, "layer_types", kind, repr(FULL))
    return fields


ROUTER_KEYS = {
    "output_router_logits": harmless(bool, False),
    "router_aux_loss_coef": harmless(float, 0.001),
}
"""Keys of training alone."""

PLAIN = {name: stored for name, stored in LLAMA.tensors.items() if ".ffn." not in name or "norm" in name}
"""Names of all but the feed-forward part."""

EXPERTS = {
    **PLAIN,
    "layers.{}.ffn.router": StoredTensor("layers.{}.mlp.gate"),
    "layers.{}.ffn.experts.{}.up": StoredTensor("layers.{}.mlp.experts.{}.up_proj"),
    "layers.{}.ffn.experts.{}.gate": StoredTensor("layers.{}.mlp.experts.{}.gate_proj"),
    "layers.{}.ffn.experts.{}.down": StoredTensor("layers.{}.mlp.experts.{}.down_proj"),
}
GATE_UP = StoredTensor("layers.{}.mlp.experts.gate_up_proj", fused=("gate", "up"), stacked=True)
MODULES = {
    "layers.{}.ffn.experts.{}.up": GATE_UP,
    "layers.{}.ffn.experts.{}.gate": GATE_UP,
    "layers.{}.ffn.experts.{}.down": StoredTensor("layers.{}.mlp.experts.down_proj", stacked=True),
}
"""The library's modules keep the matrices of all experts in one tensor."""

MIXTRAL = MISTRAL._replace(
    name="mixtral",
    architecture="MixtralForCausalLM",
    keys={
        **MISTRAL.keys,
        **ROUTER_KEYS,
        "rope_theta": harmless(NUMBER, 1e6),
        "router_jitter_noise": harmless(float, 0.0),  # of training
        "num_key_value_heads": read(int, 8, "num_kv_heads"),
        "sliding_window": harmless(TOKEN, None),
        "rms_norm_eps": read(float, 1e-5, "norm_eps"),
        "num_local_experts": read(int, 8, "num_experts"),
        "num_experts_per_tok": read(int, 2, "experts_per_token"),
    },
    aliases={"num_experts": "num_local_experts"},
    tensors={
        **EXPERTS,
        "layers.{}.ffn.experts.{}.up": StoredTensor("layers.{}.mlp.experts.{}.w3"),
        "layers.{}.ffn.experts.{}.gate": StoredTensor("layers.{}.mlp.experts.{}.w1"),
        "layers.{}.ffn.experts.{}.down": StoredTensor("layers.{}.mlp.experts.{}.w2"),
    },
    modules=MODULES,
    older=(((".mlp.", ".block_sparse_moe."),),),
)

SPARSE_KEYS = {
    **ROUTER_KEYS,
    "num_experts_per_tok": read(int, 8, "experts_per_token"),
    "norm_topk_prob": read(bool, False, "norm_topk_prob"),
    "decoder_sparse_step": only(int, 1),
    "mlp_only_layers": only(list[int] | None, None, []),
    "sliding_window": WINDOW_KEYS["sliding_window"],
    "use_sliding_window": only(bool, False),
}
"""Keys of Qwen's mixtures, whose layers are all mixtures here."""

QWEN3_MOE = QWEN3._replace(
    name="qwen3_moe",
    architecture="Qwen3MoeForCausalLM",
    keys={
        **SIZES,
        **VARIANTS,
        **SPARSE_KEYS,
        "vocab_size": read(int, 151936, "vocab_size"),
        "hidden_size": read(int, 2048, "hidden_size"),
        "intermediate_size": harmless(int, 6144),  # of layers that are no mixtures
        "moe_intermediate_size": read(int, 768, "intermediate_size"),
        "num_hidden_layers": read(int, 24, "num_layers"),
        "num_key_value_heads": read(int, 4, "num_kv_heads"),
        "max_position_embeddings": read(int, 32768, "max_positions"),
        "head_dim": read(int | None, None, "head_dim"),
        "num_experts": harmless(int, 128),
        "num_local_experts": read(int, 128, "num_experts"),
    },
    aliases={"num_experts": "num_local_experts"},
    tensors={
        **EXPERTS,
        **QK_NORMS,
    },
    modules=MODULES,
    steps=(heads, padding, rope),
    write=None,
    refuses=REFUSES,
)

QWEN2_MOE = LLAMA._replace(
    name="qwen2_moe",
    architecture="Qwen2MoeForCausalLM",
    fixed={**LLAMA.fixed, "output_bias": False, "ffn_bias": False, "shared_expert_gate": True},
    keys={
        **SIZES,
        **UNBIASED,
        **WINDOW_KEYS,
        **SPARSE_KEYS,
        "vocab_size": read(int, 151936, "vocab_size"),
        "hidden_size": read(int, 2048, "hidden_size"),
        "intermediate_size": harmless(int, 5632),  # of layers that are no mixtures
        "moe_intermediate_size": read(int, 1408, "intermediate_size"),
        "shared_expert_intermediate_size": read(int, 5632, "shared_intermediate_size"),
        "num_hidden_layers": read(int, 24, "num_layers"),
        "num_attention_heads": read(int, 16, "num_heads"),
        "num_key_value_heads": read(int | None, 16, "num_kv_heads"),
        "max_position_embeddings": read(int, 32768, "max_positions"),
        "num_experts": read(int, 60, "num_experts"),
        "num_experts_per_tok": read(int, 4, "experts_per_token"),
        "qkv_bias": read(bool, True, "attention_bias"),
    },
    tensors={
        **EXPERTS,
        "layers.{}.ffn.shared_gate": StoredTensor("layers.{}.mlp.shared_expert_gate"),
        "layers.{}.ffn.shared.up": StoredTensor("layers.{}.mlp.shared_expert.up_proj"),
        "layers.{}.ffn.shared.gate": StoredTensor("layers.{}.mlp.shared_expert.gate_proj"),
        "layers.{}.ffn.shared.down": StoredTensor("layers.{}.mlp.shared_expert.down_proj"),
    },
    modules=MODULES,
    steps=(heads, padding, rope, _no_layer_slides),
    refuses=(*REFUSES, "layer_types: full_attention alone"),
)
