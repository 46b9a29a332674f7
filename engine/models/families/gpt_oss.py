"""gpt-oss (OpenAI, arXiv 2508.10925): a mixture whose heads have sinks, whose products have biases, whose
experts are clamped, and whose every other layer has a sliding window.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.model import ModelSpec
from engine.models.families.family import StoredTensor, heads, padding
from engine.models.families.gemma import every_other_layer_slides
from engine.models.families.keys import NUMBER, TOKEN, harmless, only, read
from engine.models.families.llama import LLAMA, SIZES, VARIANTS
from engine.models.families.mixtures import PLAIN, ROUTER_KEYS
from engine.models.families.rope import ORIGINAL, REFUSES, rope
from engine.models.families.windows import LEAST_WINDOW, types_of

YARN = {"rope_type": "yarn", "factor": 32.0, "truncate": False, ORIGINAL: 4096}
"""The library's rotary settings where a config has none."""


def _rope(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    silent = not (given["rope_parameters"] or given["rope_scaling"])
    return rope(fields, {**given, "rope_parameters": YARN} if silent else given, where)


def _config(model: ModelSpec) -> dict[str, Any]:
    window = {"sliding_window": model.sliding_window.size} if model.sliding_window else {}
    return {"layer_types": types_of(model), **window}


EXPERTS = "layers.{}.mlp.experts."


def _of_experts(name: str, kind: str, fused: tuple[str, ...] = ()) -> StoredTensor:
    """Matrices of all experts as [expert, inputs, outputs], whose outputs are two matrices' in turn."""
    stored = EXPERTS + name + ("_bias" if kind == "bias" else "")
    return StoredTensor(stored, transposed=True, fused=fused, interleaved=bool(fused), stacked=True)


GATE_UP = {
    f"layers.{{}}.ffn.experts.{{}}.{key}.{kind}": _of_experts("gate_up_proj", kind, ("gate", "up"))
    for key in ("up", "gate")
    for kind in ("weight", "bias")
}
DOWN = {
    f"layers.{{}}.ffn.experts.{{}}.down.{kind}": _of_experts("down_proj", kind) for kind in ("weight", "bias")
}

GPT_OSS = LLAMA._replace(
    name="gpt_oss",
    architecture="GptOssForCausalLM",
    fixed={**LLAMA.fixed, "activation": "silu", "attention_sinks": True},
    keys={
        **SIZES,
        **VARIANTS,
        **ROUTER_KEYS,
        "hidden_act": harmless(str, "silu"),  # the library's experts do not read it
        "rope_theta": harmless(NUMBER, 150000.0),
        "vocab_size": read(int, 201088, "vocab_size"),
        "hidden_size": read(int, 2880, "hidden_size"),
        "intermediate_size": read(int, 2880, "intermediate_size"),
        "num_hidden_layers": read(int, 36, "num_layers"),
        "num_attention_heads": read(int, 64, "num_heads"),
        "num_key_value_heads": read(int, 8, "num_kv_heads"),
        "head_dim": read(int, 64, "head_dim"),
        "max_position_embeddings": read(int, 131072, "max_positions"),
        "rms_norm_eps": read(float, 1e-5, "norm_eps"),
        "attention_bias": read(bool, True, "attention_bias"),
        "num_local_experts": read(int, 128, "num_experts"),
        "num_experts_per_tok": read(int, 4, "experts_per_token"),
        "swiglu_alpha": read(float, 1.702, "swiglu_alpha"),
        "swiglu_limit": read(float, 7.0, "swiglu_limit"),
        "sliding_window": harmless(TOKEN, 128),
        "layer_types": harmless(list[str] | None, None),
        "attn_implementation": only(str | None, None, "eager"),  # sinks have no other kernel
        "_attn_implementation": only(str | None, None, "eager"),
    },
    aliases={"num_experts": "num_local_experts"},
    tensors={
        **PLAIN,
        "layers.{}.attention.sinks": StoredTensor("layers.{}.self_attn.sinks"),
        "layers.{}.ffn.router": StoredTensor("layers.{}.mlp.router"),
        **GATE_UP,
        **DOWN,
    },
    steps=(heads, padding, _rope, every_other_layer_slides),
    write=_config,
    refuses=(*REFUSES, LEAST_WINDOW),
)
