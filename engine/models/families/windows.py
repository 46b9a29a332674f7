"""Reads and writes which layers of a config have a sliding window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.models.families.keys import TOKEN, harmless, read, refused

FULL, SLIDING = "full_attention", "sliding_attention"
LEAST_WINDOW = "sliding_window: at least 2"

WINDOW_KEYS = {
    "use_sliding_window": read(bool, False, "use_window"),
    "sliding_window": harmless(TOKEN, 4096),  # read where use_sliding_window or layer_types ask for it
    "max_window_layers": harmless(int, 28),
    "layer_types": harmless(list[str] | None, None),
}
"""Keys of Qwen2 and Qwen3, which `last_layers_slide` reads."""


def last_layers_slide(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The windows of Qwen2: with use_sliding_window the layers from number max_window_layers on have a
    window.
    """
    uses, size, first = fields["use_window"], given["sliding_window"], given["max_window_layers"]
    has_window = uses and size is not None
    default = [SLIDING if has_window and i >= first else FULL for i in range(fields["num_layers"])]
    types = layer_types(fields, given, where, default)
    if SLIDING in types and not has_window:
        raise refused(where, "layer_types", SLIDING, "use_sliding_window and sliding_window beside it")
    others = {field: value for field, value in fields.items() if field != "use_window"}
    return with_window(others, size, types, where)


def layer_types(
    fields: Mapping[str, Any], given: Mapping[str, Any], where: str, default: Sequence[str]
) -> Sequence[str]:
    """The attention of every layer: a config may list it. Raises `SpecError` for other words."""
    types: Sequence[str] = given["layer_types"] if given["layer_types"] is not None else default
    if len(types) != fields["num_layers"]:
        expected = f"as many as the {fields['num_layers']} layers"
        raise SpecError(f"{where}, layer_types: has {len(types)} entries, expected {expected}.")
    for kind in types:
        if kind not in (FULL, SLIDING):
            raise refused(where, "layer_types", kind, f"{FULL!r} or {SLIDING!r}")
    return types


def with_window(
    fields: dict[str, Any],
    size: int | None,
    types: Sequence[str],
    where: str,
    rope_theta: float | None = None,
) -> dict[str, Any]:
    """`fields` with the window of those layers that slide, if there are any. Raises `SpecError` for a size
    that is missing, or below 2: the library's own cache then shows every key while it decodes.
    """
    layers = tuple(layer for layer, kind in enumerate(types) if kind == SLIDING)
    if not layers:
        return fields
    if size is None or size < 2:
        raise refused(where, "sliding_window", size, f"at least 2 keys for the layers with {SLIDING!r}")
    return {**fields, "sliding_window": {"size": size, "layers": layers, "rope_theta": rope_theta}}


def types_of(model: ModelSpec) -> list[str]:
    """The value of layer_types that `layer_types` reads back."""
    return [SLIDING if model.window_of(layer) else FULL for layer in range(model.num_layers)]


def last_layers_config(model: ModelSpec) -> dict[str, Any]:
    """The keys that `last_layers_slide` reads back."""
    if model.sliding_window is None:
        return {"use_sliding_window": False}
    size = model.sliding_window.size
    return {"use_sliding_window": True, "sliding_window": size, "layer_types": types_of(model)}
