"""Reads and writes a config's rotary settings, from all the places where the library takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.rope import LinearScaling, Llama3Scaling, LongRopeScaling, YarnScaling
from engine.models.families.keys import NUMBER, harmless, is_a, refused, shown, words

Scaling = Llama3Scaling | LinearScaling | YarnScaling | LongRopeScaling
Settings = Mapping[str, Any]

ROPE_KEYS = {
    "rope_parameters": harmless(dict[str, Any] | None, None),
    "rope_scaling": harmless(dict[str, Any] | None, None),
    "rope_theta": harmless(NUMBER, 10000.0),
}
"""Keys of every family with rotary positions, which `rope` reads."""

REFUSES = ("rope_type: default, linear, llama3, yarn",)
"""What `rope` computes of the library's settings."""

FACTORS = ("factor", "low_freq_factor", "high_freq_factor")
"""Llama 3's settings, which have these names in a config and here."""
ORIGINAL = "original_max_position_embeddings"


def rope(fields: dict[str, Any], given: Settings, where: str) -> dict[str, Any]:
    """Adds `rope_theta` and `rope_scaling` to the fields of a family with rotary positions.

    The settings are in rope_parameters or, before transformers 5, in rope_scaling, with the base beside it.
    Raises `SpecError` for another type of scaling, for both places with different settings, and for heads of
    an odd size.
    """
    check_pairs(fields["head_dim"], where)
    place, settings = _settings(given, where)
    partial = settings.get("partial_rotary_factor", given.get("partial_rotary_factor", 1))
    if partial not in (None, 1) or isinstance(partial, bool):
        raise refused(where, f"{place}.partial_rotary_factor", partial, "1")
    theta, scaling = scaling_of(settings, given, f"{where}, {place}", given["rope_theta"])
    found = {**fields, "rope_theta": theta}
    return found if scaling is None else {**found, "rope_scaling": scaling}


