"""The families of text: GPT-2, OPT, BERT, Llama and Qwen3."""

from __future__ import annotations

from engine.models.families.family import Family, StoredTensor

GPT2 = Family(
    name="gpt2",
    architecture="GPT2LMHeadModel",
    fixed={},
    defaults={
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    },
    keys={
        "num_layers": "n_layer",
        "hidden_size": "n_embd",
        "num_heads": "n_head",
        "intermediate_size": "n_inner",
        "vocab_size": "vocab_size",
        "max_positions": "n_positions",
        "norm_eps": "layer_norm_epsilon",
        "activation": "activation_function",
        "tied_head": "tie_word_embeddings",
    },
    tensors={
        "embed.tokens": StoredTensor("wte.weight"),
        "embed.positions": StoredTensor("wpe.weight"),
        "layers.{}.attention.norm": StoredTensor("h.{}.ln_1"),
        "layers.{}.attention.q": StoredTensor("h.{}.attn.c_attn", transposed=True, fused=0, of=3),
        "layers.{}.attention.k": StoredTensor("h.{}.attn.c_attn", transposed=True, fused=1, of=3),
        "layers.{}.attention.v": StoredTensor("h.{}.attn.c_attn", transposed=True, fused=2, of=3),
        "layers.{}.attention.o": StoredTensor("h.{}.attn.c_proj", transposed=True),
        "layers.{}.ffn.norm": StoredTensor("h.{}.ln_2"),
        "layers.{}.ffn.up": StoredTensor("h.{}.mlp.c_fc", transposed=True),
        "layers.{}.ffn.down": StoredTensor("h.{}.mlp.c_proj", transposed=True),
        "lm_head.norm": StoredTensor("ln_f"),
        "lm_head.weight": StoredTensor("lm_head.weight"),
    },
    prefixes=("transformer.", ""),
    refused={
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
    },
)

OPT = Family(
    name="opt",
    architecture="OPTForCausalLM",
    fixed={"position_offset": 2},
    defaults={
        "activation_function": "relu",
        "ffn_dim": 3072,
        "enable_bias": True,
        "tie_word_embeddings": True,
    },
    keys={
        "num_layers": "num_hidden_layers",
        "hidden_size": "hidden_size",
        "num_heads": "num_attention_heads",
        "intermediate_size": "ffn_dim",
        "vocab_size": "vocab_size",
        "max_positions": "max_position_embeddings",
        "activation": "activation_function",
        "tied_head": "tie_word_embeddings",
        "attention_bias": "enable_bias",
        "ffn_bias": "enable_bias",
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
    refused={
        "do_layer_norm_before": (True,),
        "_remove_final_layer_norm": (False,),
        "layer_norm_elementwise_affine": (True,),
    },
    same={"word_embed_proj_dim": "hidden_size"},
)

BERT = Family(
    name="bert",
    architecture="BertModel",
    fixed={"causal": False, "norm_position": "post", "embedding_norm": True, "has_head": False},
    defaults={"hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2},
    keys={
        "num_layers": "num_hidden_layers",
        "hidden_size": "hidden_size",
        "num_heads": "num_attention_heads",
        "intermediate_size": "intermediate_size",
        "vocab_size": "vocab_size",
        "max_positions": "max_position_embeddings",
        "norm_eps": "layer_norm_eps",
        "activation": "hidden_act",
        "token_types": "type_vocab_size",
    },
    tensors={
        "embed.tokens": StoredTensor("embeddings.word_embeddings.weight"),
        "embed.positions": StoredTensor("embeddings.position_embeddings.weight"),
        "embed.types": StoredTensor("embeddings.token_type_embeddings.weight"),
        "embed.norm": StoredTensor("embeddings.LayerNorm"),
        "layers.{}.attention.norm": StoredTensor("encoder.layer.{}.attention.output.LayerNorm"),
        "layers.{}.attention.q": StoredTensor("encoder.layer.{}.attention.self.query"),
        "layers.{}.attention.k": StoredTensor("encoder.layer.{}.attention.self.key"),
        "layers.{}.attention.v": StoredTensor("encoder.layer.{}.attention.self.value"),
        "layers.{}.attention.o": StoredTensor("encoder.layer.{}.attention.output.dense"),
        "layers.{}.ffn.norm": StoredTensor("encoder.layer.{}.output.LayerNorm"),
        "layers.{}.ffn.up": StoredTensor("encoder.layer.{}.intermediate.dense"),
        "layers.{}.ffn.down": StoredTensor("encoder.layer.{}.output.dense"),
    },
    prefixes=("bert.", ""),
    refused={
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
        "add_cross_attention": (False,),
    },
    older=((("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")),),
)

LLAMA = Family(
    name="llama",
    architecture="LlamaForCausalLM",
    fixed={"norm": "rmsnorm", "positions": "rope", "gated_ffn": True},
    defaults={
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "mlp_bias": False,
    },
    keys={
        "num_layers": "num_hidden_layers",
        "hidden_size": "hidden_size",
        "num_heads": "num_attention_heads",
        "num_kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "intermediate_size": "intermediate_size",
        "vocab_size": "vocab_size",
        "max_positions": "max_position_embeddings",
        "norm_eps": "rms_norm_eps",
        "activation": "hidden_act",
        "tied_head": "tie_word_embeddings",
        "rope_theta": "rope_theta",
        "attention_bias": "attention_bias",
        "ffn_bias": "mlp_bias",
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
    refused={},
)

QWEN3 = LLAMA._replace(
    name="qwen3",
    architecture="Qwen3ForCausalLM",
    fixed={**LLAMA.fixed, "qk_norm": True, "ffn_bias": False},
    defaults={key: value for key, value in LLAMA.defaults.items() if key != "mlp_bias"}
    | {"num_key_value_heads": 32, "head_dim": 128},
    keys={field: key for field, key in LLAMA.keys.items() if field != "ffn_bias"},
    tensors={
        **LLAMA.tensors,
        "layers.{}.attention.q_norm": StoredTensor("layers.{}.self_attn.q_norm"),
        "layers.{}.attention.k_norm": StoredTensor("layers.{}.self_attn.k_norm"),
    },
    refused={"use_sliding_window": (False,)},
)

TEXT_FAMILIES = (GPT2, OPT, BERT, LLAMA, QWEN3)
"""Add a new family of text models here."""
