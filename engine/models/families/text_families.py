"""The families of text: GPT-2, OPT, BERT, Llama and Qwen3."""

from __future__ import annotations

from engine.models.families.family import Family, Stored

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
        "embed.tokens": Stored("wte.weight"),
        "embed.positions": Stored("wpe.weight"),
        "layers.{}.attention.norm": Stored("h.{}.ln_1"),
        "layers.{}.attention.q": Stored("h.{}.attn.c_attn", transposed=True, fused=0, of=3),
        "layers.{}.attention.k": Stored("h.{}.attn.c_attn", transposed=True, fused=1, of=3),
        "layers.{}.attention.v": Stored("h.{}.attn.c_attn", transposed=True, fused=2, of=3),
        "layers.{}.attention.o": Stored("h.{}.attn.c_proj", transposed=True),
        "layers.{}.ffn.norm": Stored("h.{}.ln_2"),
        "layers.{}.ffn.up": Stored("h.{}.mlp.c_fc", transposed=True),
        "layers.{}.ffn.down": Stored("h.{}.mlp.c_proj", transposed=True),
        "lm_head.norm": Stored("ln_f"),
        "lm_head.weight": Stored("lm_head.weight"),
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
        "embed.tokens": Stored("decoder.embed_tokens.weight"),
        "embed.positions": Stored("decoder.embed_positions.weight"),
        "layers.{}.attention.norm": Stored("decoder.layers.{}.self_attn_layer_norm"),
        "layers.{}.attention.q": Stored("decoder.layers.{}.self_attn.q_proj"),
        "layers.{}.attention.k": Stored("decoder.layers.{}.self_attn.k_proj"),
        "layers.{}.attention.v": Stored("decoder.layers.{}.self_attn.v_proj"),
        "layers.{}.attention.o": Stored("decoder.layers.{}.self_attn.out_proj"),
        "layers.{}.ffn.norm": Stored("decoder.layers.{}.final_layer_norm"),
        "layers.{}.ffn.up": Stored("decoder.layers.{}.fc1"),
        "layers.{}.ffn.down": Stored("decoder.layers.{}.fc2"),
        "lm_head.norm": Stored("decoder.final_layer_norm"),
        "lm_head.weight": Stored("lm_head.weight"),
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
        "embed.tokens": Stored("embeddings.word_embeddings.weight"),
        "embed.positions": Stored("embeddings.position_embeddings.weight"),
        "embed.types": Stored("embeddings.token_type_embeddings.weight"),
        "embed.norm": Stored("embeddings.LayerNorm"),
        "layers.{}.attention.norm": Stored("encoder.layer.{}.attention.output.LayerNorm"),
        "layers.{}.attention.q": Stored("encoder.layer.{}.attention.self.query"),
        "layers.{}.attention.k": Stored("encoder.layer.{}.attention.self.key"),
        "layers.{}.attention.v": Stored("encoder.layer.{}.attention.self.value"),
        "layers.{}.attention.o": Stored("encoder.layer.{}.attention.output.dense"),
        "layers.{}.ffn.norm": Stored("encoder.layer.{}.output.LayerNorm"),
        "layers.{}.ffn.up": Stored("encoder.layer.{}.intermediate.dense"),
        "layers.{}.ffn.down": Stored("encoder.layer.{}.output.dense"),
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
        "embed.tokens": Stored("embed_tokens.weight"),
        "layers.{}.attention.norm": Stored("layers.{}.input_layernorm"),
        "layers.{}.attention.q": Stored("layers.{}.self_attn.q_proj"),
        "layers.{}.attention.k": Stored("layers.{}.self_attn.k_proj"),
        "layers.{}.attention.v": Stored("layers.{}.self_attn.v_proj"),
        "layers.{}.attention.o": Stored("layers.{}.self_attn.o_proj"),
        "layers.{}.ffn.norm": Stored("layers.{}.post_attention_layernorm"),
        "layers.{}.ffn.up": Stored("layers.{}.mlp.up_proj"),
        "layers.{}.ffn.gate": Stored("layers.{}.mlp.gate_proj"),
        "layers.{}.ffn.down": Stored("layers.{}.mlp.down_proj"),
        "lm_head.norm": Stored("norm"),
        "lm_head.weight": Stored("lm_head.weight"),
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
        "layers.{}.attention.q_norm": Stored("layers.{}.self_attn.q_norm"),
        "layers.{}.attention.k_norm": Stored("layers.{}.self_attn.k_norm"),
    },
    refused={"use_sliding_window": (False,)},
)

TEXT_FAMILIES = (GPT2, OPT, BERT, LLAMA, QWEN3)
"""Add a new family of text models here."""
