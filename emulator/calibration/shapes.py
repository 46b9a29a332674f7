"""What a calibration times: its extent, and the made-up models whose passes it times.

The models have every way of computing a layer, from small to large. None of them is in the catalogue, so that
the catalogue's models test what calibration says of other shapes. Only as many layers of a model are drawn as
it takes to leave the caches (`operations.py`).
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from engine.domain.model import ModelSpec
from engine.domain.spec import WeightsRef
from engine.models.families.hf_config import spec_of_config

if TYPE_CHECKING:  # torch takes a while to import
    from engine.models.weights.store import WeightStore

HEAD_DIM = 64
PACKED_BITS: tuple[Literal[8, 4], ...] = (8, 4)
POSITIONS = 1024
SMALL_VOCABULARY, LARGE_VOCABULARY = 4000, 32000
SMALL_SIDE = 500
"""Hidden sizes up to this get the small vocabulary, as small models have."""

MANY_ROWS = 100
"""From so many rows on, a product computes far longer than it reads weights."""


class Extent(NamedTuple):
    """How much is measured.

    models: family, hidden size and number of layers of each. sequences, rows: of their passes (`SEQUENCES` of
    `operations.py`). packed_models, packed_rows: of passes with weights in 8 and in 4 bits, in the first
    sequence and the first round alone. working_set_bytes: of weights in turn, far more than the caches hold;
    prompt_set_bytes: the same for passes of many rows. turns, warm_up_turns: the least number over all
    layers, and how many of them do not count. sequence_s: time for one sequence, at least those turns.
    kernel_rows, kernel_sides: of the grid of products. rounds: at most; they end when medians agree.
    kernel_rounds: in so many of them, the first, kernels are timed by themselves, too.
    slowdown_s: for one number of processes. prompt_rows: of the runs over links. quiet_s: about how long all
    of it takes on a quiet machine.
    """

    name: str
    models: tuple[tuple[str, int, int], ...]
    sequences: tuple[str, ...]
    rows: tuple[int, ...]
    packed_models: tuple[tuple[str, int, int], ...]
    packed_rows: tuple[int, ...]
    working_set_bytes: int
    prompt_set_bytes: int
    turns: int
    warm_up_turns: int
    sequence_s: float
    kernel_rows: tuple[int, ...]
    kernel_sides: tuple[int, ...]
    rounds: int
    kernel_rounds: int
    slowdown_s: float
    prompt_rows: tuple[int, ...]
    quiet_s: float

    def set_bytes(self, rows: int) -> int:
        """Bytes of the weights in turn in passes of so many rows."""
        return self.prompt_set_bytes if rows >= MANY_ROWS else self.working_set_bytes


# What the short form leaves out hardly moved the predicted times of operations of other models: whole layers
# beside their parts 0.8 % (median), position shards 0.6 %, Phi-3 0.9 %, kernels of more than 128 rows 0.1 %,
# the other models 1.9 %. Beside ten other processes, operations of models that were not measured were off by
# 5.7 to 6.1 % (median) with two rounds of passes, whichever of three rounds of kernels was taken, by 5.8 %
# with all three, and by 6.3 to 7.3 % with a third round of passes. Of 35 requests of `bench reality` the
# predicted time changed by a median of 0.0 % (1.2 % at most) without kernels of 4, 16 and 64 rows, by 0.3 %
# (3.4 %) without an encoder, 0.2 % (0.9 %) without passes of 300 rows; by 0.6 % (4.6 %) without the smallest
# model, 1.4 % (4.9 %) without halves, 3.6 % (16 %) without the widest model, 4.5 % (13 %) without passes of
# 128 rows, and beside other work by 7 to 8 % (12 %) without one of the two rounds.
SHORT = Extent(
    name="short",
    models=(("gpt2", 128, 12), ("gpt2", 640, 12), ("llama", 448, 8), ("llama", 1024, 8)),
    sequences=("parts", "halves"),
    rows=(1, 8, 34, 128, 256),
    packed_models=(("gpt2", 640, 4), ("llama", 1024, 3)),
    packed_rows=(1, 128),
    working_set_bytes=120 << 20,
    prompt_set_bytes=32 << 20,
    turns=1,
    warm_up_turns=1,
    sequence_s=0.03,
    kernel_rows=(1, 2, 8, 32, 128),
    kernel_sides=(32, 128, 384, 1024, 3072),
    rounds=2,
    kernel_rounds=1,
    slowdown_s=0.3,
    prompt_rows=(4, 128),
    quiet_s=63.0,
)
THOROUGH = Extent(
    name="thorough",
    models=(
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
    sequences=("blocks", "parts", "halves", "shards"),
    rows=(1, 8, 34, 128, 384),
    packed_models=(("gpt2", 640, 12), ("llama", 448, 8), ("llama", 1024, 8)),
    packed_rows=(1, 8, 34, 128, 384),
    working_set_bytes=240 << 20,
    prompt_set_bytes=240 << 20,
    turns=2,
    warm_up_turns=2,
    sequence_s=0.15,
    kernel_rows=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    kernel_sides=(32, 128, 384, 1024, 3072),
    rounds=3,
    kernel_rounds=3,
    slowdown_s=0.8,
    prompt_rows=(4, 32, 128, 512),
    quiet_s=500.0,
)
EXTENTS = {extent.name: extent for extent in (SHORT, THOROUGH)}


def stores(extent: Extent, directory: Path) -> list[WeightStore]:
    """A weight store of each model, whose tensors are mapped from files in `directory`, as in runs."""
    return [_store(_model(*shape), directory) for shape in extent.models]


def packed_stores(extent: Extent, directory: Path) -> list[WeightStore]:
    """A weight store of each model with weights in 8 and in 4 bits, quantised from those files as it loads
    them.
    """
    models = [_model(*shape) for shape in extent.packed_models]
    return [
        _store(model.model_copy(update={"weight_bits": float(bits)}), directory)
        for model, bits in product(models, PACKED_BITS)
    ]


def _model(family: str, hidden: int, layers: int) -> ModelSpec:
    name = f"{family}-{hidden}"
    return spec_of_config(name, config(family, hidden, layers), name)


def _store(model: ModelSpec, directory: Path) -> WeightStore:
    from engine.models.weights.store import WeightStore

    return WeightStore(model, WeightsRef(kind="random"), 0, drawn_in(directory, model))


def drawn_in(directory: Path, model: ModelSpec) -> Path:
    """The folder of `directory` for the weights of `model`, which are drawn once for all who use them."""
    shared = directory / model.name
    shared.mkdir(exist_ok=True)
    return shared


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
