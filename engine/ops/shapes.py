"""The shapes that operations take: an operation on others ends in a sentence, as torch would end it.

The simulated world computes with shapes alone, so a program that gives an operation a wrong one would be
predicted as if it worked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.domain.errors import WrongProgram
from engine.domain.model import ModelSpec, draft_of
from engine.ops.draft import OfDraft
from engine.ops.operation import ALIKE, Op, Operation
from engine.ops.tensors import Meta

Dims = tuple[int | str, ...]
"""Sizes of a tensor; a word stands for any size, the same wherever it is."""


def check_shapes(op: Op, model: ModelSpec, inputs: Sequence[Meta], device: str) -> None:
    """Check that `op` can be computed on inputs of these shapes; raises `WrongProgram`."""
    if isinstance(op, OfDraft):
        check_shapes(op.op, draft_of(model), inputs, f"{device}, draft model")
        return
    where = f"{device}: {op.name}{f' of layer {op.layer}' if op.layer >= 0 else ''}"
    if op.layer >= model.num_layers:
        raise WrongProgram(f"{where}: {model.name} has the layers 0 to {model.num_layers - 1}.", device)
    if not isinstance(op, Operation):
        return
    if model.num_experts and op.is_of_one_part:
        raise WrongProgram(
            f"{where} computes a piece of one feed-forward part, and {model.name} has {model.num_experts} "
            "experts in each layer.",
            device,
        )
    if model.attention_sinks and op.sums_to_one:
        raise WrongProgram(
            f"{where} takes attention weights that sum to 1, and {model.name} has sinks beside its scores.",
            device,
        )
    if op.counts:
        bounds: Any = op
        most = getattr(model, op.counts)
        if not 0 <= bounds.start <= bounds.stop <= most:
            raise WrongProgram(
                f"{where} has the range {bounds.start}:{bounds.stop}, expected one in 0:{most}.", device
            )
    if op.takes == ALIKE:
        if len(inputs) != 2 or inputs[0].shape != inputs[1].shape:
            raise WrongProgram(f"{where} got {_texts(inputs)}, expected {ALIKE}.", device)
    elif op.takes:
        expected = _expected(op, model)
        if not _fit(expected, inputs):
            raise WrongProgram(f"{where} got {_texts(inputs)}, expected {_texts(expected)}.", device)
    if op.needs_rows and not inputs[0].shape[1]:
        raise WrongProgram(f"{where} got no rows, expected at least one.", device)


def _expected(op: Operation, model: ModelSpec) -> list[Dims]:
    """`op.takes` with the sizes of this model and operation."""
    known = {
        **{"D": model.hidden_size, "E": model.head_dim, "K": model.num_kv_heads, "V": model.vocab_size},
        **op.sizes(model),
    }
    return [
        tuple(known.get(word, int(word) if word.isdigit() else word) for word in shape.split())
        for shape in op.takes.split(",")
    ]


def _fit(expected: Sequence[Dims], inputs: Sequence[Meta]) -> bool:
    """Whether the inputs have the sizes, and one size for each word."""
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
