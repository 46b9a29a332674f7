"""Mistral (Jiang et al., arXiv 2310.06825): Llama with a sliding window in all layers or in none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.model import ModelSpec
from engine.models.families.family import heads, padding
from engine.models.families.keys import TOKEN, harmless, read
from engine.models.families.llama import LLAMA, SIZES, UNBIASED
from engine.models.families.rope import REFUSES, rope
from engine.models.families.windows import FULL, LEAST_WINDOW, SLIDING, with_window


def all_layers_slide(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A window, if there is one, is that of every layer."""
    size = given["sliding_window"]
    return with_window(fields, size, [FULL if size is None else SLIDING] * fields["num_layers"], where)


def window_config(model: ModelSpec) -> dict[str, Any]:
    """The key that `all_layers_slide` reads back."""
    return {"sliding_window": model.sliding_window.size if model.sliding_window else None}


MISTRAL = LLAMA._replace(
    name="mistral",
    architecture="MistralForCausalLM",
    fixed={**LLAMA.fixed, "attention_bias": False, "ffn_bias": False},
    keys={
        **SIZES,
        **UNBIASED,
        "intermediate_size": read(int, 14336, "intermediate_size"),
        "num_key_value_heads": read(int, 8, "num_kv_heads"),
        "max_position_embeddings": read(int, 131072, "max_positions"),
        "head_dim": read(int | None, None, "head_dim"),
        "sliding_window": harmless(TOKEN, 4096),
        "bos_token_id": harmless(TOKEN, 1),
        "eos_token_id": harmless(int | list[int] | None, 2),
    },
    steps=(heads, padding, rope, all_layers_slide),
    write=window_config,
    refuses=(*REFUSES, LEAST_WINDOW),
)
