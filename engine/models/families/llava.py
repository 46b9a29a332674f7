"""LLaVA: a CLIP tower and a projector before a language model of Llama's family.

LLaVA-1.5: Liu et al., "Improved Baselines with Visual Instruction Tuning", CVPR 2024.
CLIP: Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.vision import VisionSpec
from engine.models.families.family import Family, StoredTensor, fields_of, heads
from engine.models.families.keys import Key, Probability, an_object, harmless, only, read, read_keys, refused
from engine.models.families.llama import LLAMA
from engine.models.families.rope import rope_config

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
TOWER = "clip_vision_model"
CLIP_KEYS = {
    "hidden_size": read(int, 768, "hidden_size"),
    "intermediate_size": read(int, 3072, "intermediate_size"),
    "num_hidden_layers": read(int, 12, "num_layers"),
    "num_attention_heads": read(int, 12, "num_heads"),
    "image_size": read(int, 224, "image_size"),
    "patch_size": read(int, 32, "patch_size"),
    "hidden_act": read(str, "quick_gelu", "activation"),
    "layer_norm_eps": read(float, 1e-5, "norm_eps"),
    "is_causal": Key(bool, None, only=(None, False)),
    "num_channels": only(int, 3),
    "projection_dim": harmless(int, 512),
    "attention_dropout": harmless(Probability | None, 0.0),
    "initializer_range": harmless(float, 0.02),
    "initializer_factor": harmless(float, 1.0),
}
UNNAMED_TOWER = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
"""What the library takes where a config has no vision_config at all."""

TOWER_FIELDS = ("num_layers", "hidden_size", "num_heads", "intermediate_size", "activation", "norm_eps")


def _text(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of the language model, which text_config alone describes. Either place may tie the head."""
    config = an_object(given["text_config"], where, "text_config")
    kinds = given.get("architectures") or [LLAVA.architecture]
    if not any(each.endswith("ForConditionalGeneration") for each in kinds):
        raise refused(where, "architectures", kinds, repr(LLAVA.architecture))
    kind = config.get("model_type", LLAMA.name)
    if kind != LLAMA.name:
        raise refused(where, "text_config.model_type", kind, repr(LLAMA.name))
    text = fields_of(LLAMA, config, f"{where}, text_config")
    if fields["image_token"] not in range(text["vocab_size"]):
        raise SpecError(
            f"{where}, image_token_index: {fields['image_token']} is none of the {text['vocab_size']} tokens."
        )
    return {**text, **fields, "tied_head": fields["tied_head"] or text["tied_head"]}


