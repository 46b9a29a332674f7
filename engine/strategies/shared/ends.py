"""What the source computes in every strategy: the embedding before the layers and the output after them.

The source embeds the prompt (also a picture, if the model has a vision tower) and computes logits, class
scores or hidden states from the last layer's output. Strategies differ only in the layers in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import accumulate

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Slice
from engine.domain.sampling import is_filtered
from engine.ops.core import Embed, FinalHidden, Head
from engine.ops.operation import Op
from engine.ops.ragged import CacheName
from engine.ops.tensors import Tensor, narrow, reshape, shape_of, take
from engine.ops.tokens import Draw, Greedy
from engine.ops.vision import Classify, EmbedPrompt, ImagePrompt, image_ops
from engine.program.ctx import Ctx
from engine.program.strategy import Step


def tag(step: Step, purpose: str, layer: int = -1) -> str:
    """A message tag that is unique per request, token, purpose and layer. Tags of a layer start with `L` and
    its number.
    """
    unique = f"{purpose}.r{step.requests[0]}.t{step.index}"
    return f"L{layer}.{unique}" if layer >= 0 else unique


async def embed(ctx: Ctx, step: Step, prompt: Tensor) -> Tensor:
    """Embed `prompt`, token ids [B, T] and the picture of an `ImagePrompt`, into hidden rows [B, T, D]. Only
    the source calls this.
    """
    if not isinstance(prompt, ImagePrompt):
        return await ctx.compute(Embed(step.start, step.ragged), prompt)
    x = prompt.pixels
    for op in image_ops(ctx.model):
        x = await ctx.compute(op, x)
    return x if prompt.tokens is None else await ctx.compute(EmbedPrompt(), prompt.tokens, x)


async def finish(ctx: Ctx, step: Step, hidden: Tensor) -> Tensor:
    """What the source gives back, from the `hidden` rows that `wanted_rows` gives: `result_of` them, or ids
    [B] where tokens are drawn at random. Only the source calls this.
    """
    return await draw_tokens(ctx, step, await result_of(ctx, step, hidden))


async def result_of(ctx: Ctx, step: Step, hidden: Tensor) -> Tensor:
    """Logits [B, V] of the last row, class scores [B, C] of a classifier, or hidden states [B, T, D] of an
    encoder. The device that has the head calls this.
    """
    rows = wanted_rows(step, hidden)
    if not step.answered:  # parts of prompts only
        return rows
    return await ctx.compute(result_op(ctx.model, step.generates), rows)


async def draw_tokens(ctx: Ctx, step: Step, result: Tensor) -> Tensor:
    """`result` as it is, or of a step whose tokens are drawn at random ids [B]."""
    if not step.draws:
        return result
    keep_logits(ctx, step, 0, result)
    return await ctx.compute(choice_op(step), result)


def choice_op(step: Step) -> Op:
    """The operation that chooses tokens from logits [B, V]."""
    return Draw(step.draws, is_filtered(step.draws)) if step.draws else Greedy()


def keep_logits(ctx: Ctx, step: Step, start: int, logits: Tensor) -> None:
    """Keep logits [B, n] of the tokens from `start` on, of every request that gets one in `step`."""
    if not step.sequences:
        ctx.keep_logits(step.requests, step.index, start, logits)
    for row, (request, index) in enumerate(step.answered if step.sequences else ()):
        ctx.keep_logits([request], index, start, narrow(logits, 0, row, row + 1))


def result_op(model: ModelSpec, generates: bool) -> Op:
    """The operation that turns the last layer's rows into the result."""
    if generates:
        return Head()
    return Classify() if model.num_classes else FinalHidden()


def wanted_rows(step: Step, hidden: Tensor) -> Tensor:
    """The rows of the last layer, `hidden` [B, T, D], that the source needs: the last one [B, 1, D] when
    generating, else all. Of a ragged step [k, 1, D], the last rows of the sequences that get a token.
    """
    rows = shape_of(hidden)[1]
    if not step.sequences:
        return narrow(hidden, 1, rows - 1, rows) if step.generates else hidden
    if rows != step.rows:  # another device has taken them
        return hidden
    ends = accumulate(one.rows for one in step.sequences)
    last = [end - 1 for end, one in zip(ends, step.sequences, strict=True) if one.answers]
    return reshape(take(hidden, 1, last), (len(last), 1, shape_of(hidden)[2]))


def cache_of(step: Step) -> str | None:
    """Name of the KV cache for the operations of this step; None without one."""
    return step.cache or None


def caches_of(step: Step) -> CacheName | None:
    """`cache_of` a step that may be ragged: then the KV caches of all its sequences."""
    return step.ragged or cache_of(step)


def end_slices(model: ModelSpec) -> tuple[Slice, ...]:
    """Slices of embedding, vision tower and head. An encoder without a head may still have a final norm,
    which is part of the head's slice.
    """
    embedding, head = Slice(layer=-1, part="embed"), Slice(layer=-1, part="lm_head")
    tower = (Slice(layer=-1, part="vision"),) if model.has_tower else ()
    has_end = model.has_head or model.norms_end
    return (*tower, embedding, head) if has_end else (*tower, embedding)


def end_holdings(cluster: ClusterSpec, model: ModelSpec) -> tuple[HeldSlice, ...]:
    """What the source holds besides layers."""
    return tuple(HeldSlice(device=cluster.source_rank, slice=piece) for piece in end_slices(model))


def end_work(cluster: ClusterSpec, model: ModelSpec) -> tuple[ComputedSlice, ...]:
    """The source's work. The vision tower runs only in the prefill."""
    return tuple(
        ComputedSlice(
            device=cluster.source_rank, slice=piece, phase="prefill" if piece.part == "vision" else "both"
        )
        for piece in end_slices(model)
    )


def layer_slices(layer: int) -> tuple[Slice, Slice]:
    """The slices of both parts of a whole layer."""
    return Slice(layer=layer, part="attention"), Slice(layer=layer, part="ffn")


async def pass_on_device(
    ctx: Ctx, step: Step, tokens: Tensor | None, rank: int, run: Callable[[Tensor], Awaitable[Tensor]]
) -> Tensor | None:
    """A forward pass whose layers all run on device `rank`, by `run` of hidden rows [B, T, D]; the source has
    the ends of the model and gets the result.
    """
    source = ctx.cluster.source_rank
    x = await embed(ctx, step, tokens) if ctx.rank == source else None
    if rank == source and ctx.rank == rank:
        return await finish(ctx, step, await run(x))
    if ctx.rank == source:
        ctx.send(x, rank, tag(step, "input"))
        return await finish(ctx, step, await ctx.recv(rank, tag(step, "output")))
    if ctx.rank == rank:
        x = await run(await ctx.recv(source, tag(step, "input")))
        ctx.send(wanted_rows(step, x), source, tag(step, "output"))
    return None
