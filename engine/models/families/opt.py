"""OPT (Zhang et al., arXiv 2205.01068): GPT-3's layers with ReLU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.models.families.family import Family, StoredTensor, heads, padding
from engine.models.families.keys import TOKEN, TOKENS, Probability, harmless, only, read, refused


def _no_projection(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Refuse embeddings narrower than the layers (opt-350m): they need a projection that is not computed
    here.
    """
    width = given["word_embed_proj_dim"]
    if width not in (None, fields["hidden_size"]):
        raise refused(where, "word_embed_proj_dim", width, f"hidden_size's {fields['hidden_size']}")
    return fields


OPT = Family(
    name="opt",
    architecture="OPTForCausalLM",
    fixed={"position_offset": 2},
    keys={
        "vocab_size": read(int, 50272, "vocab_size"),
        "hidden_size": read(int, 768, "hidden_size"),
        "num_hidden_layers": read(int, 12, "num_layers"),
        "ffn_dim": read(int, 3072, "intermediate_size"),
        "max_position_embeddings": read(int, 2048, "max_positions"),
        "num_attention_heads": read(int, 12, "num_heads"),
        "activation_function": read(str, "relu", "activation"),
        "enable_bias": read(bool, True, "attention_bias", "ffn_bias"),
        "tie_word_embeddings": read(bool, True, "tied_head"),
        "word_embed_proj_dim": harmless(int | None, None),
        "do_layer_norm_before": only(bool, True),
        "_remove_final_layer_norm": only(bool, False),
        "layer_norm_elementwise_affine": only(bool, True),
        "dropout": harmless(Probability, 0.1),
        "attention_dropout": harmless(Probability, 0.0),
        "layerdrop": harmless(Probability, 0.0),
        "init_std": harmless(float, 0.02),
        "use_cache": harmless(bool, True),
        "pad_token_id": harmless(TOKEN, 1),
        "bos_token_id": harmless(TOKEN, 2),
        "eos_token_id": harmless(TOKENS, 2),
    },
    tensors={
        "embed.tokens": StoredTensor("decoder.embed_tokens.weight"),
        "embed.positions": StoredTensor("decoder.embed_positions.weight"),
        "lm_head.norm": StoredTensor("decoder.final_layer_norm"),
        "layers.{}.attention.norm": StoredTensor("decoder.layers.{}.self_attn_layer_norm"),
        "layers.{}.attention.q": StoredTensor("decoder.layers.{}.self_attn.q_proj"),
        "layers.{}.attention.k": StoredTensor("decoder.layers.{}.self_attn.k_proj"),
        "layers.{}.attention.v": StoredTensor("decoder.layers.{}.self_attn.v_proj"),
        "layers.{}.attention.o": StoredTensor("decoder.layers.{}.self_attn.out_proj"),
        "layers.{}.ffn.norm": StoredTensor("decoder.layers.{}.final_layer_norm"),
        "layers.{}.ffn.up": StoredTensor("decoder.layers.{}.fc1"),
        "layers.{}.ffn.down": StoredTensor("decoder.layers.{}.fc2"),
        "lm_head.weight": StoredTensor("lm_head.weight"),
    },
    prefixes=("model.", ""),
    steps=(heads, padding, _no_projection),
    refuses=("word_embed_proj_dim: null or hidden_size",),
)
