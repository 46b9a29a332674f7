"""Draws config.json files of every family, with every key that the library's configuration class knows.

A case is right if the config is refused with one sentence, or if our logits are those of the module that
`transformers` builds from that very file, with the same random weights.

`python -m tests.support.config_fuzz --cases 2000 --seed 1` tries many and prints what differs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.families.keys import ANYWHERE
from engine.models.families.registry import FAMILIES
from engine.models.inputs.prompts import pixels_of, requests_of
from engine.models.reference import transformers_outputs
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.layout import whole_model
from engine.ops.vision import Classify, EmbedPrompt, image_ops
from tests.support.one_device import LAPTOP, layers, relative_error, run

LIMIT = 1e-4
SEED = 7
SIZES: Mapping[str, tuple[int, ...]] = {
    "num_layers": (1, 2),
    "hidden_size": (32, 32, 48, 64),
    "num_heads": (4, 4, 2),
    "num_kv_heads": (2, 2, 1),
    "head_dim": (8, 16),
    "intermediate_size": (40, 24),
    "vocab_size": (61,),
    "max_positions": (64, 48),
    "token_types": (2, 1),
    "image_size": (12, 8),
    "patch_size": (4,),
    "image_token": (60, 50),
    "feature_layer": (-1, -2),
}
"""Small sizes for the fields that a row reads."""
OFTEN = {
    "sliding_window": (None, 3, 4, 100),
    "attention_chunk_size": (None, 4),
    "layer_types": (
        None,
        ["full_attention"],
        ["full_attention", "full_attention"],
        ["sliding_attention", "full_attention"],
        ["sliding_attention", "sliding_attention"],
        ["full_attention", "sliding_attention"],
        ["attention", "attention"],
    ),
    "max_window_layers": (0, 1, 28),
    "no_rope_layers": (None, [1, 1], [0, 1], [1, 0], []),
    "no_rope_layer_interval": (1, 2, 4),
    "sliding_window_pattern": (1, 2, 6),
    "per_layer_config": (None, {"0": {"num_attention_heads": 2}}, {}),
    "id2label": (None, {"0": "a", "1": "b", "2": "c"}, {}, {"a": "b"}, ["a"]),
    "label2id": (None, {"a": 0}),
    "num_labels": (None, 0, 1, 3),
    "architectures": (None, [], ["ModelForCausalLM"], ["LlamaModel"], ["ViTForImageClassification"]),
    "dtype": (None, "float32", "float16", "bfloat16", "float8", 16),
    "torch_dtype": (None, "float32", "float16", "bfloat16", "torch.float16"),
    "attn_implementation": (None, "eager", "sdpa", "flash_attention_2"),
    "_attn_implementation": (None, "eager", "sdpa"),
    "quantization_config": (None, {}, {"bits": 4}),
    "problem_type": (None, "regression", "other"),
    "text_config": (None, {}, {"model_type": "qwen3"}),
    "is_causal": (True, False, None),
    "vision_feature_layer": (-1, -2, -3, 0, 1, [-1], [-2, -1]),
    "vision_feature_select_strategy": ("default", "full"),
    "layer_norm_elementwise_affine": (True, False),
    "word_embed_proj_dim": (None, 16, 32),
    "position_embedding_type": ("absolute", "relative_key"),
    "final_logit_softcapping": (None, 30.0, 2.0),
    "attn_logit_softcapping": (None, 50.0, 1.5),
    "query_pre_attn_scalar": (256, 8, 16, 24),
    "original_max_position_embeddings": (None, 8, 16, 32, 4096),
    "partial_rotary_factor": (None, 1, 1.0, 0.5, 0.25),
    "rope_theta": (10000.0, 10000, 500.0, 1e6, None, "1"),
    "rope_local_base_freq": (10000.0, 100.0),
    "is_decoder": (False, True),
    "summary_type": ("cls_index", "first"),
    "pad_token_id": (None, 0, 3, -1, 60, 61, 1000, -100),
    "eos_token_id": (None, 2, [1, 2], "2"),
    "chunk_size_feed_forward": (0, 1, 4),
    "output_attentions": (None, False, True),
    "use_bidirectional_attention": (None, False, True),
}
"""Values of single keys that a type alone would hardly meet."""
ACTIVATIONS = (
    *(
        "gelu",
        "gelu_new",
        "gelu_fast",
        "gelu_python",
        "gelu_pytorch_tanh",
        "gelu_accurate",
        "gelu_10",
        "silu",
    ),
    *("swish", "relu", "relu2", "relu6", "quick_gelu", "mish", "tanh", "sigmoid", "linear", "GELU", "none"),
)
UNKNOWN = {
    "_name_or_path": "x/y",
    "transformers_version": "4.40.0",
    "unsloth_fixed": True,
    "temperature": 0.7,
    "max_length": 20,
    "rms_norm_epsilon": 0.5,
    "tokenizer_class": "LlamaTokenizer",
    "task_specific_params": {"a": 1},
    "gradient_checkpointing": False,
    "use_return_dict": None,
    "attention_scale": 3.0,
    "logit_scale": 0.3,
    "residual_multiplier": 2.0,
    "hidden_activation": "relu",
    "n_ctx": 32,
    "vision_use_head": True,
}
"""Keys that the library's classes of our families do not know; some are those of other families."""
MALFORMED = (None, "x", "", [], [1, 2], {}, {"a": 1}, True, False, -1, 0, 1.5, 10**12, -(10**30), 1e308)


