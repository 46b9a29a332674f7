"""Qwen2 and Qwen2.5 (arXiv 2407.10671): Llama with biases of queries, keys and values alone."""

from __future__ import annotations

from engine.models.families.family import heads, padding
from engine.models.families.keys import read
from engine.models.families.llama import LLAMA, SIZES, UNBIASED
from engine.models.families.rope import REFUSES, rope
from engine.models.families.windows import LEAST_WINDOW, WINDOW_KEYS, last_layers_config, last_layers_slide

QWEN2 = LLAMA._replace(
    name="qwen2",
    architecture="Qwen2ForCausalLM",
    fixed={**LLAMA.fixed, "attention_bias": True, "output_bias": False, "ffn_bias": False},
    keys={
        **SIZES,
        **UNBIASED,
        **WINDOW_KEYS,
        "vocab_size": read(int, 151936, "vocab_size"),
        "intermediate_size": read(int, 22016, "intermediate_size"),
        "num_key_value_heads": read(int | None, 32, "num_kv_heads"),
        "max_position_embeddings": read(int, 32768, "max_positions"),
    },
    steps=(heads, padding, rope, last_layers_slide),
    write=last_layers_config,
    refuses=(*REFUSES, LEAST_WINDOW),
)
