"""Converts a Hugging Face config.json to a ModelSpec and back, by the row of the model's family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec, RopeScaling
from engine.models.families.family import ACTIVATIONS, Pictures
from engine.models.families.registry import family

ROPE_SCALING_KEYS = {
    "factor": "factor",
    "low_freq_factor": "low_freq_factor",
    "high_freq_factor": "high_freq_factor",
    "original_max_positions": "original_max_position_embeddings",
}
GENERATES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def spec_of_config(name: str, config: Mapping[str, Any], where: str) -> ModelSpec:
    """The ModelSpec of a Hugging Face config.json. `where` names the file in errors (`SpecError`)."""
    if "auto_map" in config:
        raise SpecError(
            f"{where}: auto_map asks for remote code, which is never run: use a model of a known family."
        )
    if config.get("quantization_config"):
        raise SpecError(f"{where}: quantized weights are not supported, expected float32 or bfloat16.")
    row = family(str(config.get("model_type", "missing")))
    given = {**row.defaults, **config, **config.get("text_config", {})}
    for key, other in row.same.items():
        if given.get(key) not in (None, given.get(other)):
            raise SpecError(
                f"{where}, {key}: {given[key]!r} is not supported, expected {other}'s {given.get(other)!r}."
            )
    for key, harmless in row.refused.items():
        if key in given and given[key] not in harmless:
            raise SpecError(f"{where}, {key}: {given[key]!r} is not supported, expected {harmless[0]!r}.")
    fields = {field: given[key] for field, key in row.keys.items() if given.get(key) is not None}
    heads = fields.get("num_heads")
    if "hidden_size" in fields and isinstance(heads, int) and heads > 0:
        fields.setdefault("num_kv_heads", heads)
        fields.setdefault("head_dim", fields["hidden_size"] // heads)
        fields.setdefault("intermediate_size", 4 * fields["hidden_size"])
    if "activation" in fields:
        if fields["activation"] not in ACTIVATIONS:
            key, known = row.keys["activation"], ", ".join(ACTIVATIONS)
            raise SpecError(f"{where}, {key}: {fields['activation']!r} is not one of {known}.")
        fields["activation"] = ACTIVATIONS[fields["activation"]]
    stored = str(given.get("dtype") or given.get("torch_dtype") or "float32").removeprefix("torch.")
    fields["dtype"] = "bfloat16" if stored == "bfloat16" else "float32"
    architectures = config.get("architectures") or ["ForCausalLM"]
    if row.fixed.get("has_head", True):
        fields["has_head"] = bool(fields.get("tied_head")) or any(
            kind.endswith(GENERATES) for kind in architectures
        )
    if row.fixed.get("positions") == "rope":
        fields |= _rope(given, where)
    if row.vision:
        fields |= _pictures(row.vision, given, fields, where)
    spec: ModelSpec = ModelSpec.parse({"name": name, "family": row.name, **row.fixed, **fields}, where)
    return spec


def _pictures(
    pictures: Pictures, given: Mapping[str, Any], fields: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """The fields of a vision model. Without a tower, its positions are those of the image's rows."""
    vision = pictures.read(given, where)
    if vision.tower:
        return {"vision": vision}
    kinds = given.get("architectures") or ["ForImageClassification"]
    classifies = any(kind.endswith("ForImageClassification") for kind in kinds)
    labels = given.get("num_labels") or len(given.get("id2label") or (0, 1))  # the library's default is two
    return {
        "vision": vision,
        "max_positions": vision.num_rows,
        "num_classes": labels if classifies else 0,
    }


def _rope(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Fields of rotary settings, from their newer place (rope_parameters) or their older (rope_scaling)."""
    place = "rope_parameters" if config.get("rope_parameters") else "rope_scaling"
    rope = config.get(place) or {}
    found = {"rope_theta": rope["rope_theta"]} if "rope_theta" in rope else {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return found
    if kind != "llama3":
        raise SpecError(
            f"{where}, {place}.rope_type: {kind!r} is not supported, expected 'default' or 'llama3'."
        )
    scaling = {field: rope[key] for field, key in ROPE_SCALING_KEYS.items() if key in rope}
    return {**found, "rope_scaling": RopeScaling.parse(scaling, f"{where}, {place}")}


def _rope_config(model: ModelSpec, theta: float) -> dict[str, Any]:
    if model.rope_scaling is None:
        return {"rope_type": "default", "rope_theta": theta}
    scaling = {key: getattr(model.rope_scaling, field) for field, key in ROPE_SCALING_KEYS.items()}
    return {"rope_type": "llama3", "rope_theta": theta, **scaling}


def config_of_spec(model: ModelSpec) -> dict[str, Any]:
    """The Hugging Face config that `spec_of_config` reads back to `model`."""
    row = family(model.family)
    config: dict[str, Any] = {key: getattr(model, field) for field, key in row.keys.items()}
    if "rope_theta" in config:
        config["rope_parameters"] = _rope_config(model, config.pop("rope_theta"))
    if model.vision and row.vision:
        if model.vision.tower:
            config = {"text_config": {"model_type": row.text, **config, "dtype": model.dtype}}
        config |= row.vision.write(model.vision)
    named = {"model_type": row.name, "architectures": [architecture_of(model)], "dtype": model.dtype}
    return {**named, **config}


def architecture_of(model: ModelSpec) -> str:
    """The library's class that computes what `model` does."""
    row = family(model.family)
    if model.vision and not (model.has_head or model.num_classes):
        return row.architecture.partition("For")[0] + "Model"
    return row.architecture
