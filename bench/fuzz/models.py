"""Draws a small model of a family, with odd sizes where the family allows them.

It starts from the family's small models in the catalogue and changes their sizes, so that a new family takes
part as soon as the catalogue has a small model of it.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.models import catalogue
from engine.models.families.hf_config import config_of_spec, spec_of_config
from engine.models.families.registry import family

MOST_PARAMETERS = 300_000
ATTEMPTS = 20
LEAST_WIDTH_BFLOAT16 = 8
"""The least width of hidden states and feed-forward parts: where a norm follows fewer numbers, its divisor
may be almost 0, and rounding errors have no typical size.
"""


@lru_cache(maxsize=1)
def small_models() -> tuple[ModelSpec, ...]:
    """The catalogue's models with random weights and few parameters, in its order."""
    return tuple(
        catalogue.resolve(row.name)[0]
        for row in catalogue.rows()
        if not row.trained and row.num_parameters <= MOST_PARAMETERS
    )


def draw_model(random: Random, base: ModelSpec) -> ModelSpec:
    """`base` with other sizes that its family's configuration can express; `base` itself if none is found."""
    halves = random.random() < 0.15 and not base.num_experts  # rounding would choose other experts
    dtype = "bfloat16" if halves else "float32"
    for _ in range(ATTEMPTS):
        drawn = base.model_copy(update={**_sizes(random, base), "dtype": dtype})
        width = min(drawn.hidden_size, drawn.intermediate_size)
        wide_enough = dtype == "float32" or width >= LEAST_WIDTH_BFLOAT16
        if wide_enough and is_expressible(drawn):
            return drawn
    return base


def is_expressible(model: ModelSpec) -> bool:
    """Whether the family's config.json describes exactly this model."""
    try:
        return spec_of_config(model.name, config_of_spec(model), "drawn model") == model
    except SpecError:
        return False


def _sizes(random: Random, base: ModelSpec) -> dict[str, Any]:
    keys = family(base.family).key_of
    kv_heads = random.choice((1, 1, 2, 3)) if "num_kv_heads" in keys else 1
    heads = kv_heads * random.choice((1, 2, 3, 4, 5)) if "num_kv_heads" in keys else random.randint(1, 8)
    head_dim = random.choice((2, 4, 6, 8, 10)) if base.positions == "rope" else random.choice((1, 3, 5, 8))
    free_width = "head_dim" in keys and random.random() < 0.5
    found: dict[str, Any] = {
        "name": f"drawn-{base.family}",
        "source": "",
        "num_layers": random.choice((1, 2, 3, 5)),
        "num_heads": heads,
        "num_kv_heads": kv_heads if "num_kv_heads" in keys else heads,
        "head_dim": head_dim,
        "hidden_size": heads * (random.choice((3, 5, 7)) if free_width else head_dim),
        "intermediate_size": random.choice((1, 13, 40, 77)),
    }
    if base.reads_text and base.vision is None:
        found["vocab_size"] = random.choice((31, 101, 160))
    for field in ("tied_head", "attention_bias", "ffn_bias"):
        if field in keys and random.random() < 0.4:
            found[field] = random.random() < 0.5
    return found | _layers(random, base, found["num_layers"], found["hidden_size"])


def _layers(random: Random, base: ModelSpec, num_layers: int, hidden_size: int) -> dict[str, Any]:
    """Draw windows, layers without positions, caps, scales and experts anew where `base` has them."""
    found: dict[str, Any] = {}
    if base.sliding_window:
        everywhere = len(base.sliding_window.layers) == base.num_layers
        layers = [layer for layer in range(num_layers) if everywhere or random.random() < 0.6]
        sized = {"size": random.choice((2, 3, 5, 9)), "layers": tuple(layers)}
        found["sliding_window"] = base.sliding_window.model_copy(update=sized) if layers else None
    if base.layers_without_rope:
        found["layers_without_rope"] = tuple(n for n in range(num_layers) if random.random() < 0.4)
    if base.partial_rotary_factor < 1:
        found["partial_rotary_factor"] = random.choice((0.4, 0.5, 0.75, 1.0))
    if base.query_pre_attn_scalar:
        found["query_pre_attn_scalar"] = random.choice((1, 7, 40))
    if base.embedding_scale:
        found["embedding_scale"] = hidden_size**0.5
    if base.num_experts:
        found["num_experts"] = random.choice((2, 3, 8, 17, 64))
        found["experts_per_token"] = random.randint(1, min(8, found["num_experts"]))
        if "norm_topk_prob" in family(base.family).key_of:
            found["norm_topk_prob"] = random.random() < 0.5
    if base.swiglu_limit:
        found |= {"swiglu_limit": random.choice((0.3, 2.0)), "swiglu_alpha": random.choice((0.5, 1.702))}
    if base.shared_intermediate_size:
        found["shared_intermediate_size"] = random.choice((1, 24, 77))
    for field in ("score_softcap", "logit_softcap"):
        if getattr(base, field):
            found[field] = random.choice((None, 0.3, 2.0))
    return found
