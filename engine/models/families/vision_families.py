"""The vision model families: ViT, and LLaVA with its CLIP tower and the names of Llama's tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.vision import VisionSpec
from engine.models.families.family import ACTIVATIONS, Family, Pictures, StoredTensor
from engine.models.families.text_families import LLAMA

HALF = (0.5, 0.5, 0.5)
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
CLIP_DEFAULTS = {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "num_channels": 3}
TOWER_KEYS = {
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "num_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "activation": "hidden_act",
    "norm_eps": "layer_norm_eps",
}


def _vit_pictures(config: Mapping[str, Any], where: str) -> VisionSpec:
    """ViT's image processor scales both edges to the square."""
    spec: VisionSpec = VisionSpec.parse(
        {
            "image_size": config.get("image_size"),
            "patch_size": config.get("patch_size"),
            "resample": "bilinear",
            "crop": False,
            "mean": HALF,
            "std": HALF,
        },
        where,
    )
    return spec


def _vit_config(vision: VisionSpec) -> dict[str, Any]:
    return {"image_size": vision.image_size, "patch_size": vision.patch_size}


def _llava_pictures(config: Mapping[str, Any], where: str) -> VisionSpec:
    """CLIP's image processor scales the shorter edge to the square's and crops the middle."""
    stored = config.get("vision_config") or {}
    kind = stored.get("model_type")
    if kind != "clip_vision_model":
        raise SpecError(
            f"{where}, vision_config.model_type: {kind!r} is no known tower, expected 'clip_vision_model'."
        )
    given = {**CLIP_DEFAULTS, **stored}
    tower = {field: given[key] for field, key in TOWER_KEYS.items() if key in given}
    tower["activation"] = ACTIVATIONS.get(str(tower["activation"]), tower["activation"])
    tower |= {
        "feature_layer": config["vision_feature_layer"],
        "image_token": config["image_token_index"],
        "projector_activation": ACTIVATIONS.get(str(config["projector_hidden_act"])),
    }
    spec: VisionSpec = VisionSpec.parse(
        {
            "image_size": stored.get("image_size"),
            "patch_size": stored.get("patch_size"),
            "resample": "bicubic",
            "crop": True,
            "mean": CLIP_MEAN,
            "std": CLIP_STD,
            "tower": tower,
        },
        f"{where}, vision_config",
    )
    return spec


def _llava_config(vision: VisionSpec) -> dict[str, Any]:
    tower = vision.tower
    assert tower is not None
    return {
        "vision_config": {
            "model_type": "clip_vision_model",
            "image_size": vision.image_size,
            "patch_size": vision.patch_size,
            **{key: getattr(tower, at) for at, key in TOWER_KEYS.items()},
        },
        "vision_feature_layer": tower.feature_layer,
        "image_token_index": tower.image_token,
        "projector_hidden_act": tower.projector_activation,
        "image_seq_length": vision.num_patches,
    }


VIT = Family(
    name="vit",
    architecture="ViTForImageClassification",
    fixed={"causal": False, "has_head": False, "tied_head": False, "vocab_size": 0},
    defaults={
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "image_size": 224,
        "patch_size": 16,
        "num_channels": 3,
        "qkv_bias": True,
    },
    keys={
        "num_layers": "num_hidden_layers",
        "hidden_size": "hidden_size",
        "num_heads": "num_attention_heads",
        "intermediate_size": "intermediate_size",
        "norm_eps": "layer_norm_eps",
        "activation": "hidden_act",
        "num_classes": "num_labels",
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
    refused={"qkv_bias": (True,), "num_channels": (3,)},
    vision=Pictures(_vit_pictures, _vit_config),
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


def with_tower(text: Family) -> Family:
    """LLaVA: the family of its language model, a CLIP tower and a projector before it."""
    tower, model, projector = "model.vision_tower.", "model.language_model.", "model.multi_modal_projector."
    layer = tower + "encoder.layers.{}."
    return text._replace(
        name="llava",
        architecture="LlavaForConditionalGeneration",
        defaults={
            **text.defaults,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "intermediate_size": 11008,
            "vision_feature_layer": -2,
            "image_token_index": 32000,
            "projector_hidden_act": "gelu",
            "vision_feature_select_strategy": "default",
            "multimodal_projector_bias": True,
        },
        tensors={
            name: stored if stored.name.startswith("lm_head.") else stored._replace(name=model + stored.name)
            for name, stored in text.tensors.items()
        }
        | {
            "vision.patches": StoredTensor(tower + "embeddings.patch_embedding"),
            "vision.cls": StoredTensor(tower + "embeddings.class_embedding"),
            "vision.positions": StoredTensor(tower + "embeddings.position_embedding.weight"),
            "vision.norm": StoredTensor(tower + "pre_layrnorm"),
            "vision.layers.{}.attention.norm": StoredTensor(layer + "layer_norm1"),
            "vision.layers.{}.attention.q": StoredTensor(layer + "self_attn.q_proj"),
            "vision.layers.{}.attention.k": StoredTensor(layer + "self_attn.k_proj"),
            "vision.layers.{}.attention.v": StoredTensor(layer + "self_attn.v_proj"),
            "vision.layers.{}.attention.o": StoredTensor(layer + "self_attn.out_proj"),
            "vision.layers.{}.ffn.norm": StoredTensor(layer + "layer_norm2"),
            "vision.layers.{}.ffn.up": StoredTensor(layer + "mlp.fc1"),
            "vision.layers.{}.ffn.down": StoredTensor(layer + "mlp.fc2"),
            "vision.projector.up": StoredTensor(projector + "linear_1"),
            "vision.projector.down": StoredTensor(projector + "linear_2"),
        },
        prefixes=("",),
        refused={
            **text.refused,
            "vision_feature_select_strategy": ("default",),
            "multimodal_projector_bias": (True,),
        },
        vision=Pictures(_llava_pictures, _llava_config),
        text=text.name,
        older=(
            (  # files of transformers before 4.52
                (model, "language_model.model."),
                ("lm_head.", "language_model.lm_head."),
                (tower, "vision_tower.vision_model."),
                (projector, "multi_modal_projector."),
            ),
            (  # what transformers 5 writes
                (model, "language_model.model."),
                ("lm_head.", "language_model.lm_head."),
                (tower, "vision_tower."),
                (projector, "multi_modal_projector."),
            ),
            ((tower, "model.vision_tower.vision_model."),),
        ),
        unused=(layer, tower + "post_layernorm."),
    )


VISION_FAMILIES = (VIT, with_tower(LLAMA))
"""Add a new family of vision models here."""
