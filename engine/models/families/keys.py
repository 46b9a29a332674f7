"""Reads the keys of a Hugging Face config by a table of all that the library's configuration class knows.

A key of the table is read into fields, or may have only some values, or changes no result. So a setting that
the library has and that is not computed here is refused by its name. A key that the class does not know is
ignored, as the library ignores it, unless the library looks for it in every config: those are in `ANYWHERE`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from engine.domain.errors import SpecError
from engine.domain.values import LEAST, MOST

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "quick_gelu": "quick_gelu",
}
"""The library's names of activations → ours. Its tanh forms of GELU differ by rounding alone."""

LARGEST = {"num_layers": 10_000}
LARGEST_INTEGER = 2**31 - 1
SIGNED = ("feature_layer", "image_token", "shared_intermediate_size")
"""Fields that may be 0 or negative."""


class Probability(float):
    """A number from 0 to 1, as the type of a key."""


WORDS = {
    Probability: "a number from 0 to 1",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    NoneType: "null",
}
NUMBER = int | float
DTYPE = Literal["float32", "float16", "float64", "bfloat16"] | None
TOKEN = int | None
TOKENS = int | list[int] | None


class Key(NamedTuple):
    """A key of a config: what type its value must have, and the library's default.

    `fields` are what it is read into. Without them `only` are the values that are computed here. A key with
    neither changes no result.
    """

    kind: Any
    default: Any
    fields: tuple[str, ...] = ()
    only: tuple[Any, ...] = ()

    @property
    def default_is_refused(self) -> bool:
        return bool(self.only) and self.default not in self.only


def read(kind: Any, default: Any, *fields: str) -> Key:
    """A key that is read into `fields`."""
    return Key(kind, default, fields=fields)


def only(kind: Any, default: Any, *others: Any) -> Key:
    """A key of which only the library's default and `others` are computed here."""
    return Key(kind, default, only=(default, *others))


def harmless(kind: Any, default: Any) -> Key:
    """A key that changes no result."""
    return Key(kind, default)


ANYWHERE: Mapping[str, Key] = {
    "transformers_version": harmless(str | None, None),
    "architectures": harmless(list[str] | None, None),
    "output_hidden_states": harmless(bool | None, False),
    "return_dict": only(bool | None, True),
    "dtype": harmless(DTYPE, None),
    "torch_dtype": harmless(DTYPE, None),
    "id2label": harmless(dict[int, str] | None, None),
    "label2id": harmless(dict[str, int] | None, None),
    "problem_type": harmless(
        Literal["regression", "single_label_classification", "multi_label_classification"] | None, None
    ),
    "chunk_size_feed_forward": only(int, 0),
    "is_encoder_decoder": only(bool, False),
    # not fields of any class, but read from every config that has them
    "num_labels": harmless(int, None),
    "head_dim": harmless(int, None),
    "is_causal": Key(bool, None, only=(None, True)),
    "sliding_window": only(TOKEN, None),
    "attention_chunk_size": only(TOKEN, None),
    "output_cross_attentions": harmless(bool | None, None),
    "gradient_checkpointing": harmless(bool | None, None),
    "mtp_layer_types": only(list[str] | None, None),
    "mlp_layer_types": only(list[str] | None, None),
    "layer_types": only(list[str] | None, None),
    "per_layer_config": only(dict[str, Any] | None, None),
    "kv_sharing_modes": only(list[str] | None, None),
    "num_kv_shared_layers": only(TOKEN, None, 0),
    "rope_parameters": only(dict[str, Any] | None, None, {}),
    "rope_scaling": only(dict[str, Any] | None, None, {}),
    "partial_rotary_factor": only(NUMBER | None, None, 1, 1.0),
    "attn_implementation": only(str | None, None, "eager", "sdpa"),
    "_attn_implementation": only(str | None, None, "eager", "sdpa"),
    "output_attentions": only(bool | None, None, False),
    "quantization_config": only(dict[str, Any] | None, None),
    "fusion_config": only(dict[str, Any] | None, None),
    "transformers_weights": only(str | None, None),
    "text_config": only(dict[str, Any] | None, None),
    "text_encoder": only(dict[str, Any] | None, None),
    "decoder": only(dict[str, Any] | None, None),
    "generator": only(dict[str, Any] | None, None),
    "configuration_files": Key(list[str], None, only=(None,)),  # would name another file to read
    "attribute_map": Key(dict[str, Any], None, only=(None,)),
    "use_return_dict": Key(bool, None, only=(None,)),
}
"""Keys of the base class of all configs, and those that the library looks for in every config."""


