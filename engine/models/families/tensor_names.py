"""Finds the names under which files store the tensors of a model: older spellings and prefixes too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.model import ModelSpec
from engine.models.families.family import StoredTensor
from engine.models.families.registry import family


def unused_names(model: ModelSpec) -> tuple[str, ...]:
    """Beginnings of the names of stored tensors that change no result."""
    row, tower = family(model.family), model.vision.tower if model.vision else None
    behind = range(tower.used_layers, tower.num_layers) if tower else ()
    layers = (name.format(n) for name in row.unused for n in (behind if "{}" in name else (0,)))
    return tuple(dict.fromkeys(layers))


def stored_as(model: ModelSpec, name: str, in_module: bool = False) -> StoredTensor:
    """The place of the canonical tensor `name` in a file, or `in_module`, without the family's prefix."""
    row = family(model.family)
    tensors = {**row.tensors, **row.modules} if in_module else row.tensors
    parts = name.split(".")
    numbers = [part for part in parts if part.isdigit()]
    pattern = ".".join("{}" if part.isdigit() else part for part in parts)
    head, _, kind = pattern.rpartition(".")
    stored = tensors.get(pattern) or tensors[head]
    found = stored.name.format(*numbers)
    if stored.stacked:
        return stored._replace(name=found, expert=int(numbers[-1]))
    return stored._replace(name=found if pattern in tensors else f"{found}.{kind}")


class Rows(NamedTuple):
    """The rows of a stored tensor that are the outputs of a canonical one: from `first` on, every `step`th of
    `total` in all.
    """

    first: int
    step: int
    total: int


def rows_in_file(model: ModelSpec, name: str, stored: StoredTensor, rows: int) -> Rows:
    """Where the `rows` outputs of a canonical tensor are among those of its stored one."""
    if not stored.fused:
        return Rows(0, 1, rows)
    own = name.split(".")[-2]
    if stored.interleaved:
        return Rows(stored.fused.index(own), len(stored.fused), len(stored.fused) * rows)
    heads = {"q": model.num_heads, "k": model.num_kv_heads, "v": model.num_kv_heads}
    sizes = [heads[key] * model.head_dim if key in heads else rows for key in stored.fused]
    return Rows(sum(sizes[: stored.fused.index(own)]), 1, sum(sizes))


def stored_shape(model: ModelSpec, name: str, stored: StoredTensor, full_shape: Sequence[int]) -> list[int]:
    """The shape of the stored tensor that has a canonical one of `full_shape`, and others if fused or
    stacked.
    """
    shape = [rows_in_file(model, name, stored, full_shape[0]).total, *full_shape[1:]]
    shape = shape[::-1] if stored.transposed and len(shape) == 2 else shape
    return [model.num_experts, *shape] if stored.stacked else shape


PACKED_NUMBERS = 32
"""How many numbers of a row share a scale where weights are packed (`packed_shapes`)."""


def packed_shapes(
    model: ModelSpec, name: str, stored: StoredTensor, full_shape: Sequence[int]
) -> dict[str, list[int]]:
    """The shapes of the tensors in place of a stacked `stored` one whose matrices are in MXFP4, by the ends
    of their names: rows are outputs there, and two numbers of 4 bits are a byte. {} for what is never packed.
    """
    if not stored.stacked or len(full_shape) != 2:
        return {}
    rows = rows_in_file(model, name, stored, full_shape[0]).total
    scales = [model.num_experts, rows, -(-full_shape[1] // PACKED_NUMBERS)]
    return {"_blocks": [*scales, PACKED_NUMBERS // 2], "_scales": scales}


def candidates(model: ModelSpec, stored: StoredTensor) -> tuple[str, ...]:
    """Names under which files have `stored`: in today's and older spelling, with and without prefix."""
    row = family(model.family)
    names = dict.fromkeys((stored.name, *(_respelled(stored.name, pairs) for pairs in row.older)))
    prefixes = ("",) if stored.name.startswith("lm_head.") else row.prefixes
    return tuple(prefix + name for name in names for prefix in prefixes)


def _respelled(name: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for today, older in pairs:
        name = name.replace(today, older)
    return name
