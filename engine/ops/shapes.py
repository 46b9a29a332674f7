"""The shapes that operations take: an operation on others ends in a sentence, as torch would end it.

The simulated world computes with shapes alone, so a program that gives an operation a wrong one would be
predicted as if it worked. Operations of packages have no rules here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.domain.errors import WrongProgram
from engine.domain.model import ModelSpec
from engine.ops.core import (
    Add,
    Attention,
    Block,
    Embed,
    FeedForward,
    FinalHidden,
    Head,
    Norm,
    Residual,
)
from engine.ops.head_columns import HeadColumns
from engine.ops.heads import Attend, Join, Mix, Project
from engine.ops.kv_cache import PutRows
from engine.ops.operation import Op
from engine.ops.positions import PositionBlock
from engine.ops.quantised import QuantisedBlock
from engine.ops.summa import SummaActivate, SummaDown, SummaUp
from engine.ops.tensors import Meta
from engine.ops.tiles import Contract, Expand
from engine.ops.tokens import Greedy

Dims = tuple[int | str, ...]
"""Sizes of a tensor; a letter stands for any size, the same wherever it is."""

HIDDEN = ("B", "T")


def _rows(op: Any, model: ModelSpec) -> tuple[Dims, ...]:
    return ((*HIDDEN, model.hidden_size),)


def _columns(op: Any, model: ModelSpec) -> tuple[Dims, ...]:
    return ((*HIDDEN, op.stop - op.start),)


SHAPES: dict[type, Callable[[Any, ModelSpec], tuple[Dims, ...]]] = {
    Embed: lambda op, model: (HIDDEN,),
    **dict.fromkeys(
        (Attention, FeedForward, Norm, Block, QuantisedBlock, PositionBlock, Project, Expand), _rows
    ),
    **dict.fromkeys((Head, HeadColumns, FinalHidden), _rows),
    **dict.fromkeys((Contract, SummaDown), _columns),
    Residual: lambda op, model: ((*HIDDEN, model.hidden_size),) * 2,
    Attend: lambda op, model: (
        ("B", len(op.heads), "T", model.head_dim),
        ("B", 2 * len(op.stored), "S", model.head_dim),
    ),
    Join: lambda op, model: (("B", len(op.heads), "T", model.head_dim),),
    Mix: lambda op, model: (
        ("B", len(op.heads), "T", "T"),
        ("B", len(op.stored), "T", model.head_dim),
    ),
    SummaUp: lambda op, model: ((*HIDDEN, op.last - op.first),),
    SummaActivate: lambda op, model: ((*HIDDEN, (1 + model.gated_ffn) * (op.stop - op.start)),),
    PutRows: lambda op, model: ((2, "B", model.num_kv_heads, "rows", model.head_dim),),
    Greedy: lambda op, model: (("B", model.vocab_size),),
}

RANGES: dict[type, Callable[[ModelSpec], int]] = {
    **dict.fromkeys((Attention, Project, Join), lambda model: model.num_heads),
    **dict.fromkeys((FeedForward, Expand, Contract), lambda model: model.intermediate_size),
    **dict.fromkeys((SummaUp, SummaActivate, SummaDown), lambda model: model.intermediate_size),
    HeadColumns: lambda model: model.vocab_size,
}
"""How much there is of what `start` and `stop` of an operation count."""

ONE_PART = (Expand, Contract, SummaUp, SummaActivate, SummaDown)
"""Operations within a feed-forward part that all rows go through."""


def check_shapes(op: Op, model: ModelSpec, inputs: Sequence[Meta], device: str) -> None:
    """Check that `op` can be computed on inputs of these shapes; raises `WrongProgram`."""
    kind = type(op)
    if model.num_experts and kind in ONE_PART:
        raise WrongProgram(
            f"{device}: {op.name} computes a piece of one feed-forward part, and {model.name} has "
            f"{model.num_experts} experts in each layer.",
            device,
        )
    where = f"{device}: {op.name}{f' of layer {op.layer}' if op.layer >= 0 else ''}"
    if op.layer >= model.num_layers:
        raise WrongProgram(f"{where}: {model.name} has the layers 0 to {model.num_layers - 1}.", device)
    if kind is Add:
        if len(inputs) != 2 or inputs[0].shape != inputs[1].shape:
            raise WrongProgram(f"{where} got {_texts(inputs)}, expected two equal shapes.", device)
        return
    if kind in RANGES:
        bounds: Any = op
        most = RANGES[kind](model)
        if not 0 <= bounds.start <= bounds.stop <= most:
            raise WrongProgram(
                f"{where} has the range {bounds.start}:{bounds.stop}, expected one in 0:{most}.", device
            )
    if kind in SHAPES:
        expected = SHAPES[kind](op, model)
        if not _fit(expected, inputs):
            raise WrongProgram(f"{where} got {_texts(inputs)}, expected {_texts(expected)}.", device)
        if kind in (Head, HeadColumns) and not inputs[0].shape[1]:
            raise WrongProgram(f"{where} got no rows, expected at least one.", device)


def _fit(expected: Sequence[Dims], inputs: Sequence[Meta]) -> bool:
    """Whether the inputs have the sizes, and one size for each letter."""
    if len(expected) != len(inputs):
        return False
    sizes: dict[str, int] = {}
    for dims, given in zip(expected, inputs, strict=True):
        if len(dims) != len(given.shape):
            return False
        for dim, size in zip(dims, given.shape, strict=True):
            if size != (sizes.setdefault(dim, size) if isinstance(dim, str) else dim):
                return False
    return True


def _texts(shapes: Sequence[Meta] | Sequence[Dims]) -> str:
    dims = [shape.shape if isinstance(shape, Meta) else shape for shape in shapes]
    return " and ".join(f"[{', '.join(map(str, one))}]" for one in dims) or "nothing"
