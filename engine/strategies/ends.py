"""The two ends of every forward pass: the source embeds the tokens and turns the last hidden state into
what was asked for. In between are the layers, which is where strategies differ.
"""

from __future__ import annotations

from engine.cluster import ClusterSpec
from engine.ctx import Ctx
from engine.models.ops import Embed, FinalHidden, Head
from engine.models.spec import ModelSpec
from engine.plan import Holding, Slice, Work
from engine.strategies.contract import Step
from engine.tensors import Tensor, narrow, shape_of


def tag(step: Step, purpose: str, layer: int = -1) -> str:
    """Unique per request, token, purpose and layer; tags of a layer start with its number."""
    unique = f"{purpose}.r{step.requests[0]}.t{step.index}"
    return f"L{layer}.{unique}" if layer >= 0 else unique


async def embed(ctx: Ctx, step: Step, tokens: Tensor) -> Tensor:
    """Token ids [B, T] → hidden states [B, T, D]; at the source."""
    return await ctx.compute(Embed(step.start), tokens)


async def finish(ctx: Ctx, step: Step, hidden: Tensor) -> Tensor:
    """Logits [B, V] of the last row, or an encoder's hidden states [B, T, D]; at the source."""
    return await ctx.compute(Head() if step.cache else FinalHidden(), wanted_rows(step, hidden))


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
    return (embedding, head) if model.has_head or model.norm_position == "pre" else (embedding,)


def end_holdings(cluster: ClusterSpec, model: ModelSpec) -> tuple[Holding, ...]:
    return tuple(Holding(device=cluster.source_rank, slice=piece) for piece in end_slices(model))


def end_work(cluster: ClusterSpec, model: ModelSpec) -> tuple[Work, ...]:
    return tuple(Work(device=cluster.source_rank, slice=piece) for piece in end_slices(model))


def layer_slices(layer: int) -> tuple[Slice, Slice]:
    """Both parts of a whole layer."""
    return Slice(layer=layer, part="attention"), Slice(layer=layer, part="ffn")
