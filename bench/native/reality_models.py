"""The models of `bench reality`: every family, 2 to 360 million parameters, random weights in float32.

Models of the catalogue where it has one of that size. The others have the shapes of a published model, or of
a published family with fewer layers and a smaller side, because its smallest published member is larger.
"""

from __future__ import annotations

from typing import Any

from engine.domain.model import ModelSpec
from engine.models import catalogue
from engine.models.families.hf_config import spec_of_config

CATALOGUE = (
    "demo-lm",
    "minilm",
    "tinyllama-42m",
    "vit-base",
    "bert-base",
    "gpt2",
    "bert-large",
    "gpt2-medium",
)

CONFIGS: dict[str, dict[str, Any]] = {
    "opt-125m": {
        "model_type": "opt",
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "ffn_dim": 3072,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
        "word_embed_proj_dim": 768,
    },
    "smollm2-135m-fp32": {
        "model_type": "llama",
        "hidden_size": 576,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "intermediate_size": 1536,
        "vocab_size": 49152,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    },
    "qwen2-small": {
        "model_type": "qwen2",
        "hidden_size": 448,
        "num_hidden_layers": 12,
        "num_attention_heads": 7,
        "num_key_value_heads": 1,
        "intermediate_size": 2432,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
    },
    "qwen3-small": {
        "model_type": "qwen3",
        "hidden_size": 512,
        "num_hidden_layers": 14,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 1536,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
    },
    "gemma-small": {
        "model_type": "gemma",
        "hidden_size": 512,
        "num_hidden_layers": 8,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 128,
        "intermediate_size": 4096,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
    },
    "llava-small": {
        "model_type": "llava",
        "image_token_index": 32000,
        "text_config": {
            "model_type": "llama",
            "hidden_size": 512,
            "num_hidden_layers": 8,
            "num_attention_heads": 8,
            "intermediate_size": 1376,
            "vocab_size": 32064,
            "max_position_embeddings": 2048,
        },
        "vision_config": {
            "model_type": "clip_vision_model",
            "hidden_size": 384,
            "num_hidden_layers": 8,
            "num_attention_heads": 6,
            "intermediate_size": 1536,
            "image_size": 112,
            "patch_size": 14,
        },
    },
    "gemma3-small": {
        "model_type": "gemma3_text",
        "hidden_size": 640,
        "num_hidden_layers": 9,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "intermediate_size": 2048,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
        "sliding_window": 512,
        "query_pre_attn_scalar": 256,
    },
    "gemma2-small": {
        "model_type": "gemma2",
        "hidden_size": 576,
        "num_hidden_layers": 8,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "intermediate_size": 2304,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
        "sliding_window": 512,
        "query_pre_attn_scalar": 128,
    },
    "smollm3-small": {
        "model_type": "smollm3",
        "hidden_size": 512,
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 2752,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
        "pad_token_id": None,
    },
    "mistral-small": {
        "model_type": "mistral",
        "hidden_size": 768,
        "num_hidden_layers": 8,
        "num_attention_heads": 12,
        "num_key_value_heads": 3,
        "intermediate_size": 2688,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
    },
    "phi3-small": {
        "model_type": "phi3",
        "hidden_size": 576,
        "num_hidden_layers": 10,
        "num_attention_heads": 9,
        "num_key_value_heads": 9,
        "intermediate_size": 1536,
        "vocab_size": 32064,
        "max_position_embeddings": 2048,
        "original_max_position_embeddings": 2048,
    },
    "llama-wide": {
        "model_type": "llama",
        "hidden_size": 1024,
        "num_hidden_layers": 16,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "intermediate_size": 2816,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
    },
}


def model_of(name: str) -> ModelSpec:
    """A model of `CATALOGUE` or `CONFIGS`."""
    if name in CONFIGS:
        return spec_of_config(name, CONFIGS[name], name)
    return catalogue.resolve(name, "random")[0]
