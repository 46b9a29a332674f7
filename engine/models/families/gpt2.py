"""GPT-2 (Radford et al., 2019)."""

from __future__ import annotations

from engine.models.families.family import Family, StoredTensor, heads
from engine.models.families.keys import TOKEN, TOKENS, Probability, harmless, only, read

QKV = ("q", "k", "v")

GPT2 = Family(
    name="gpt2",
    architecture="GPT2LMHeadModel",
    fixed={},
    keys={
        "vocab_size": read(int, 50257, "vocab_size"),
        "n_positions": read(int, 1024, "max_positions"),
        "n_embd": read(int, 768, "hidden_size"),
        "n_layer": read(int, 12, "num_layers"),
        "n_head": read(int, 12, "num_heads"),
        "n_inner": read(int | None, None, "intermediate_size"),
        "activation_function": read(str, "gelu_new", "activation"),
        "layer_norm_epsilon": read(float, 1e-5, "norm_eps"),
        "tie_word_embeddings": read(bool, True, "tied_head"),
        "scale_attn_weights": only(bool, True),
        "scale_attn_by_inverse_layer_idx": only(bool, False),
        "add_cross_attention": only(bool, False),
        "reorder_and_upcast_attn": harmless(bool, False),
        "resid_pdrop": harmless(Probability, 0.1),
        "embd_pdrop": harmless(Probability, 0.1),
        "attn_pdrop": harmless(Probability, 0.1),
        "initializer_range": harmless(float, 0.02),
        "summary_type": harmless(str, "cls_index"),
        "summary_use_proj": harmless(bool, True),
        "summary_activation": harmless(str | None, None),
        "summary_proj_to_labels": harmless(bool, True),
        "summary_first_dropout": harmless(Probability, 0.1),
        "use_cache": harmless(bool, True),
        "bos_token_id": harmless(TOKEN, 50256),
        "eos_token_id": harmless(TOKENS, 50256),
        "pad_token_id": harmless(TOKEN, None),
    },
    aliases={
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    tensors={
        "embed.tokens": StoredTensor("wte.weight"),
        "embed.positions": StoredTensor("wpe.weight"),
        "layers.{}.attention.norm": StoredTensor("h.{}.ln_1"),
        "layers.{}.attention.q": StoredTensor("h.{}.attn.c_attn", transposed=True, fused=QKV),
        "layers.{}.attention.k": StoredTensor("h.{}.attn.c_attn", transposed=True, fused=QKV),
        "layers.{}.attention.v": StoredTensor("h.{}.attn.c_attn", transposed=True, fused=QKV),
        "layers.{}.attention.o": StoredTensor("h.{}.attn.c_proj", transposed=True),
        "layers.{}.ffn.norm": StoredTensor("h.{}.ln_2"),
        "layers.{}.ffn.up": StoredTensor("h.{}.mlp.c_fc", transposed=True),
        "layers.{}.ffn.down": StoredTensor("h.{}.mlp.c_proj", transposed=True),
        "lm_head.norm": StoredTensor("ln_f"),
        "lm_head.weight": StoredTensor("lm_head.weight"),
    },
    prefixes=("transformer.", ""),
    steps=(heads,),
)
