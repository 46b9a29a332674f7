"""Model families as rows of differences: what a config says, and what the tensors of a file are called.

A new family is one `Family` in `FAMILIES`, if its layers are those of `ops.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import SpecError
from engine.models.family import ACTIVATIONS, Family, Pictures, Stored
from engine.models.spec import ModelSpec
from engine.models.vision_families import VIT, with_tower

GPT2 = Family(
    name="gpt2",
    architecture="GPT2LMHeadModel",
    fixed={},
    defaults={
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
    },
    keys={
        "num_layers": "n_layer", "hidden_size": "n_embd", "num_heads": "n_head",
        "intermediate_size": "n_inner", "vocab_size": "vocab_size", "max_positions": "n_positions",
        "norm_eps": "layer_norm_epsilon", "activation": "activation_function",
        "tied_head": "tie_word_embeddings",
    },
    tensors={
        "embed.tokens": Stored("wte.weight"),
        "embed.positions": Stored("wpe.weight"),
        "layers.{}.attention.norm": Stored("h.{}.ln_1"),
        "layers.{}.attention.q": Stored("h.{}.attn.c_attn", transposed=True, fused=0, of=3),
        "layers.{}.attention.k": Stored("h.{}.attn.c_attn", transposed=True, fused=1, of=3),
        "layers.{}.attention.v": Stored("h.{}.attn.c_attn", transposed=True, fused=2, of=3),
        "layers.{}.attention.o": Stored("h.{}.attn.c_proj", transposed=True),
        "layers.{}.ffn.norm": Stored("h.{}.ln_2"),
        "layers.{}.ffn.up": Stored("h.{}.mlp.c_fc", transposed=True),
        "layers.{}.ffn.down": Stored("h.{}.mlp.c_proj", transposed=True),
        "lm_head.norm": Stored("ln_f"),
        "lm_head.weight": Stored("lm_head.weight"),
    },
    prefixes=("transformer.", ""),
    refused={
        "scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
    },
)

BERT = Family(
    name="bert",
    architecture="BertModel",
    fixed={"causal": False, "norm_position": "post", "embedding_norm": True, "has_head": False},
    defaults={"hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2},
    keys={
        "num_layers": "num_hidden_layers", "hidden_size": "hidden_size", "num_heads": "num_attention_heads",
        "intermediate_size": "intermediate_size", "vocab_size": "vocab_size",
        "max_positions": "max_position_embeddings", "norm_eps": "layer_norm_eps", "activation": "hidden_act",
        "token_types": "type_vocab_size",
    },
    tensors={
        "embed.tokens": Stored("embeddings.word_embeddings.weight"),
        "embed.positions": Stored("embeddings.position_embeddings.weight"),
        "embed.types": Stored("embeddings.token_type_embeddings.weight"),
        "embed.norm": Stored("embeddings.LayerNorm"),
        "layers.{}.attention.norm": Stored("encoder.layer.{}.attention.output.LayerNorm"),
        "layers.{}.attention.q": Stored("encoder.layer.{}.attention.self.query"),
        "layers.{}.attention.k": Stored("encoder.layer.{}.attention.self.key"),
        "layers.{}.attention.v": Stored("encoder.layer.{}.attention.self.value"),
        "layers.{}.attention.o": Stored("encoder.layer.{}.attention.output.dense"),
        "layers.{}.ffn.norm": Stored("encoder.layer.{}.output.LayerNorm"),
        "layers.{}.ffn.up": Stored("encoder.layer.{}.intermediate.dense"),
        "layers.{}.ffn.down": Stored("encoder.layer.{}.output.dense"),
    },
    prefixes=("bert.", ""),
    refused={
        "position_embedding_type": ("absolute",), "is_decoder": (False,), "add_cross_attention": (False,),
    },
    older=((("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")),),
)

LLAMA = Family(
    name="llama",
    architecture="LlamaForCausalLM",
    fixed={"norm": "rmsnorm", "positions": "rope", "gated_ffn": True},
    defaults={
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "rope_theta": 10000.0,
        "attention_bias": False, "mlp_bias": False,
    },
    keys={
        "num_layers": "num_hidden_layers", "hidden_size": "hidden_size", "num_heads": "num_attention_heads",
        "num_kv_heads": "num_key_value_heads", "head_dim": "head_dim",
        "intermediate_size": "intermediate_size", "vocab_size": "vocab_size",
        "max_positions": "max_position_embeddings", "norm_eps": "rms_norm_eps", "activation": "hidden_act",
        "tied_head": "tie_word_embeddings", "rope_theta": "rope_theta", "attention_bias": "attention_bias",
        "ffn_bias": "mlp_bias",
    },
    tensors={
        "embed.tokens": Stored("embed_tokens.weight"),
        "layers.{}.attention.norm": Stored("layers.{}.input_layernorm"),
        "layers.{}.attention.q": Stored("layers.{}.self_attn.q_proj"),
        "layers.{}.attention.k": Stored("layers.{}.self_attn.k_proj"),
        "layers.{}.attention.v": Stored("layers.{}.self_attn.v_proj"),
        "layers.{}.attention.o": Stored("layers.{}.self_attn.o_proj"),
        "layers.{}.ffn.norm": Stored("layers.{}.post_attention_layernorm"),
        "layers.{}.ffn.up": Stored("layers.{}.mlp.up_proj"),
        "layers.{}.ffn.gate": Stored("layers.{}.mlp.gate_proj"),
        "layers.{}.ffn.down": Stored("layers.{}.mlp.down_proj"),
        "lm_head.norm": Stored("norm"),
        "lm_head.weight": Stored("lm_head.weight"),
    },
    prefixes=("model.", ""),
    refused={"rope_scaling": (None,)},
)

GENERATES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
FAMILIES = (GPT2, BERT, LLAMA, VIT, with_tower(LLAMA))

def family(name: str) -> Family:
    """The family called `name` (config.json's model_type); raises `SpecError` naming the known ones."""
    for row in FAMILIES:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in FAMILIES)
    raise SpecError(f"model_type {name}: no such family, expected one of {known}.")


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
    given |= _rope(config, where)
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
    if row.vision:
        fields |= _pictures(row.vision, given, fields, where)
    spec: ModelSpec = ModelSpec.parse({"name": name, "family": row.name, **row.fixed, **fields}, where)
    return spec


