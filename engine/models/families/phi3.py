"""Phi-3 (arXiv 2404.14219): Llama with fused matrices; in some models only a part of each head turns."""

from __future__ import annotations

from engine.domain.model import ModelSpec
from engine.models.families.family import StoredTensor, heads, padding, padding_config
from engine.models.families.keys import NUMBER, TOKEN, TOKENS, Probability, harmless, read
from engine.models.families.llama import LLAMA, SIZES, UNBIASED
from engine.models.families.mistral import all_layers_slide, window_config
from engine.models.families.rope import ORIGINAL, partial_rope, rope_config
from engine.models.families.windows import LEAST_WINDOW

PADDING = 32000
QKV, GATE_UP = ("q", "k", "v"), ("gate", "up")


def _config(model: ModelSpec) -> dict[str, object]:
    settings = {**rope_config(model), "partial_rotary_factor": model.partial_rotary_factor}
    original = {ORIGINAL: model.max_positions} if ORIGINAL in settings else {}
    return {**window_config(model), **padding_config(model, PADDING), **original, "rope_parameters": settings}


PHI3 = LLAMA._replace(
    name="phi3",
    architecture="Phi3ForCausalLM",
    fixed={**LLAMA.fixed, "attention_bias": False, "ffn_bias": False},
    keys={
        **SIZES,
        **UNBIASED,
        "vocab_size": read(int, 32064, "vocab_size"),
        "hidden_size": read(int, 3072, "hidden_size"),
        "intermediate_size": read(int, 8192, "intermediate_size"),
        "max_position_embeddings": read(int, 4096, "max_positions"),
        ORIGINAL: harmless(int, 4096),  # of longrope
        "partial_rotary_factor": harmless(NUMBER, 1.0),
        "rms_norm_eps": read(float, 1e-5, "norm_eps"),
        "sliding_window": harmless(TOKEN, None),
        "resid_pdrop": harmless(Probability, 0.0),
        "embd_pdrop": harmless(Probability, 0.0),
        "pad_token_id": harmless(TOKEN, PADDING),
        "bos_token_id": harmless(TOKEN, 1),
        "eos_token_id": harmless(TOKENS, 32000),
    },
    tensors={
        **LLAMA.tensors,
        "layers.{}.attention.q": StoredTensor("layers.{}.self_attn.qkv_proj", fused=QKV),
        "layers.{}.attention.k": StoredTensor("layers.{}.self_attn.qkv_proj", fused=QKV),
        "layers.{}.attention.v": StoredTensor("layers.{}.self_attn.qkv_proj", fused=QKV),
        "layers.{}.ffn.gate": StoredTensor("layers.{}.mlp.gate_up_proj", fused=GATE_UP),
        "layers.{}.ffn.up": StoredTensor("layers.{}.mlp.gate_up_proj", fused=GATE_UP),
    },
    steps=(heads, padding, partial_rope, all_layers_slide),
    write=_config,
    refuses=("rope_type: default, longrope up to original_max_position_embeddings", LEAST_WINDOW),
)
