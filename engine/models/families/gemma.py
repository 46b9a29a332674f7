"""Gemma (arXiv 2403.08295), Gemma 2 (arXiv 2408.00118) and the text model of Gemma 3 (arXiv 2503.19786).

Llama's layers with norms by 1 + weight, embeddings times √hidden_size and GELU. Gemma 2 adds norms of sums,
capped scores and logits, and a sliding window in every other layer; Gemma 3 norms of queries and keys instead
of the caps of scores, and another rotary base in its layers with a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.model import ModelSpec
from engine.models.families.family import StoredTensor, heads, padding, whole_heads
from engine.models.families.keys import (
    NUMBER,
    TOKEN,
    TOKENS,
    Probability,
    an_object,
    harmless,
    only,
    read,
    refused,
)
from engine.models.families.llama import LLAMA, QK_NORMS, SIZES, VARIANTS
from engine.models.families.rope import REFUSES, check_pairs, rope, rope_config, scaling_of
from engine.models.families.windows import FULL, LEAST_WINDOW, SLIDING, layer_types, types_of, with_window


def _scaled_embeddings(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {**fields, "embedding_scale": fields["hidden_size"] ** 0.5}


def _tanh_gelu(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The first Gemma's configs say gelu and mean its tanh form, which the library computes."""
    return {**fields, "activation": "gelu_new"} if given["hidden_act"] == "gelu" else fields