def partial_rope(fields: dict[str, Any], given: Settings, where: str) -> dict[str, Any]:
    """The rotary positions of Phi-3: a part of every head may turn. Its one scaling, longrope, is computed up
    to the original positions, which are then all that the model has: a longer pass has other frequencies,
    and a device with some of the rows cannot know its length.
    """
    place, settings = _settings(given, where)
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind not in ("default", "longrope"):
        raise refused(where, f"{place}.rope_type", kind, "'default' or 'longrope'")
    for key in ("short_factor", "long_factor"):  # the library checks their lengths even then
        if kind == "default" and settings.get(key) is not None:
            raise refused(where, f"{place}.{key}", settings[key], "no such key")
    place = f"{where}, {place}"
    partial = settings.get("partial_rotary_factor", given["partial_rotary_factor"])
    if not 0 < _positive(partial, NUMBER, f"{place}.partial_rotary_factor") <= 1:
        raise refused(place, "partial_rotary_factor", partial, "at most 1")
    check_pairs(fields["head_dim"], where, partial)
    plain = settings if kind == "default" else {"rope_theta": settings.get("rope_theta", given["rope_theta"])}
    theta, _ = scaling_of(plain, given, place, given["rope_theta"])
    fields = {**fields, "rope_theta": theta, "partial_rotary_factor": partial}
    if kind == "default":
        return fields
    original = min(_original(settings, given, place), fields["max_positions"])
    scaling = _longrope(settings, given, place, int(fields["head_dim"] * partial) // 2)
    return {**fields, "max_positions": original, "rope_scaling": scaling}


def _longrope(settings: Settings, given: Settings, where: str, pairs: int) -> LongRopeScaling:
    """The short factors. Without an attention factor the library takes √(1 + ln factor / ln original)."""
    lists = {key: settings.get(key) for key in ("short_factor", "long_factor")}
    for key, found in lists.items():
        if (
            not isinstance(found, list)
            or not is_a(found, list[NUMBER])
            or len(found) != pairs
            or not all(each > 0 for each in found)
        ):
            raise SpecError(f"{where}.{key}: got {shown(found)}, expected {pairs} numbers above 0.")
    original, attention = _original(settings, given, where), settings.get("attention_factor")
    if attention is None:
        longest = _positive(given["max_position_embeddings"], int, f"{where}.max_position_embeddings")
        factor = settings.get("factor")
        factor = longest / original if factor is None else _positive(factor, NUMBER, f"{where}.factor")
        attention = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    else:
        attention = _positive(attention, NUMBER, f"{where}.attention_factor")
    parsed: LongRopeScaling = LongRopeScaling.parse(
        {"factors": lists["short_factor"], "attention_factor": attention}, where
    )
    return parsed


def scaling_of(settings: Settings, given: Settings, where: str, theta: Any) -> tuple[Any, Scaling | None]:
    """The rotary base and the scaling of one object of settings; `theta` is the base beside it."""
    for key, value in settings.items():
        if isinstance(value, dict):
            raise refused(where, key, value, "one setting for all layers")
    base = _positive(settings.get("rope_theta", theta), NUMBER, f"{where}.rope_theta")
    kind = settings.get("rope_type", settings.get("type", "default"))
    reader = KINDS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        expected = " or ".join(repr(known) for known in KINDS)
        raise SpecError(f"{where}.rope_type: {shown(kind)} is not supported, expected {expected}.")
    return base, reader(settings, {**given, "rope_theta": base}, where)


def check_pairs(head_dim: int, where: str, partial: float = 1) -> None:
    """Check that the numbers of a head that turn are pairs; raises `SpecError`."""
    rotated = int(head_dim * partial)
    if partial == 1 and head_dim % 2:
        raise SpecError(f"{where}, head_dim: {head_dim} is odd, and rotary positions need pairs.")
    if rotated < 2 or rotated % 2:
        raise SpecError(
            f"{where}, partial_rotary_factor: with {partial}, {rotated} of a head's {head_dim} numbers turn, "
            "and rotary positions need pairs."
        )


def _settings(given: Settings, where: str) -> tuple[str, Settings]:
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


def _needed(settings: Settings, key: str, kind: str, where: str) -> Any:
    if key not in settings:
        raise SpecError(f"{where}.{key}: is missing, and scaling of type {kind!r} needs it.")
    return _positive(settings[key], NUMBER, f"{where}.{key}")


def _default(settings: Settings, given: Settings, where: str) -> None:
    return None


def _original(settings: Settings, given: Settings, where: str) -> int:
    """The original positions: `ORIGINAL` beside the settings goes before that among them, and both before the
    config's positions.
    """
    positions = given.get(ORIGINAL, settings.get(ORIGINAL, given["max_position_embeddings"]))
    original: int = _positive(positions, int, f"{where}.{ORIGINAL}")
    return original


def _llama3(settings: Settings, given: Settings, where: str) -> Llama3Scaling:
    numbers = {"original_max_positions": _original(settings, given, where)}
    numbers |= {key: _needed(settings, key, "llama3", where) for key in FACTORS}
    scaling: Llama3Scaling = Llama3Scaling.parse(numbers, where)
    return scaling


def _linear(settings: Settings, given: Settings, where: str) -> LinearScaling:
    return LinearScaling(factor=_needed(settings, "factor", "linear", where))


def _yarn(settings: Settings, given: Settings, where: str) -> YarnScaling:
    """YaRN's settings. Without an attention factor, the library takes 0.1·ln(factor) + 1, or DeepSeek's
    quotient of two such terms.
    """
    factor, truncate = _needed(settings, "factor", "yarn", where), settings.get("truncate", True)
    if not isinstance(truncate, bool):
        raise SpecError(f"{where}.truncate: got {shown(truncate)}, expected true or false.")
    if given["rope_theta"] == 1:
        raise refused(where, "rope_theta", 1, "another base for scaling of type 'yarn'")

    def number(key: str, default: float | None = None) -> Any:
        value = settings.get(key)
        return default if value is None else _positive(value, NUMBER, f"{where}.{key}")

    attention, above, below = number("attention_factor"), number("mscale"), number("mscale_all_dim")
    if attention is None:
        both = above and below
        attention = _term(factor, above) / _term(factor, below) if both else _term(factor)
    return YarnScaling(
        factor=factor,
        original_max_positions=_original(settings, given, where),
        attention_factor=attention,
        beta_fast=number("beta_fast", 32.0),
        beta_slow=number("beta_slow", 1.0),
        truncate=truncate,
    )


def _term(factor: float, weight: float = 1) -> float:
    """The attention factor of YaRN, where nobody gives another."""
    return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0


Reader = Callable[[Settings, Settings, str], Scaling | None]

KINDS: Mapping[str, Reader] = {"default": _default, "linear": _linear, "llama3": _llama3, "yarn": _yarn}
"""Types of rotary scaling: what reads the settings of each."""


def rope_config(model: ModelSpec) -> dict[str, Any]:
    """The value of rope_parameters that `rope` reads back."""
    base = {"rope_theta": model.rope_theta}
    scaling = model.rope_scaling
    if scaling is None:
        return {"rope_type": "default", **base}
    if isinstance(scaling, LongRopeScaling):
        factors = list(scaling.factors)
        return {
            "rope_type": scaling.kind,
            **base,
            "short_factor": factors,
            "long_factor": factors,  # of positions that the model has no more
            "attention_factor": scaling.attention_factor,
            ORIGINAL: model.max_positions,
        }
    settings = scaling.model_dump(exclude={"kind", "original_max_positions"})
    if not isinstance(scaling, LinearScaling):
        settings[ORIGINAL] = scaling.original_max_positions
    if isinstance(scaling, YarnScaling) and scaling.attention_factor == _term(scaling.factor):
        del settings["attention_factor"]
    return {"rope_type": scaling.kind, **base, **settings}
