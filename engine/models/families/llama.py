"""Llama (Touvron et al., arXiv 2307.09288) and Qwen3 (arXiv 2505.09388), with norms of queries and keys."""

from __future__ import annotations

from engine.models.families.family import Family, StoredTensor, heads, padding, whole_heads
from engine.models.families.keys import TOKEN, TOKENS, Probability, harmless, read
from engine.models.families.rope import REFUSES, ROPE_KEYS, rope
from engine.models.families.windows import LEAST_WINDOW, WINDOW_KEYS, last_layers_config, last_layers_slide

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

UNBIASED = {key: entry for key, entry in VARIANTS.items() if key != "attention_bias"}
"""Those of families whose biases of attention are no setting."""

QK_NORMS = {
    f"layers.{{}}.attention.{key}_norm": StoredTensor(f"layers.{{}}.self_attn.{key}_norm") for key in "qk"
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
    refuses=REFUSES,
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
        **WINDOW_KEYS,
    },
    tensors={
        **LLAMA.tensors,
        **QK_NORMS,
    },
    steps=(heads, padding, rope, last_layers_slide),
    write=last_layers_config,
    refuses=(*REFUSES, LEAST_WINDOW),
)
