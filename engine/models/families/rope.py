"""Reads and writes a config's rotary settings, from all the places where the library takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.rope import Llama3Scaling
from engine.models.families.keys import NUMBER, harmless, is_a, refused, shown, words

ROPE_KEYS = {
    "rope_parameters": harmless(dict[str, Any] | None, None),
    "rope_scaling": harmless(dict[str, Any] | None, None),
    "rope_theta": harmless(NUMBER, 10000.0),
}
"""Keys of every family with rotary positions, which `rope` reads."""

LLAMA3_KEYS = {
    "factor": "factor",
    "low_freq_factor": "low_freq_factor",
    "high_freq_factor": "high_freq_factor",
}
ORIGINAL = "original_max_position_embeddings"


def rope(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Adds `rope_theta` and `rope_scaling` to the fields of a family with rotary positions.

    The settings are in rope_parameters or, before transformers 5, in rope_scaling, with the base beside it.
    Raises `SpecError` for another type of scaling, for both places with different settings, and for heads of
    an odd size.
    """
    if fields["head_dim"] % 2:
        raise SpecError(f"{where}, head_dim: {fields['head_dim']} is odd, and rotary positions need pairs.")
    place, settings = _settings(given, where)
    for key, value in settings.items():
        if isinstance(value, dict):
            raise refused(where, f"{place}.{key}", value, "one setting for all layers")
    partial = settings.get("partial_rotary_factor", given.get("partial_rotary_factor", 1))
    if partial not in (None, 1) or isinstance(partial, bool):
        raise refused(where, f"{place}.partial_rotary_factor", partial, "1")
    theta = settings.get("rope_theta", given["rope_theta"])
    found = {**fields, "rope_theta": _positive(theta, NUMBER, f"{where}, {place}.rope_theta")}
    kind = settings.get("rope_type", settings.get("type", "default"))
    reader = KINDS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise refused(where, f"{place}.rope_type", kind, " or ".join(repr(known) for known in KINDS))
    scaling = reader(settings, given, f"{where}, {place}")
    return found if scaling is None else {**found, "rope_scaling": scaling}


def _settings(given: Mapping[str, Any], where: str) -> tuple[str, Mapping[str, Any]]:
    newer, older = given.get("rope_parameters"), given.get("rope_scaling")
    if newer and older and newer != older:
        raise SpecError(
            f"{where}, rope_scaling: is {shown(older)}, and rope_parameters, which means the same, is "
            f"{shown(newer)}: give one of them."
        )
    return ("rope_scaling", older) if older else ("rope_parameters", newer or {})


def _positive(value: Any, kind: Any, where: str) -> Any:
    if not is_a(value, kind) or not value > 0:
        raise SpecError(f"{where}: got {shown(value)}, expected {words(kind)} above 0.")
    return value


def _default(settings: Mapping[str, Any], given: Mapping[str, Any], where: str) -> Llama3Scaling | None:
    return None


def _llama3(settings: Mapping[str, Any], given: Mapping[str, Any], where: str) -> Llama3Scaling:
    """`ORIGINAL` beside the settings goes before that among them, and both before the config's positions."""
    positions = given.get(ORIGINAL, settings.get(ORIGINAL, given["max_position_embeddings"]))
    numbers: dict[str, Any] = {"original_max_positions": _positive(positions, int, f"{where}.{ORIGINAL}")}
    for field, key in LLAMA3_KEYS.items():
        if key not in settings:
            raise SpecError(f"{where}.{key}: is missing, and scaling of type 'llama3' needs it.")
        numbers[field] = _positive(settings[key], NUMBER, f"{where}.{key}")
    scaling: Llama3Scaling = Llama3Scaling.parse(numbers, where)
    return scaling


Reader = Callable[[Mapping[str, Any], Mapping[str, Any], str], Llama3Scaling | None]

KINDS: Mapping[str, Reader] = {"default": _default, "llama3": _llama3}
"""Types of rotary scaling: what reads the settings of each."""


def rope_config(model: ModelSpec) -> dict[str, Any]:
    """The value of rope_parameters that `rope` reads back."""
    if model.rope_scaling is None:
        return {"rope_type": "default", "rope_theta": model.rope_theta}
    scaling = {key: getattr(model.rope_scaling, field) for field, key in LLAMA3_KEYS.items()}
    original = {ORIGINAL: model.rope_scaling.original_max_positions}
    return {"rope_type": "llama3", "rope_theta": model.rope_theta, **scaling, **original}
