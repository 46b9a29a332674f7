"""ViT (Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.vision import VisionSpec
from engine.models.families.family import Family, StoredTensor, heads
from engine.models.families.keys import Key, Probability, harmless, only, read, shown

HALF = (0.5, 0.5, 0.5)


def _pictures(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """How pictures are prepared: ViT's image processor scales both edges to the square. Positions are those
    of the image's rows.
    """
    sizes = {key: fields.pop(key) for key in ("image_size", "patch_size")}
    settings = {"resample": "bilinear", "crop": False, "mean": HALF, "std": HALF}
    vision: VisionSpec = VisionSpec.parse({**sizes, **settings}, where)
    return {
        **fields,
        "vision": vision,
        "max_positions": vision.num_rows,
        "num_classes": _classes(given, where),
    }


def _classes(given: Mapping[str, Any], where: str) -> int:
    """The number of classes: num_labels goes before id2label, and the library's default is two classes."""
    kinds = given.get("architectures") or ["ForImageClassification"]
    if not any(kind.endswith("ForImageClassification") for kind in kinds):
        return 0
    labels, names = given.get("num_labels"), given.get("id2label")
    count: int = labels if labels is not None else 2 if names is None else len(names)
    if count < 1:
        key = "num_labels" if labels is not None else "id2label"
        raise SpecError(f"{where}, {key}: {shown(given[key])} gives {count} classes, expected at least 1.")
    return count


def _config(model: ModelSpec) -> dict[str, Any]:
    assert model.vision is not None
    sizes = {"image_size": model.vision.image_size, "patch_size": model.vision.patch_size}
    return {**sizes, "num_labels": model.num_classes} if model.num_classes else sizes


VIT = Family(
    name="vit",
    architecture="ViTForImageClassification",
    fixed={"causal": False, "has_head": False, "tied_head": False, "vocab_size": 0},
    keys={
        "hidden_size": read(int, 768, "hidden_size"),
        "num_hidden_layers": read(int, 12, "num_layers"),
        "num_attention_heads": read(int, 12, "num_heads"),
        "intermediate_size": read(int, 3072, "intermediate_size"),
        "hidden_act": read(str, "gelu", "activation"),
        "layer_norm_eps": read(float, 1e-12, "norm_eps"),
        "image_size": read(int, 224, "image_size"),
        "patch_size": read(int, 16, "patch_size"),
        "is_causal": Key(bool, None, only=(None, False)),
        "num_channels": only(int, 3),
        "qkv_bias": only(bool, True),
        "hidden_dropout_prob": harmless(Probability, 0.0),
        "attention_probs_dropout_prob": harmless(Probability, 0.0),
        "initializer_range": harmless(float, 0.02),
        "encoder_stride": harmless(int, 16),
        "pooler_output_size": harmless(int | None, None),
        "pooler_act": harmless(str, "tanh"),
    },
    tensors={
        "embed.patches": StoredTensor("embeddings.patch_embeddings.projection"),
        "embed.cls": StoredTensor("embeddings.cls_token"),
        "embed.positions": StoredTensor("embeddings.position_embeddings"),
        "layers.{}.attention.norm": StoredTensor("layers.{}.layernorm_before"),
        "layers.{}.attention.q": StoredTensor("layers.{}.attention.q_proj"),
        "layers.{}.attention.k": StoredTensor("layers.{}.attention.k_proj"),
        "layers.{}.attention.v": StoredTensor("layers.{}.attention.v_proj"),
        "layers.{}.attention.o": StoredTensor("layers.{}.attention.o_proj"),
        "layers.{}.ffn.norm": StoredTensor("layers.{}.layernorm_after"),
        "layers.{}.ffn.up": StoredTensor("layers.{}.mlp.fc1"),
        "layers.{}.ffn.down": StoredTensor("layers.{}.mlp.fc2"),
        "lm_head.norm": StoredTensor("layernorm"),
        "lm_head.classifier": StoredTensor("classifier"),
    },
    prefixes=("vit.", ""),
    steps=(heads, _pictures),
    write=_config,
    older=(
        (
            ("layers.", "encoder.layer."),
            ("attention.q_proj", "attention.attention.query"),
            ("attention.k_proj", "attention.attention.key"),
            ("attention.v_proj", "attention.attention.value"),
            ("attention.o_proj", "attention.output.dense"),
            ("mlp.fc1", "intermediate.dense"),
            ("mlp.fc2", "output.dense"),
        ),
    ),
)