def shown(value: Any) -> str:
    """A value as messages show it: true, false and null as in the file."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def refused(where: str, key: str, value: Any, expected: str) -> SpecError:
    return SpecError(f"{where}, {key}: {shown(value)} is not supported, expected {expected}.")


def is_a(value: Any, kind: Any) -> bool:
    """Whether a value of a JSON file has the type `kind`. true is no integer, and NaN no number."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType or str(origin) == "typing.Union":
        return any(is_a(value, each) for each in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin is list:
        return isinstance(value, list) and all(is_a(item, inner[0]) for item in value)
    if origin is dict:
        named = inner[0] is str or all(name.isdigit() for name in value) if isinstance(value, dict) else False
        return named and (inner[1] is Any or all(is_a(item, inner[1]) for item in value.values()))
    if kind is NoneType:
        return value is None
    if kind is Probability:
        return is_a(value, NUMBER) and 0 <= value <= 1
    if kind is float:
        return isinstance(value, float) and (value == 0 or LEAST <= abs(value) <= MOST)
    return type(value) is kind


def words(kind: Any) -> str:
    """`int | None` → "an integer or null"."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind == NUMBER:
        return f"a number of at most {MOST:g}"
    if origin is UnionType or str(origin) == "typing.Union":
        parts = dict.fromkeys(words(each) for each in inner if each is not int or float not in inner)
        return " or ".join(parts)
    if origin is Literal:
        return " or ".join(repr(value) for value in inner)
    if origin is list:
        return f"a list with {words(inner[0])} in each place"
    if origin is dict:
        return "an object"
    return WORDS.get(kind, "another value")


def typed(config: Mapping[str, Any], key: str, entry: Key, where: str) -> Any:
    """The value of `key`, or the library's default. Raises `SpecError` for another type."""
    value = config.get(key, entry.default)
    if key in config and not is_a(value, entry.kind):
        raise SpecError(f"{where}, {key}: got {shown(value)}, expected {words(entry.kind)}.")
    return value


def an_object(value: Any, where: str, key: str) -> Mapping[str, Any]:
    """`value`, or {} for null. Raises `SpecError` for what is no JSON object."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SpecError(f"{where}, {key}: got {shown(value)}, expected an object.")
    return value


def without_aliases(config: Mapping[str, Any], aliases: Mapping[str, str], where: str) -> dict[str, Any]:
    """`config` with the library's other names of keys replaced by the usual ones."""
    plain = {key: value for key, value in config.items() if key not in aliases}
    for alias, key in aliases.items():
        if alias in config:
            if key in config and config[key] != config[alias]:
                raise SpecError(
                    f"{where}, {alias}: is {shown(config[alias])}, and {key}, which means the same, is "
                    f"{shown(config[key])}: give one of them."
                )
            plain[key] = config[alias]
    return plain


def read_keys(
    table: Mapping[str, Key], aliases: Mapping[str, str], config: Mapping[str, Any], where: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a config gives: (fields, the config without aliases and with the table's defaults). Null gives no
    field.

    Raises `SpecError` with the key for a value of another type, out of range, or not computed here.
    """
    given, fields = without_aliases(config, aliases, where), dict[str, Any]()
    for key, entry in {**ANYWHERE, **table}.items():
        value = typed(given, key, entry, where)
        if entry.only and not any(type(value) is type(each) and value == each for each in entry.only):
            raise refused(where, key, value, expected(entry))
        for field in entry.fields:
            if value is not None:
                fields[field] = _in_range(value, field, key, where)
    return fields, {key: entry.default for key, entry in table.items()} | given


def expected(entry: Key) -> str:
    """The values of `only` that a file may have, in words."""
    written = [shown(each) for each in entry.only if is_a(each, entry.kind)]
    return " or ".join(written) or "no such key"


def _in_range(value: Any, field: str, key: str, where: str) -> Any:
    """Check that counts are at least 1, other numbers above 0."""
    if field.endswith("activation"):
        if value not in ACTIVATIONS:
            raise SpecError(f"{where}, {key}: {shown(value)} is not one of {', '.join(ACTIVATIONS)}.")
        return ACTIVATIONS[value]
    if field in SIGNED or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    largest = LARGEST.get(field, LARGEST_INTEGER)
    if isinstance(value, int) and not 1 <= value <= largest:
        raise SpecError(f"{where}, {key}: {shown(value)} is not between 1 and {largest}.")
    if isinstance(value, float) and not value > 0:
        raise SpecError(f"{where}, {key}: {shown(value)} is not above 0.")
    return value
