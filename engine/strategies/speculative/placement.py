"""Who holds and computes what in speculative decoding, and whether there is memory for it."""

from __future__ import annotations

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec, draft_of, layer_kinds
from engine.domain.plan import ComputedSlice, HeldSlice, Placement, Slice, of_draft
from engine.ops.core import Block, Embed, Head
from engine.ops.draft import OfDraft
from engine.ops.tensors import Meta
from engine.ops.tokens import Greedy
from engine.strategies.shared.demand import Demand, SizedOp, check_memory, hidden
from engine.strategies.shared.ends import end_slices, layer_slices

REMEDY = "give it more memory, choose a smaller draft model, or a method that splits the weights (gpipe)"


def by_draft_model(
    name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand, rank: int, length: int, unseen: int
) -> Placement:
    """The draft model on the source, which gets up to `unseen` tokens at once, the whole model on device
    `rank`, which verifies `length` of them. Raises `PlanError` if memory is short.
    """
    draft, source = draft_of(model), cluster.source_rank
    pieces = _whole(model)
    placement = Placement(
        strategy=name,
        holdings=(
            *(HeldSlice(device=rank, slice=piece) for piece in pieces),
            *(HeldSlice(device=source, slice=of_draft(piece)) for piece in _whole(draft)),
        ),
        work=tuple(ComputedSlice(device=rank, slice=piece) for piece in pieces),
    )
    of_draft_ops = [
        one._replace(op=OfDraft(one.op))
        for one in (*_pass_ops(draft, demand, unseen), *_choice_ops(draft, 1))
    ]
    ops = [*_pass_ops(model, demand, length + 1), *_choice_ops(model, length + 1)]
    kv_bytes = {each: 0 for each in (rank, source)}
    kv_bytes[rank] += model.num_layers * demand.kv_bytes(model, model.num_kv_heads)
    kv_bytes[source] += draft.num_layers * demand.kv_bytes(draft, draft.num_kv_heads)
    by_rank = {rank: ops, source: of_draft_ops} if rank != source else {rank: [*ops, *of_draft_ops]}
    check_memory(cluster, model, placement, kv_bytes, by_rank, REMEDY)
    return placement


def by_first_layers(
    name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand, rank: int, length: int, first: int
) -> Placement:
    """The `first` layers on the source, the others on device `rank`, which verifies drafts of `length`
    tokens; both have the output matrix. Raises `PlanError` if memory is short.
    """
    source, head = cluster.source_rank, Slice(layer=-1, part="lm_head")
    ends = [(piece, rank if piece == head else source) for piece in end_slices(model)]
    layers = [(layer, source if layer < first else rank) for layer in range(model.num_layers)]
    work = [*ends, *((piece, device) for layer, device in layers for piece in layer_slices(layer))]
    held = work if rank == source else [*work, (head, source)]
    placement = Placement(
        strategy=name,
        holdings=tuple(HeldSlice(device=device, slice=piece) for piece, device in held),
        work=tuple(ComputedSlice(device=device, slice=piece) for piece, device in work),
    )
    verified = [*_pass_ops(model, demand, length + 1), *_choice_ops(model, length + 1)]
    drafted = [*_pass_ops(model, demand, 1), *_choice_ops(model, 1)]
    kv_bytes = {each: 0 for each in (rank, source)}
    for _, device in layers:
        kv_bytes[device] += demand.kv_bytes(model, model.num_kv_heads)
    by_rank = {rank: verified, source: drafted} if rank != source else {rank: [*verified, *drafted]}
    check_memory(cluster, model, placement, kv_bytes, by_rank, REMEDY)
    return placement


def _whole(model: ModelSpec) -> list[Slice]:
    layers = [piece for layer in range(model.num_layers) for piece in layer_slices(layer)]
    return [*end_slices(model), *layers]


def _pass_ops(model: ModelSpec, demand: Demand, rows: int) -> list[SizedOp]:
    """The operations of the largest passes: over the prompt, and over `rows` tokens at the end."""
    passes = [(0, demand.rows), (max(0, demand.cached_rows - rows), rows)]
    found = []
    for cached, new in passes:
        found.append(SizedOp(Embed(cached), (Meta((1, new), "int64"),)))
        found += [
            SizedOp(Block(kind.layer, "plan"), (hidden(model, 1, new),), cached)
            for kind in layer_kinds(model)
        ]
    return found


def _choice_ops(model: ModelSpec, rows: int) -> list[SizedOp]:
    """The operations that give `rows` tokens."""
    answers = Meta((rows, 1, model.hidden_size), model.dtype)
    logits = Meta((rows, model.vocab_size), model.dtype)
    return [SizedOp(Head(), (answers,)), SizedOp(Greedy(), (logits,))]
