"""OLMo 2 (arXiv 2501.00656): Llama with norms of each part's sum alone, and of all queries and all keys of a
row; and the mixture OLMoE (arXiv 2409.02060), which has norms before its parts.
"""

from __future__ import annotations

from engine.models.families.family import StoredTensor
from engine.models.families.keys import TOKEN, TOKENS, harmless, only, read
from engine.models.families.llama import LLAMA, QK_NORMS, SIZES, VARIANTS
from engine.models.families.mixtures import EXPERTS, MODULES, ROUTER_KEYS

FIXED = {**LLAMA.fixed, "ffn_bias": False, "qk_norm": True, "qk_norm_over_heads": True}

OLMO2 = LLAMA._replace(
    name="olmo2",
    architecture="Olmo2ForCausalLM",
    fixed={**FIXED, "norm_position": "sum", "sublayer_norm": True},
    keys={
        **SIZES,
        **VARIANTS,
        "vocab_size": read(int, 50304, "vocab_size"),
        "rms_norm_eps": read(float, 1e-5, "norm_eps"),
        "pad_token_id": harmless(TOKEN, 1),
        "eos_token_id": harmless(TOKENS, 50279),
    },
    tensors={
        **{name: stored for name, stored in LLAMA.tensors.items() if ".norm" not in name or "lm" in name},
        **QK_NORMS,
        "layers.{}.attention.post_norm": StoredTensor("layers.{}.post_attention_layernorm"),
        "layers.{}.ffn.post_norm": StoredTensor("layers.{}.post_feedforward_layernorm"),
    },
)

OLMOE = OLMO2._replace(
    name="olmoe",
    architecture="OlmoeForCausalLM",
    fixed=FIXED,
    keys={
        **OLMO2.keys,
        **ROUTER_KEYS,
        "router_aux_loss_coef": harmless(float, 0.01),
        "hidden_size": read(int, 2048, "hidden_size"),
        "intermediate_size": read(int, 2048, "intermediate_size"),
        "num_hidden_layers": read(int, 16, "num_layers"),
        "num_attention_heads": read(int, 16, "num_heads"),
        "max_position_embeddings": read(int, 4096, "max_positions"),
        "clip_qkv": only(float | None, None),
        "num_experts": read(int, 64, "num_experts"),
        "num_experts_per_tok": read(int, 8, "experts_per_token"),
        "norm_topk_prob": read(bool, False, "norm_topk_prob"),
    },
    aliases={"num_local_experts": "num_experts"},
    tensors={**EXPERTS, **QK_NORMS},
    modules=MODULES,
)
