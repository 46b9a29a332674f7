"""The made-up models whose passes calibration times: every way of computing a layer, from small to large.

None of them is in the catalogue, so that the catalogue's models test what calibration says of other shapes.
Only as many layers of a model are drawn as it takes to leave the caches (`operations.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.domain.spec import WeightsRef
from engine.models.families.hf_config import spec_of_config

if TYPE_CHECKING:  # torch takes a while to import
    from engine.models.weights.store import WeightStore

HEAD_DIM = 64
POSITIONS = 1024
SMALL_VOCABULARY, LARGE_VOCABULARY = 4000, 32000
SMALL_SIDE = 300
"""Hidden sizes up to this get the small vocabulary, as small models have."""


class Shapes(NamedTuple):
    """Hidden sizes and numbers of layers by family, and the numbers of rows of the passes."""

    models: tuple[tuple[str, int, int], ...]
    rows: tuple[int, ...]


FULL = Shapes(
    (
        ("gpt2", 128, 12),
        ("gpt2", 320, 12),
        ("gpt2", 640, 12),
        ("gpt2", 1024, 12),
        ("llama", 192, 8),
        ("llama", 448, 8),
        ("llama", 640, 8),
        ("llama", 1024, 8),
        ("phi3", 384, 8),
        ("phi3", 768, 8),
        ("bert", 320, 6),
        ("bert", 896, 6),
    ),
    (1, 8, 34, 128, 384),
)
QUICK = Shapes(
    (("gpt2", 128, 12), ("llama", 448, 8), ("bert", 640, 6), ("gpt2", 1024, 12)), (1, 34, 128, 300)
)


def stores(shapes: Shapes, directory: Path) -> list[WeightStore]:
    """A weight store of each model, whose tensors are mapped from files in `directory`, as in runs."""
    from engine.models.weights.store import WeightStore

    found = []
    for family, hidden, layers in shapes.models:
        name = f"{family}-{hidden}"
        model = spec_of_config(name, config(family, hidden, layers), name)
        (directory / name).mkdir()
        found.append(WeightStore(model, WeightsRef(kind="random"), 0, directory / name))
    return found


def config(family: str, hidden: int, layers: int) -> dict[str, Any]:
    """A Hugging Face config.json: customary feed-forward sizes, half as many KV heads in Llamas and Phis."""
    heads = max(2, hidden // HEAD_DIM)
    vocabulary = SMALL_VOCABULARY if hidden <= SMALL_SIDE else LARGE_VOCABULARY
    if family == "gpt2":
        return {
            "model_type": "gpt2",
            "n_embd": hidden,
            "n_layer": layers,
            "n_head": heads,
            "n_positions": POSITIONS,
            "vocab_size": vocabulary,
        }
    common = {
        "model_type": family,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": POSITIONS,
        "vocab_size": vocabulary,
    }
    if family in ("llama", "phi3"):
        gated = hidden * 8 // 3 // 32 * 32
        gated_config = common | {
            "num_key_value_heads": heads // 2 if heads % 2 == 0 else heads,
            "intermediate_size": gated,
        }
        own = (
            {"original_max_position_embeddings": POSITIONS, "pad_token_id": None} if family == "phi3" else {}
        )
        return gated_config | own
    return common | {"intermediate_size": 4 * hidden}
