"""The device maps of random models are those that the package `accelerate` makes of the library's modules."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from accelerate import infer_auto_device_map
from accelerate.utils import get_balanced_memory

from engine.domain.model import ModelSpec
from engine.models import catalogue
from engine.models.families.hf_config import config_of_spec
from engine.models.families.registry import family
from engine.strategies.accelerate.device_map import balanced, infer_device_map
from engine.strategies.accelerate.modules import module_tree

NAMES = catalogue.smallest_models()


def drawn(name: str, seed: int) -> ModelSpec:
    """A small model of the family of `name` with random depth, width, vocabulary and tying."""
    draw = random.Random(seed)
    model = catalogue.resolve(name, "random")[0]
    heads = model.num_heads
    changes: dict[str, Any] = {
        "num_layers": draw.randint(1, 7),
        "intermediate_size": 8 * draw.randint(1, 40),
        "head_dim": 4 * draw.randint(1, 6),
    }
    changes["hidden_size"] = heads * changes["head_dim"]
    if model.reads_text and not model.has_tower:
        changes["vocab_size"] = draw.randint(40, 900)
    if model.has_head and not model.has_tower:
        changes["tied_head"] = draw.random() < 0.5
    return model.model_copy(update=changes)


@cache
def library_module(model: ModelSpec) -> Any:
    """The library's class of this model without numbers."""
    config = config_of_spec(model)
    keys = {key: value for key, value in config.items() if key != "model_type"}
    made = transformers.AutoConfig.for_model(config["model_type"], **keys)
    with torch.device("meta"):
        architecture = getattr(transformers, family(model.family).architecture)
        module = architecture(made, **({"add_pooling_layer": False} if model.family == "bert" else {}))
    module.tie_weights()
    return module


def of_package(model: ModelSpec, way: str, max_bytes: dict[int, int]) -> dict[str, str]:
    """Device by module as the package places them, blocks and leaves apart."""
    module = library_module(model)
    whole = [*module._no_split_modules]
    limits: Any = dict(max_bytes)
    if way != "sequential":
        limits = get_balanced_memory(module, dict(max_bytes), whole, low_zero=way == "balanced_low_0")
    placed = infer_auto_device_map(module, limits, whole, clean_result=False)
    homes = {}
    for atom in [atom.name for atom in module_tree(model).atoms]:
        (home,) = [home for name, home in placed.items() if f"{atom}.".startswith(f"{name}.")]
        homes[atom] = str(home)
    return homes


def of_ours(model: ModelSpec, way: str, max_bytes: dict[int, int]) -> dict[str, str]:
    tree = module_tree(model)
    limits: dict[str, float] = {str(number): size for number, size in max_bytes.items()}
    if way != "sequential":
        low_0 = way == "balanced_low_0"
        limits = balanced(limits, tree.bytes, tree.block_bytes, tree.mean_leaf_bytes, low_0)
    return infer_device_map(tree.modules, limits, tree.ties)


@pytest.mark.filterwarnings("ignore:Current model requires .* bytes of buffer for offloaded layers")
@pytest.mark.parametrize("name", NAMES)
def test_random_models_on_random_memories_are_placed_as_by_the_package(name: str) -> None:
    draw = random.Random(NAMES.index(name))
    for seed in range(3):
        model = drawn(name, seed)
        total = module_tree(model).bytes
        for _ in range(3):
            number = draw.randint(1, 5)
            max_bytes = {i: int(total * draw.uniform(0.05, 2.2) / number) for i in range(number)}
            for way in ("sequential", "auto", "balanced_low_0"):
                expected = of_package(model, way, max_bytes)
                assert of_ours(model, way, max_bytes) == expected, (model, way, max_bytes)


@pytest.mark.parametrize("name", NAMES)
def test_the_modules_have_the_sizes_of_the_library_s(name: str) -> None:
    from accelerate.utils.modeling import compute_module_sizes

    for seed in range(3):
        model = drawn(name, seed)
        sizes = compute_module_sizes(library_module(model))
        tree = module_tree(model)
        assert tree.bytes == sizes[""]
        assert [(a.name, a.bytes) for a in tree.atoms] == [(a.name, sizes[a.name]) for a in tree.atoms]