class Case(NamedTuple):
    """A drawn config, and whether it is "refused" or "equal", or else what is wrong."""

    config: dict[str, Any]
    outcome: str
    sentence: str


def rope_settings(random: Random) -> Any:
    """Settings in old and new style, of every type, complete or not."""
    kind = random.choice(
        ("default", "llama3", "linear", "dynamic", "yarn", "longrope", "proportional", "none")
    )
    settings: dict[str, Any] = {random.choice(("rope_type", "rope_type", "type")): kind}
    more = {
        "rope_theta": random.choice((10000.0, 500, 1e6)),
        "factor": random.choice((1.0, 2.0, 4, 8.0)),
        "low_freq_factor": random.choice((1.0, 1, 2.0)),
        "high_freq_factor": random.choice((4.0, 4, 8.0)),
        "original_max_position_embeddings": random.choice((8, 16, 32, 8192)),
        "beta_fast": random.choice((32, 16.0, 4)),
        "beta_slow": random.choice((1, 2.0)),
        "attention_factor": random.choice((None, 1.0, 0.7, 1.3)),
        "mscale": random.choice((1.0, 0.7)),
        "mscale_all_dim": random.choice((1.0, 0.5, 0)),
        "truncate": random.choice((True, False)),
        "partial_rotary_factor": random.choice((1.0, 0.5)),
        "short_factor": [1.0] * 4,
        "long_factor": [2.0] * 4,
    }
    needed = {
        "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
        "linear": ("factor",),
        "dynamic": ("factor",),
        "yarn": ("factor",),
        "longrope": ("short_factor", "long_factor"),
    }.get(kind, ())
    for key, value in more.items():
        if random.random() < (0.95 if key in needed else 0.2):
            settings[key] = value
    if random.random() < 0.1:
        return {
            "full_attention": settings,
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        }
    return settings


def value_of(key: str, kind: Any, random: Random) -> Any:
    """A plausible value for a key whose type in the library's class is `kind`."""
    if key in OFTEN and random.random() < 0.9:
        return random.choice(OFTEN[key])
    if key in ("rope_parameters", "rope_scaling"):
        return rope_settings(random)
    text = str(kind)
    if "act" in key and "str" in text:
        return random.choice(ACTIVATIONS)
    choices: list[Any] = [None] if "None" in text else []
    choices += [True, False] * 2 if "bool" in text else []
    choices += [1e-6, 1e-5, 1e-3, 0.1, 0.5, 1.0] if "float" in text else []
    choices += [0, 1, 2, 3, 4, 8] if "int" in text else []
    choices += ["x"] if "str" in text else []
    return random.choice(choices or [None, True, 3, "x"])


