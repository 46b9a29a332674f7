"""BERT (Devlin et al., NAACL 2019): an encoder that normalises after each part."""

from __future__ import annotations

from engine.models.families.family import Family, StoredTensor, heads, padding
from engine.models.families.keys import TOKEN, TOKENS, Key, Probability, harmless, only, read

BERT = Family(
    name="bert",
    architecture="BertModel",
    fixed={"causal": False, "norm_position": "post", "embedding_norm": True, "has_head": False},
    keys={
        "vocab_size": read(int, 30522, "vocab_size"),
        "hidden_size": read(int, 768, "hidden_size"),
        "num_hidden_layers": read(int, 12, "num_layers"),
        "num_attention_heads": read(int, 12, "num_heads"),
        "intermediate_size": read(int, 3072, "intermediate_size"),
        "hidden_act": read(str, "gelu", "activation"),
        "max_position_embeddings": read(int, 512, "max_positions"),
        "type_vocab_size": read(int, 2, "token_types"),
        "layer_norm_eps": read(float, 1e-12, "norm_eps"),
        "is_causal": Key(bool, None, only=(None, False)),
        "is_decoder": only(bool, False),
        "add_cross_attention": only(bool, False),
        "position_embedding_type": only(str, "absolute"),  # others: transformers 5 ignores the key
        "hidden_dropout_prob": harmless(Probability, 0.1),
        "attention_probs_dropout_prob": harmless(Probability, 0.1),
        "initializer_range": harmless(float, 0.02),
        "use_cache": harmless(bool, True),
        "classifier_dropout": harmless(Probability | None, None),
        "pad_token_id": harmless(TOKEN, 0),
        "bos_token_id": harmless(TOKEN, None),
        "eos_token_id": harmless(TOKENS, None),
        "tie_word_embeddings": harmless(bool, True),
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
    steps=(heads, padding),
    older=((("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")),),
)