def _pictures(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """How pictures are prepared: CLIP's image processor scales the shorter edge to the square's and crops the
    middle.
    """
    stored = an_object(given["vision_config"], where, "vision_config")
    config = UNNAMED_TOWER if given["vision_config"] is None else stored
    kind, place = config.get("model_type", TOWER), f"{where}, vision_config"
    if kind != TOWER:
        raise SpecError(f"{place}.model_type: {kind!r} is no known tower, expected {TOWER!r}.")
    tower, filled = read_keys(CLIP_KEYS, {}, config, place)
    heads(tower, filled, place)
    if tower["activation"] not in ("gelu", "gelu_new", "quick_gelu"):
        raise refused(place, "hidden_act", filled["hidden_act"], "a kind of gelu")
    ends = {field: fields.pop(field) for field in ("feature_layer", "image_token", "projector_activation")}
    if ends["projector_activation"] not in ("gelu", "gelu_new"):
        raise refused(where, "projector_hidden_act", given["projector_hidden_act"], "'gelu' or 'gelu_new'")
    if not -tower["num_layers"] <= ends["feature_layer"] < 0:
        expected = f"one of the tower's layers, -{tower['num_layers']} to -1"
        raise refused(where, "vision_feature_layer", ends["feature_layer"], expected)
    vision: VisionSpec = VisionSpec.parse(
        {
            "image_size": tower["image_size"],
            "patch_size": tower["patch_size"],
            "resample": "bicubic",
            "crop": True,
            "mean": CLIP_MEAN,
            "std": CLIP_STD,
            "tower": {**{field: tower[field] for field in TOWER_FIELDS}, **ends},
        },
        place,
    )
    return {**fields, "vision": vision}


def _config(model: ModelSpec) -> dict[str, Any]:
    assert model.vision is not None and model.vision.tower is not None
    vision, tower = model.vision, model.vision.tower
    key_of = {field: key for key, entry in CLIP_KEYS.items() for field in entry.fields}
    text = {key: getattr(model, field) for field, key in LLAMA.key_of.items()}
    return {
        "text_config": {
            "model_type": LLAMA.name,
            **text,
            "rope_parameters": rope_config(model),
            "dtype": model.dtype,
        },
        "vision_config": {
            "model_type": TOWER,
            "image_size": vision.image_size,
            "patch_size": vision.patch_size,
            **{key_of[field]: getattr(tower, field) for field in TOWER_FIELDS},
        },
        "tie_word_embeddings": model.tied_head,
        "vision_feature_layer": tower.feature_layer,
        "image_token_index": tower.image_token,
        "projector_hidden_act": tower.projector_activation,
        "image_seq_length": vision.num_patches,
    }


ENCODER, MODEL, PROJECTOR = "model.vision_tower.", "model.language_model.", "model.multi_modal_projector."
LAYER = ENCODER + "encoder.layers.{}."

LLAVA = Family(
    name="llava",
    architecture="LlavaForConditionalGeneration",
    fixed=LLAMA.fixed,
    keys={
        "vision_config": harmless(dict[str, Any] | None, None),
        "text_config": harmless(dict[str, Any] | None, None),
        "image_token_index": read(int, 32000, "image_token"),
        "projector_hidden_act": read(str, "gelu", "projector_activation"),
        "vision_feature_layer": read(int, -2, "feature_layer"),
        "tie_word_embeddings": read(bool, False, "tied_head"),
        "vision_feature_select_strategy": only(str, "default"),
        "multimodal_projector_bias": only(bool, True),
        "image_seq_length": harmless(int, 576),
        "is_causal": Key(bool, None, only=(None,)),  # the library would set it in tower and text alike
    },
    aliases={"image_token_id": "image_token_index"},
    tensors={
        name: stored if stored.name.startswith("lm_head.") else stored._replace(name=MODEL + stored.name)
        for name, stored in LLAMA.tensors.items()
    }
    | {
        "vision.patches": StoredTensor(ENCODER + "embeddings.patch_embedding"),
        "vision.cls": StoredTensor(ENCODER + "embeddings.class_embedding"),
        "vision.positions": StoredTensor(ENCODER + "embeddings.position_embedding.weight"),
        "vision.norm": StoredTensor(ENCODER + "pre_layrnorm"),
        "vision.layers.{}.attention.norm": StoredTensor(LAYER + "layer_norm1"),
        "vision.layers.{}.attention.q": StoredTensor(LAYER + "self_attn.q_proj"),
        "vision.layers.{}.attention.k": StoredTensor(LAYER + "self_attn.k_proj"),
        "vision.layers.{}.attention.v": StoredTensor(LAYER + "self_attn.v_proj"),
        "vision.layers.{}.attention.o": StoredTensor(LAYER + "self_attn.out_proj"),
        "vision.layers.{}.ffn.norm": StoredTensor(LAYER + "layer_norm2"),
        "vision.layers.{}.ffn.up": StoredTensor(LAYER + "mlp.fc1"),
        "vision.layers.{}.ffn.down": StoredTensor(LAYER + "mlp.fc2"),
        "vision.projector.up": StoredTensor(PROJECTOR + "linear_1"),
        "vision.projector.down": StoredTensor(PROJECTOR + "linear_2"),
    },
    prefixes=("",),
    steps=(_text, _pictures),
    refuses=("text_config: of family llama", "vision_config: of family clip_vision_model"),
    write=_config,
    older=(
        (  # files of transformers before 4.52
            (MODEL, "language_model.model."),
            ("lm_head.", "language_model.lm_head."),
            (ENCODER, "vision_tower.vision_model."),
            (PROJECTOR, "multi_modal_projector."),
        ),
        (  # what transformers 5 writes
            (MODEL, "language_model.model."),
            ("lm_head.", "language_model.lm_head."),
            (ENCODER, "vision_tower."),
            (PROJECTOR, "multi_modal_projector."),
        ),
        ((ENCODER, "model.vision_tower.vision_model."),),
    ),
    unused=(LAYER, ENCODER + "post_layernorm."),
)
