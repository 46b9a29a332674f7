"""SmolLM3 (Hugging Face, 2025): Llama without positions in every fourth layer (NoPE, arXiv 2501.18795)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.models.families.family import heads, padding, padding_config
from engine.models.families.keys import NUMBER, TOKEN, TOKENS, harmless, read, refused
from engine.models.families.llama import LLAMA, SIZES, VARIANTS
from engine.models.families.rope import REFUSES, rope
from engine.models.families.windows import FULL, LEAST_WINDOW, SLIDING, layer_types, types_of, with_window

PADDING = 128004


def _some_layers_lack_positions(
    fields: dict[str, Any], given: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Read which layers lack positions: no_rope_layers has a 1 for a layer with rotary positions and a 0 for
    one without.
    """
    count, interval, flags = fields["num_layers"], given["no_rope_layer_interval"], given["no_rope_layers"]
    if interval < 1:
        raise refused(where, "no_rope_layer_interval", interval, "at least 1")
    if flags is None:
        flags = [int((layer + 1) % interval != 0) for layer in range(count)]
    if len(flags) < count:
        raise SpecError(
            f"{where}, no_rope_layers: has {len(flags)} entries, expected one for each of {count} layers."
        )
    uses, size = given["use_sliding_window"], given["sliding_window"]
    has_window = uses and size is not None
    default = [SLIDING if has_window and not flags[layer] else FULL for layer in range(count)]
    types = layer_types(fields, given, where, default)
    if SLIDING in types and not has_window:
        raise refused(where, "layer_types", SLIDING, "use_sliding_window and sliding_window beside it")
    without = tuple(layer for layer in range(count) if not flags[layer])
    return with_window({**fields, "layers_without_rope": without}, size, types, where)


def _config(model: ModelSpec) -> dict[str, Any]:
    layers = range(model.num_layers)
    window = model.sliding_window
    return {
        **padding_config(model, PADDING),
        "no_rope_layers": [int(layer not in model.layers_without_rope) for layer in layers],
        "layer_types": types_of(model),
        "use_sliding_window": window is not None,
        "sliding_window": window.size if window else None,
    }


SMOLLM3 = LLAMA._replace(
    name="smollm3",
    architecture="SmolLM3ForCausalLM",
    keys={
        **SIZES,
        **VARIANTS,
        "rope_theta": harmless(NUMBER, 2000000.0),
        "vocab_size": read(int, 128256, "vocab_size"),
        "hidden_size": read(int, 2048, "hidden_size"),
        "num_hidden_layers": read(int, 36, "num_layers"),
        "num_attention_heads": read(int, 16, "num_heads"),
        "num_key_value_heads": read(int | None, 4, "num_kv_heads"),
        "max_position_embeddings": read(int, 32768, "max_positions"),
        "tie_word_embeddings": read(bool, True, "tied_head"),
        "mlp_bias": read(bool, False, "ffn_bias"),
        "use_sliding_window": harmless(bool, False),
        "sliding_window": harmless(TOKEN, None),
        "no_rope_layers": harmless(list[int] | None, None),
        "no_rope_layer_interval": harmless(int, 4),
        "layer_types": harmless(list[str] | None, None),
        "pad_token_id": harmless(TOKEN, PADDING),
        "bos_token_id": harmless(TOKEN, 128000),
        "eos_token_id": harmless(TOKENS, 128001),
    },
    steps=(heads, padding, rope, _some_layers_lack_positions),
    write=_config,
    refuses=(*REFUSES, LEAST_WINDOW),
)