def kinds_of(name: str) -> dict[str, Any]:
    """Every key that the library's class of a model type knows, and every other that may change something."""
    known: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(CONFIG_MAPPING[name])}
    more = {key: entry.kind for key, entry in ANYWHERE.items()}
    row = next((row for row in FAMILIES if row.name == name), None)
    of_row = {key: entry.kind for key, entry in row.keys.items()} if row else {}
    aliases = {alias: known.get(key, int) for alias, key in CONFIG_MAPPING[name].attribute_map.items()}
    beside = dict.fromkeys(("original_max_position_embeddings", "rope_theta", "partial_rotary_factor"), float)
    return {**more, **beside, **of_row, **aliases, **known}


def small_config(name: str, keys: Mapping[str, Any], random: Random) -> dict[str, Any]:
    """A config of a family that is small and can be run."""
    config: dict[str, Any] = {"model_type": name}
    for key, entry in keys.items():
        for field in entry.fields[:1]:
            if field in SIZES:
                config[key] = random.choice(SIZES[field])
        if entry.only and entry.default not in entry.only:
            config[key] = entry.only[0]
    config["pad_token_id"] = None
    return config


def changed(config: dict[str, Any], name: str, random: Random, most: int) -> None:
    """Change up to `most` keys."""
    kinds = kinds_of(name)
    names = [key for key in kinds if key not in ("vision_config", "text_config")]
    for _ in range(random.randrange(most + 1)):
        key = random.choice(names)
        chance = random.random()
        if chance < 0.05:
            config[key] = random.choice(MALFORMED)
        elif chance < 0.12:
            config.update([random.choice(list(UNKNOWN.items()))])
        elif chance < 0.3 and "rope_theta" in config | kinds and "rope_parameters" in kinds:
            config[random.choice(("rope_parameters", "rope_scaling"))] = rope_settings(random)
        else:
            config[key] = value_of(key, kinds[key], random)


def drawn(random: Random) -> dict[str, Any]:
    """A config of any family."""
    row = random.choice(FAMILIES)
    config = small_config(row.name, row.keys, random)
    if "vision_config" in row.keys:
        from engine.models.families.llama import LLAMA
        from engine.models.families.llava import CLIP_KEYS

        config.pop("pad_token_id")
        text = small_config(LLAMA.name, LLAMA.keys, random)
        tower = small_config("clip_vision_model", CLIP_KEYS, random)
        tower.pop("pad_token_id")
        changed(text, random.choice((LLAMA.name, LLAMA.name, "qwen3")), random, 2)
        changed(tower, "clip_vision_model", random, 2)
        if random.random() < 0.15:
            text["model_type"] = random.choice(("qwen2", "qwen3", "gemma", "mistral"))
        config |= {"text_config": text, "vision_config": tower}
        changed(config, row.name, random, 2)
    else:
        changed(config, row.name, random, 4)
    return config


def outcome_of(config: Mapping[str, Any], folder: Path, stored: bool = False) -> tuple[str, str]:
    """("refused", sentence), ("equal", ""), or what is wrong.

    `stored`: what is equal is also compared once the library has saved it with its weights.
    """
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    try:
        model, weights = catalogue.resolve(str(folder), "random")
    except SpecError as error:
        sentence = str(error)
        return ("refused" if "\n" not in sentence else "several lines", sentence)
    except Exception as error:
        return ("traceback", repr(error))
    outcome = compared(model, weights)
    if outcome[0] != "equal" or not stored:
        return outcome
    spec = small_run(model, weights)
    transformers_outputs.library_model(spec).save_pretrained(folder)
    try:
        return compared(*catalogue.resolve(str(folder)))
    except SpecError as error:
        return ("refused once the library has saved it", str(error))