def _pictures(
    pictures: Pictures, given: Mapping[str, Any], fields: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """The fields of a model that sees: without a tower, its layers have just the picture's positions."""
    vision = pictures.read(given, where)
    if vision.tower:
        return {"vision": vision}
    kinds = given.get("architectures") or ["ForImageClassification"]
    classifies = any(kind.endswith("ForImageClassification") for kind in kinds)
    labels = given.get("num_labels") or len(given.get("id2label") or (0, 1))  # the library's default is two
    return {
        "vision": vision, "max_positions": vision.num_rows, "num_classes": labels if classifies else 0,
    }


def _rope(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Rotary settings, from their newer place (rope_parameters) to their older one."""
    rope = config.get("rope_parameters") or {}
    kind = rope.get("rope_type", "default")
    if kind != "default":
        raise SpecError(f"{where}, rope_parameters.rope_type: {kind!r} is not supported, expected 'default'.")
    return {"rope_theta": rope["rope_theta"]} if "rope_theta" in rope else {}


def config_of_spec(model: ModelSpec) -> dict[str, Any]:
    """The Hugging Face config that `spec_of_config` reads back to `model`."""
    row = family(model.family)
    config: dict[str, Any] = {key: getattr(model, field) for field, key in row.keys.items()}
    if "rope_theta" in config:
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
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


def unused_names(model: ModelSpec) -> tuple[str, ...]:
    """Beginnings of the names of stored tensors that change no result."""
    row, tower = family(model.family), model.vision.tower if model.vision else None
    behind = range(tower.used_layers, tower.num_layers) if tower else ()
    return tuple(dict.fromkeys(name.format(n) for name in row.unused for n in behind))


def stored_as(model: ModelSpec, name: str) -> Stored:
    """Where the canonical tensor `name` is stored, without the family's prefix."""
    row = family(model.family)
    if name in row.tensors:
        return row.tensors[name]
    head, _, kind = name.rpartition(".")
    layer = next((part for part in head.split(".") if part.isdigit()), "")
    stored = row.tensors[head.replace(f"layers.{layer}.", "layers.{}.")]
    return stored._replace(name=f"{stored.name.format(layer)}.{kind}")


def candidates(model: ModelSpec, stored: Stored) -> tuple[str, ...]:
    """Names under which files have `stored`: in today's and older spelling, with and without prefix."""
    row = family(model.family)
    names = dict.fromkeys((stored.name, *(_respelled(stored.name, pairs) for pairs in row.older)))
    prefixes = ("",) if stored.name.startswith("lm_head.") else row.prefixes
    return tuple(prefix + name for name in names for prefix in prefixes)


def _respelled(name: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for today, older in pairs:
        name = name.replace(today, older)
    return name