def every_other_layer_slides(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    default = [FULL if layer % 2 else SLIDING for layer in range(fields["num_layers"])]
    return with_window(fields, given["sliding_window"], layer_types(fields, given, where, default), where)


def _two_rotary_bases(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read the rotary settings of Gemma 3, whose rope_parameters have one object per kind of attention; older
    configs have rope_theta and rope_scaling for full attention and rope_local_base_freq for the layers with a
    window.
    """
    pattern = given["sliding_window_pattern"]
    if pattern < 1:
        raise refused(where, "sliding_window_pattern", pattern, "at least 1")
    default = [SLIDING if (layer + 1) % pattern else FULL for layer in range(fields["num_layers"])]
    types = layer_types(fields, given, where, default)
    check_pairs(fields["head_dim"], where)
    place = f"{where}, rope_parameters"
    newer = an_object(given["rope_parameters"], where, "rope_parameters")
    for key in newer:
        if key not in (FULL, SLIDING):
            raise refused(where, f"rope_parameters.{key}", newer[key], f"{FULL} and {SLIDING} alone")
    older = an_object(given["rope_scaling"], where, "rope_scaling")
    full = {**an_object(newer.get(FULL), place, FULL), **older}
    local = an_object(newer.get(SLIDING), place, SLIDING)
    theta, scaling = scaling_of(full, given, f"{place}.{FULL}", given["rope_theta"])
    local_theta, stretched = scaling_of(local, given, f"{place}.{SLIDING}", given["rope_local_base_freq"])
    if stretched is not None:
        raise refused(where, f"rope_parameters.{SLIDING}.rope_type", stretched.kind, "'default'")
    fields = {**fields, "rope_theta": theta, "rope_scaling": scaling}
    return with_window(fields, given["sliding_window"], types, where, local_theta)


def _activation(model: ModelSpec) -> str:
    """The library computes the tanh form of GELU in one pass under this name, as Gemma does."""
    return "gelu_pytorch_tanh" if model.activation == "gelu_new" else model.activation


def _config(model: ModelSpec) -> dict[str, Any]:
    return {"hidden_act": _activation(model)}


def _window_config(model: ModelSpec) -> dict[str, Any]:
    window = {"sliding_window": model.sliding_window.size} if model.sliding_window else {}
    return {
        "hidden_activation": _activation(model),
        "layer_types": types_of(model),
        "query_pre_attn_scalar": model.query_pre_attn_scalar or model.head_dim,
        **window,
    }


def _two_bases_config(model: ModelSpec) -> dict[str, Any]:
    settings: dict[str, Any] = {FULL: rope_config(model)}
    if model.sliding_window:
        local = model.sliding_window.rope_theta
        settings[SLIDING] = {"rope_type": "default", "rope_theta": local or model.rope_theta}
    return {**_window_config(model), "rope_parameters": settings}


GEMMA = LLAMA._replace(
    name="gemma",
    architecture="GemmaForCausalLM",
    fixed={**LLAMA.fixed, "ffn_bias": False, "norm_adds_one": True},
    keys={
        **SIZES,
        **VARIANTS,
        "vocab_size": read(int, 256000, "vocab_size"),
        "hidden_size": read(int, 3072, "hidden_size"),
        "intermediate_size": read(int, 24576, "intermediate_size"),
        "num_hidden_layers": read(int, 28, "num_layers"),
        "num_attention_heads": read(int, 16, "num_heads"),
        "num_key_value_heads": read(int, 16, "num_kv_heads"),
        "head_dim": read(int, 256, "head_dim"),
        "hidden_act": read(str, "gelu_pytorch_tanh", "activation"),
        "max_position_embeddings": read(int, 8192, "max_positions"),
        "tie_word_embeddings": read(bool, True, "tied_head"),
        "use_bidirectional_attention": only(bool | None, None, False),
        "pad_token_id": harmless(TOKEN, 0),
        "bos_token_id": harmless(TOKEN, 2),
        "eos_token_id": harmless(TOKENS, 1),
    },
    steps=(heads, padding, rope, _scaled_embeddings, _tanh_gelu),
    write=_config,
)

GEMMA2 = GEMMA._replace(
    name="gemma2",
    architecture="Gemma2ForCausalLM",
    fixed={**GEMMA.fixed, "sublayer_norm": True},
    keys={
        **{key: entry for key, entry in GEMMA.keys.items() if key != "hidden_act"},
        "hidden_size": read(int, 2304, "hidden_size"),
        "intermediate_size": read(int, 9216, "intermediate_size"),
        "num_hidden_layers": read(int, 26, "num_layers"),
        "num_attention_heads": read(int, 8, "num_heads"),
        "num_key_value_heads": read(int, 4, "num_kv_heads"),
        "hidden_activation": read(str, "gelu_pytorch_tanh", "activation"),
        "query_pre_attn_scalar": read(int, 256, "query_pre_attn_scalar"),
        "sliding_window": harmless(TOKEN, 4096),
        "layer_types": harmless(list[str] | None, None),
        "final_logit_softcapping": read(float | None, 30.0, "logit_softcap"),
        "attn_implementation": only(str | None, None, "eager"),  # capped scores have no other kernel
        "_attn_implementation": only(str | None, None, "eager"),
        "attn_logit_softcapping": read(float | None, 50.0, "score_softcap"),
        "attention_dropout": harmless(Probability | None, 0.0),
    },
    tensors={
        **LLAMA.tensors,
        "layers.{}.attention.post_norm": StoredTensor("layers.{}.post_attention_layernorm"),
        "layers.{}.ffn.norm": StoredTensor("layers.{}.pre_feedforward_layernorm"),
        "layers.{}.ffn.post_norm": StoredTensor("layers.{}.post_feedforward_layernorm"),
    },
    steps=(whole_heads, heads, padding, rope, _scaled_embeddings, every_other_layer_slides),
    write=_window_config,
    refuses=(*REFUSES, LEAST_WINDOW),
)

GEMMA3 = GEMMA2._replace(
    name="gemma3_text",
    architecture="Gemma3ForCausalLM",
    fixed={**GEMMA2.fixed, "qk_norm": True},
    keys={
        **GEMMA2.keys,
        "rope_theta": harmless(NUMBER, 1e6),
        "rope_local_base_freq": harmless(NUMBER, 1e4),
        "sliding_window_pattern": harmless(int, 6),
        "vocab_size": read(int, 262208, "vocab_size"),
        "max_position_embeddings": read(int, 131072, "max_positions"),
        "final_logit_softcapping": read(float | None, None, "logit_softcap"),
        "attn_logit_softcapping": harmless(float | None, None),  # the library's attention has no cap
        "use_bidirectional_attention": only(bool | None, False, None),
    },
    tensors={
        **GEMMA2.tensors,
        **QK_NORMS,
    },
    prefixes=(*GEMMA2.prefixes, "model.language_model.", "language_model.model."),
    unused=("model.vision_tower.", "model.multi_modal_projector."),
    steps=(whole_heads, heads, padding, _scaled_embeddings, _two_rotary_bases),
    write=_two_bases_config,
    refuses=(*REFUSES, "rope_type of sliding_attention: default", LEAST_WINDOW),
)