def small_run(model: ModelSpec, weights: WeightsRef) -> RunSpec:
    """A prompt and three new tokens, as far as the model has room, in float32."""
    new_tokens = 3 if model.has_head else 0
    room = model.max_positions - model.image_rows * model.has_tower - new_tokens
    words = {"prompt_tokens": min(9, max(room, 1))} if model.reads_text else {}
    return RunSpec(
        cluster=LAPTOP,
        model=model.model_copy(update={"dtype": "float32"}),
        weights=weights,
        workload=Workload(**words, new_tokens=new_tokens),
        strategy="single",
        seed=SEED,
    )


def compared(model: ModelSpec, weights: WeightsRef) -> tuple[str, str]:
    """Compare our logits with the library's."""
    spec = small_run(model, weights)
    try:
        requests_of(spec)
    except SpecError as error:
        return ("refused", str(error))
    try:
        theirs = transformers_outputs.compute(spec)
    except Exception as error:
        return ("refused by the library alone", repr(error))
    try:
        ours = answer(spec)
    except Exception as error:
        return ("cannot be computed", repr(error))
    expected = theirs.get("logits.0", theirs.get("hidden.0"))
    if ours.shape != expected.shape:
        return ("another shape", f"{tuple(ours.shape)} and {tuple(expected.shape)}")
    difference = relative_error(ours, expected)
    return ("equal", "") if difference < LIMIT else ("different", f"relative error {difference:.2g}")


@torch.inference_mode()
def answer(spec: RunSpec) -> torch.Tensor:
    """Greedy logits [new_tokens, V] with a KV cache, or hidden states [T, D], or class logits [C]."""
    store = WeightStore(spec.model, spec.weights, SEED)
    for piece in whole_model(store.model):
        store.load(piece)
    request = requests_of(spec)[0]
    ids, caches, logits = torch.tensor([request.tokens]), dict[str, Any](), []
    if spec.model.vision:
        x = torch.from_numpy(pixels_of(spec, 0))[None]
        for op in image_ops(store.model):
            x = run(op, store, x)
        if not spec.model.reads_text:
            x = layers(store, x)
            return run(Classify() if spec.model.num_classes else ops.FinalHidden(), store, x)[0]
        x = run(EmbedPrompt(), store, ids, x)
    else:
        x = run(ops.Embed(0), store, ids)
    if not spec.workload.new_tokens:
        return run(ops.FinalHidden(), store, layers(store, x))[0]
    at = ids.shape[1]
    for _ in range(spec.workload.new_tokens):
        logits.append(run(ops.Head(), store, layers(store, x, caches))[0])
        x = run(ops.Embed(at), store, logits[-1].argmax().reshape(1, 1))
        at += 1
    return torch.stack(logits)


def cases(count: int, seed: int, stored_every: int = 10) -> list[Case]:
    """Draws `count` configs and tries each; of the weights, every `stored_every`th also from a file."""
    random, tried = Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            config, place = drawn(random), Path(folder) / str(number)
            place.mkdir()
            tried.append(Case(config, *outcome_of(config, place, not number % stored_every)))
            shutil.rmtree(place)
    return tried


def wrong(tried: list[Case]) -> list[Case]:
    return [case for case in tried if case.outcome not in ("refused", "equal")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    tried = cases(asked.cases, asked.seed)
    for case in wrong(tried):
        sys.stdout.write(f"{case.outcome}: {case.sentence}\n    {json.dumps(case.config)}\n")
    sys.stdout.write(f"{dict(Counter(case.outcome for case in tried))} in {time.monotonic() - began:.0f} s\n")
    return bool(wrong(tried))


if __name__ == "__main__":
    sys.exit(main())
