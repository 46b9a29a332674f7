"""Llama (Touvron et al., arXiv 2307.09288) and Qwen3 (arXiv 2505.09388), with norms of queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.models.families.family import Family, StoredTensor, heads, padding, whole_heads
from engine.models.families.keys import TOKEN, TOKENS, Probability, harmless, only, read, refused
from engine.models.families.rope import ROPE_KEYS, rope


def full_attention(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A config may name the attention of every layer, and all must be full."""
    kinds = given["layer_types"]
    if kinds is None:
        return fields
    if len(kinds) != fields["num_layers"]:
        expected = f"as many as the {fields['num_layers']} layers"
        raise SpecError(f"{where}, layer_types: has {len(kinds)} entries, expected {expected}.")
    for kind in kinds:
        if kind not in ("full_attention", "attention"):
            raise refused(where, "layer_types", kind, "'full_attention'")
    return fields


SIZES = {
    "vocab_size": read(int, 32000, "vocab_size"),
    "hidden_size": read(int, 4096, "hidden_size"),
    "intermediate_size": read(int, 11008, "intermediate_size"),
    "num_hidden_layers": read(int, 32, "num_layers"),
    "num_attention_heads": read(int, 32, "num_heads"),
    "num_key_value_heads": read(int | None, None, "num_kv_heads"),
    "max_position_embeddings": read(int, 2048, "max_positions"),
}
"""Keys of families like Llama, with Llama's defaults."""

VARIANTS = {
    **ROPE_KEYS,
    "hidden_act": read(str, "silu", "activation"),
    "rms_norm_eps": read(float, 1e-6, "norm_eps"),
    "tie_word_embeddings": read(bool, False, "tied_head"),
    "attention_bias": read(bool, False, "attention_bias"),
    "attention_dropout": harmless(Probability, 0.0),
    "initializer_range": harmless(float, 0.02),
    "use_cache": harmless(bool, True),
    "pad_token_id": harmless(TOKEN, None),
    "bos_token_id": harmless(TOKEN, None),
    "eos_token_id": harmless(TOKENS, None),
}

LLAMA = Family(
    name="llama",
    architecture="LlamaForCausalLM",
    fixed={"norm": "rmsnorm", "positions": "rope", "gated_ffn": True},
    keys={
        **SIZES,
        **VARIANTS,
        "head_dim": read(int | None, None, "head_dim"),
        "mlp_bias": read(bool, False, "ffn_bias"),
        "attention_dropout": harmless(Probability | None, 0.0),
        "pretraining_tp": harmless(int | None, 1),
        "bos_token_id": harmless(TOKEN, 1),
        "eos_token_id": harmless(TOKENS, 2),
    },
    tensors={
        "embed.tokens": StoredTensor("embed_tokens.weight"),
        "layers.{}.attention.norm": StoredTensor("layers.{}.input_layernorm"),
        "layers.{}.attention.q": StoredTensor("layers.{}.self_attn.q_proj"),
        "layers.{}.attention.k": StoredTensor("layers.{}.self_attn.k_proj"),
        "layers.{}.attention.v": StoredTensor("layers.{}.self_attn.v_proj"),
        "layers.{}.attention.o": StoredTensor("layers.{}.self_attn.o_proj"),
        "layers.{}.ffn.norm": StoredTensor("layers.{}.post_attention_layernorm"),
        "layers.{}.ffn.up": StoredTensor("layers.{}.mlp.up_proj"),
        "layers.{}.ffn.gate": StoredTensor("layers.{}.mlp.gate_proj"),
        "layers.{}.ffn.down": StoredTensor("layers.{}.mlp.down_proj"),
        "lm_head.norm": StoredTensor("norm"),
        "lm_head.weight": StoredTensor("lm_head.weight"),
    },
    prefixes=("model.", ""),
    steps=(whole_heads, heads, padding, rope),
)

QWEN3 = LLAMA._replace(
    name="qwen3",
    architecture="Qwen3ForCausalLM",
    fixed={**LLAMA.fixed, "qk_norm": True, "ffn_bias": False},
    keys={
        **SIZES,
        **VARIANTS,
        "vocab_size": read(int, 151936, "vocab_size"),
        "intermediate_size": read(int, 22016, "intermediate_size"),
        "num_key_value_heads": read(int | None, 32, "num_kv_heads"),
        "max_position_embeddings": read(int, 32768, "max_positions"),
        "head_dim": read(int, 128, "head_dim"),
        "use_sliding_window": only(bool, False),
        "sliding_window": harmless(TOKEN, 4096),  # only with use_sliding_window
        "max_window_layers": harmless(int, 28),
        "layer_types": harmless(list[str] | None, None),
    },
    tensors={
        **LLAMA.tensors,
        "layers.{}.attention.q_norm": StoredTensor("layers.{}.self_attn.q_norm"),
        "layers.{}.attention.k_norm": StoredTensor("layers.{}.self_attn.k_norm"),
    },
    steps=(heads, padding, rope, full_attention),
)
