"""The two ends of every forward pass: the source embeds the prompt, a picture too where the model sees, and
turns the last hidden state into what was asked for. In between are the layers, where strategies differ.
"""

from __future__ import annotations

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Holding, Slice, Work
from engine.ops.core import Embed, FinalHidden, Head
from engine.ops.operation import Op
from engine.ops.tensors import Tensor, narrow, shape_of
from engine.ops.vision import Classify, EmbedPrompt, ImagePrompt, image_ops
from engine.program.ctx import Ctx
from engine.program.strategy import Step


def tag(step: Step, purpose: str, layer: int = -1) -> str:
    """Unique per request, token, purpose and layer; tags of a layer start with its number."""
    unique = f"{purpose}.r{step.requests[0]}.t{step.index}"
    return f"L{layer}.{unique}" if layer >= 0 else unique


async def embed(ctx: Ctx, step: Step, prompt: Tensor) -> Tensor:
    """Token ids [B, T], with pictures in the prompt of a model that sees, → hidden rows [B, T, D]; at the
    source.
    """
    if not isinstance(prompt, ImagePrompt):
        return await ctx.compute(Embed(step.start), prompt)
    x = prompt.pixels
    for op in image_ops(ctx.model):
        x = await ctx.compute(op, x)
    return x if prompt.tokens is None else await ctx.compute(EmbedPrompt(), prompt.tokens, x)


async def finish(ctx: Ctx, step: Step, hidden: Tensor) -> Tensor:
    """Logits [B, V] of the last row, a classifier's [B, C], or an encoder's hidden states [B, T, D]; at the
    source.
    """
    return await ctx.compute(result_op(ctx.model, bool(step.cache)), wanted_rows(step, hidden))


def result_op(model: ModelSpec, generates: bool) -> Op:
    """From the last layer's rows to what was asked for."""
    if generates:
        return Head()
    return Classify() if model.num_classes else FinalHidden()


def wanted_rows(step: Step, hidden: Tensor) -> Tensor:
    """The rows that the source needs of the last layer: the last one's when generating, else all."""
    rows = shape_of(hidden)[1]
    return narrow(hidden, 1, rows - 1, rows) if step.cache else hidden


def cache_of(step: Step) -> str | None:
    """The KV cache that an operation of this step names: none for an encoder."""
    return step.cache or None


def end_slices(model: ModelSpec) -> tuple[Slice, ...]:
    """Weights of the two ends; encoders without a head may still have a final norm."""
    embedding, head = Slice(layer=-1, part="embed"), Slice(layer=-1, part="lm_head")
    tower = (Slice(layer=-1, part="vision"),) if model.has_tower else ()
    has_end = model.has_head or model.norm_position == "pre"
    return (*tower, embedding, head) if has_end else (*tower, embedding)


def end_holdings(cluster: ClusterSpec, model: ModelSpec) -> tuple[Holding, ...]:
    return tuple(Holding(device=cluster.source_rank, slice=piece) for piece in end_slices(model))


def end_work(cluster: ClusterSpec, model: ModelSpec) -> tuple[Work, ...]:
    """Pictures are seen once, with the prompt."""
    return tuple(
        Work(device=cluster.source_rank, slice=piece, phase="prefill" if piece.part == "vision" else "both")
        for piece in end_slices(model)
    )


def layer_slices(layer: int) -> tuple[Slice, Slice]:
    """Both parts of a whole layer."""
    return Slice(layer=layer, part="attention"), Slice(layer=layer, part="ffn")
