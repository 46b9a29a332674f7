"""Converts a Hugging Face config.json to a ModelSpec and back, by the row of the model's family."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.models.families.family import Family, fields_of
from engine.models.families.keys import an_object, refused, shown
from engine.models.families.registry import family
from engine.models.families.rope import rope_config
from engine.models.families.unsupported import plain

WRAPPED = {"gemma3": "gemma3_text"}
"""Kinds of models that read pictures too, and the family of the language model in them, which is all that is
read: text needs no more.
"""
GENERATES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def spec_of_config(name: str, config: Mapping[str, Any], where: str) -> ModelSpec:
    """The ModelSpec of a Hugging Face config.json. `where` names the file in errors (`SpecError`).

    What the library would compute in another way than the operations is refused by the name of its key.
    """
    if "model_type" not in config:
        raise SpecError(f"{where}, model_type: missing, expected the name of a family.")
    kind = config["model_type"]
    if not isinstance(kind, str):
        raise SpecError(f"{where}, model_type: got {shown(kind)}, expected the name of a family.")
    row = family(WRAPPED.get(kind, kind))
    if "auto_map" in config:
        raise SpecError(
            f"{where}: auto_map asks for remote code, which is never run: delete the key, because "
            f"transformers has the family {row.name} itself."
        )
    outer = config = plain(config, where)
    if kind in WRAPPED:
        config, where = _text_of(row, config, where)
    fields = {**row.fixed, **fields_of(row, config, where), "dtype": _dtype(outer)}
    if fields.get("has_head", True):
        fields["has_head"] = bool(fields.get("tied_head")) or _generates(config)
    try:
        spec: ModelSpec = ModelSpec.parse({"name": name, "family": row.name, **fields}, where)
    except SpecError as error:
        raise SpecError(where + _with_keys(row, str(error).removeprefix(where))) from error
    return spec


def _with_keys(row: Family, text: str) -> str:
    """`text` with the keys of the config in place of the fields that are read from them."""
    return re.sub(r"\b[a-z_]+\b", lambda word: row.key_of.get(word[0], word[0]), text)


def _text_of(row: Family, config: Mapping[str, Any], where: str) -> tuple[dict[str, Any], str]:
    """The config of the language model that a wrapper has beside its tower, and its place."""
    text = an_object(config.get("text_config"), where, "text_config")
    found = text.get("model_type", row.name)
    if found != row.name:
        raise refused(where, "text_config.model_type", found, repr(row.name))
    if config.get("tie_word_embeddings", True) is not True:
        raise refused(where, "tie_word_embeddings", config["tie_word_embeddings"], "true")
    return {**text, "tie_word_embeddings": True}, f"{where}, text_config"


def _generates(config: Mapping[str, Any]) -> bool:
    architectures = config.get("architectures") or ["ForCausalLM"]
    return any(kind.endswith(GENERATES) for kind in architectures)


def _dtype(config: Mapping[str, Any]) -> str:
    """The number type of a config: dtype, or torch_dtype of before transformers 5, or the text model's own.
    Others become float32.
    """
    places = (config, config.get("text_config") or {})
    stored = [place.get(key) for place in places for key in ("dtype", "torch_dtype")]
    return "bfloat16" if next(filter(None, stored), None) == "bfloat16" else "float32"


def config_of_spec(model: ModelSpec) -> dict[str, Any]:
    """The Hugging Face config that `spec_of_config` reads back to `model`."""
    row = family(model.family)
    config: dict[str, Any] = {
        "model_type": row.name,
        "architectures": [architecture_of(model)],
        "dtype": model.dtype,
    }
    config |= {key: getattr(model, field) for field, key in row.key_of.items() if hasattr(model, field)}
    config |= {key: entry.only[0] for key, entry in row.keys.items() if entry.default_is_refused}
    if "rope_parameters" in row.keys:
        config["rope_parameters"] = rope_config(model)
    return {**config, **(row.write(model) if row.write else {})}


def architecture_of(model: ModelSpec) -> str:
    """The library's class that computes what `model` does."""
    row: Family = family(model.family)
    if model.vision and not (model.has_head or model.num_classes):
        return row.architecture.partition("For")[0] + "Model"
    return row.architecture
