"""The table of operations in docs/reference/operations.md: one call of each, with its shapes and its cost.

The calls are of a small published model over a short prompt, so that a reader can check a line by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from engine.domain.model import ModelSpec, with_draft
from engine.domain.units import human
from engine.models import catalogue
from engine.ops import (
    core,
    draft,
    head_columns,
    heads,
    kv_cache,
    mixture,
    positions,
    quantised,
    recompute,
    summa,
    tiles,
)
from engine.ops.kernels import total_bytes, total_flops
from engine.ops.operation import Op
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import Meta
from engine.ops.tokens import Draw, Greedy
from engine.ops.vision import Classify, EmbedPrompt

TEXT, MIXTURE, PICTURES, DRAFTED = "smollm2-135m", "qwen1.5-moe-a2.7b", "vit-base", "smollm2-360m"
"""Of the catalogue: a decoder, one with experts, a classifier of pictures, one whose draft model the first
is.
"""

ROWS, CACHED = 16, 32
"""New rows of the one sequence, and rows that are in its KV cache."""


@cache
def model_of(name: str) -> ModelSpec:
    model = catalogue.resolve(name, "random")[0]
    return with_draft(model, model_of(TEXT)) if name == DRAFTED else model


class Call(NamedTuple):
    """An operation as a program may compute it, with the shapes of its inputs."""

    op: Op
    shapes: tuple[tuple[int, ...], ...]
    model: str = TEXT

    @property
    def spec(self) -> ModelSpec:
        return model_of(self.model)

    @property
    def cached(self) -> int:
        return CACHED if self.op.cache else 0

    @property
    def inputs(self) -> tuple[Meta, ...]:
        ids = self.op.name == "embed"
        return tuple(Meta(one, "int64" if ids and len(one) == 2 else self.spec.dtype) for one in self.shapes)


def calls() -> tuple[Call, ...]:
    """One call of every operation, in the order of what a step computes."""
    return (*_of_ends(), *_of_layers(), *_of_heads(), *_of_rows(), *_of_experts(), *_of_drafts())


def _of_ends() -> Iterator[Call]:
    of = model_of(TEXT)
    hidden, words = (1, ROWS, of.hidden_size), of.vocab_size
    yield Call(core.Embed(0), ((1, ROWS),))
    yield Call(recompute.EmbedAgain(CACHED, 8, "r0"), ((1, ROWS),))
    yield Call(core.Head(), (hidden,))
    yield Call(head_columns.HeadColumns(0, words // 2), (hidden,))
    yield Call(Greedy(), ((1, words),))
    yield Call(head_columns.Best(0), ((1, words // 2),))
    yield Call(head_columns.Choose(), ((1, 2), (1, 2)))
    yield Call(Draw((), True), ((1, words),))
    yield Call(head_columns.Candidates(0, 40, ()), ((1, words // 2),))
    yield Call(head_columns.DrawAmong(()), ((1, 40, 2), (1, 40, 2)))
    yield Call(core.FinalHidden(), (hidden,))
    picture = model_of(PICTURES)
    yield Call(Classify(), ((1, picture.image_rows, picture.hidden_size),), PICTURES)
    yield Call(EmbedPrompt(), ((1, ROWS), (1, 4, of.hidden_size)))


def _of_layers() -> Iterator[Call]:
    of = model_of(TEXT)
    hidden, columns = (1, ROWS, of.hidden_size), of.intermediate_size
    yield Call(core.Block(0, "r0"), (hidden,))
    yield Call(quantised.QuantisedBlock(0, 8, "r0"), (hidden,))
    yield Call(positions.PositionBlock(0, 0, ROWS // 2, ROWS // 2), (hidden,))
    yield Call(core.Attention(0, 0, of.num_heads, True, "r0"), (hidden,))
    yield Call(
        recompute.AttentionAgain(0, 0, of.num_heads, True, "r0", 8, 24), ((1, ROWS + 8, of.hidden_size),)
    )
    yield Call(core.FeedForward(0, 0, columns // 2, False), (hidden,))
    yield Call(core.Norm(0, "ffn"), (hidden,))
    yield Call(core.Residual(0, "ffn"), (hidden, hidden))
    yield Call(core.Add(), (hidden, hidden))
    yield Call(tiles.Expand(0, 0, columns // 2), (hidden,))
    yield Call(tiles.Contract(0, 0, columns // 2, False), ((1, ROWS, columns // 2),))
    half = of.hidden_size // 2
    yield Call(summa.SummaUp(0, 0, half, 0, columns // 2), ((1, ROWS, half),))
    yield Call(summa.SummaActivate(0, 0, columns // 2), ((1, ROWS, columns),))
    yield Call(summa.SummaDown(0, 0, columns // 2, 0, half, False), ((1, ROWS, columns // 2),))


def _of_heads() -> Iterator[Call]:
    of = model_of(TEXT)
    wide, every, stored = of.head_dim, tuple(range(of.num_heads)), tuple(range(of.num_kv_heads))
    queries = (1, of.num_heads, ROWS, wide)
    keys, weights = (1, of.num_kv_heads, ROWS, wide), (1, of.num_heads, ROWS, ROWS)
    both = (1, 2 * of.num_kv_heads, ROWS, wide)
    yield Call(heads.Project(0, 0, of.num_heads), ((1, ROWS, of.hidden_size),))
    yield Call(heads.Attend(0, every, stored, "r0"), (queries, both))
    yield Call(heads.Join(0, 0, of.num_heads, every, True), (queries,))
    yield Call(heads.Weigh(0, every, stored), (queries, keys))
    yield Call(heads.Mix(0, every, stored), (weights, keys))
    yield Call(heads.Statistics(0), (weights,))
    yield Call(heads.Importance(0, every, stored), (queries, keys))
    projected = (1, of.num_heads + 2 * of.num_kv_heads, ROWS, wide)
    yield Call(heads.Features(0, 8), (projected,))


def _of_rows() -> Iterator[Call]:
    of = model_of(TEXT)
    wide, stored = of.head_dim, tuple(range(of.num_kv_heads))
    yield Call(heads.Recall(0, stored[:1], stored, 1, "r0"), ())
    yield Call(heads.Regroup(0, stored[:1], stored[:2], "r0"), ((1, 2, CACHED, wide),))
    yield Call(kv_cache.TakeRows(0, 0, ROWS, 1, "r0"), ())
    yield Call(kv_cache.PutRows(0, "r0"), ((2, 1, of.num_kv_heads, ROWS, wide),))
    yield Call(kv_cache.DropRows(0, CACHED - ROWS, CACHED, 1, "r0"), ())


def _of_experts() -> Iterator[Call]:
    of = model_of(MIXTURE)
    hidden, experts = of.hidden_size, of.num_experts
    yield Call(mixture.Route(0), ((1, ROWS, hidden),), MIXTURE)
    yield Call(mixture.Experts(0, 0, experts // 2, 32, 20), ((1, ROWS, hidden + experts // 2),), MIXTURE)
    yield Call(mixture.SharedExpert(0), ((1, ROWS, hidden + experts),), MIXTURE)


def _of_drafts() -> Iterator[Call]:
    hidden = model_of(TEXT).hidden_size
    yield Call(draft.OfDraft(core.Block(0, "r0/draft")), ((1, ROWS, hidden),), DRAFTED)


def operations_table() -> str:
    heads = ("call", "takes", "gives", "weights", "FLOP", "moves", "KV cache")
    lines = [heads, ("---",) * len(heads), *(_row(call) for call in calls())]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(call: Call) -> tuple[str, ...]:
    op, of = call.op, call.spec
    cost = op.cost(of, call.inputs, call.cached)
    return (
        f"`{op!r}`" + ("" if call.model == TEXT else f" of {call.model}"),
        " and ".join(_shape(one) for one in call.inputs) or "nothing",
        _shape(cost.output),
        _amount(sum(weight_bytes(of, piece) for piece in op.slices(of)), "B"),
        _amount(total_flops(cost.kernels), ""),
        _amount(total_bytes(cost.kernels), "B"),
        _amount(cost.kv_bytes, "B"),
    )


def _shape(one: Meta) -> str:
    return f"`[{', '.join(map(str, one.shape))}]`"


def _amount(number: int, unit: str) -> str:
    return human(number, unit).strip() if number else "–"
