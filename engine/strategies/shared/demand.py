"""Sizes of a workload (batch, rows, tokens) and the check that every device has enough memory. Pure.

`Demand` has the sizes. A `SizedOp` is an operation with the sizes of its inputs; the check takes the largest
working set of a device's operations, its weights and its KV caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError, SpecError
from engine.domain.model import ModelSpec, layer_kinds
from engine.domain.plan import Placement
from engine.domain.units import needs_and_has
from engine.domain.workload import Workload
from engine.ops.core import Attention, Block, Embed, FeedForward, Residual
from engine.ops.ledger import Ledger
from engine.ops.operation import Op
from engine.ops.recompute import AttentionAgain
from engine.ops.sizes import kv_bytes_per_row
from engine.ops.tensors import Meta, payload_bytes
from engine.ops.vision import EmbedPrompt, image_ops, pixels_meta
from engine.strategies.shared.ends import result_op

WHOLE_LAYERS = 2
"""Layers whose KV caches are complete in memory at the same time (`kv_disk.py`)."""


class Demand(NamedTuple):
    """Sizes of a run: `batch` sequences of `rows` prompt tokens in one forward pass, `sequences` in
    progress at once. Each sequence ends with `cached_rows` rows in its KV cache (the last token is not fed
    back). The oldest `evicted_rows` of them are not kept but recomputed in every step. The oldest
    `offloaded_rows` are on disk, except those of the layer that runs and of the next one. A prompt passes in
    parts of `chunk_rows` tokens; 0: at once. `draws`: tokens may be drawn at random.

    Where nobody knows how long answers become, `new_tokens` and `cached_rows` are what is assumed, and
    `true_new_tokens` what the run generates: only what adapts while it runs may look at that.
    """

    batch: int
    sequences: int
    rows: int
    new_tokens: int
    cached_rows: int
    evicted_rows: int = 0
    offloaded_rows: int = 0
    chunk_rows: int = 0
    true_new_tokens: int | None = None
    draws: bool = False

    @property
    def true(self) -> Demand:
        """The sizes with the answer as long as it becomes; the same where plans know that."""
        if self.true_new_tokens is None:
            return self
        rows = self.rows + self.true_new_tokens - 1
        return self._replace(new_tokens=self.true_new_tokens, cached_rows=rows, true_new_tokens=None)

    @property
    def longest(self) -> Demand:
        """The sizes with the answer as long as it becomes or is assumed to become."""
        return max(self, self.true, key=lambda demand: demand.cached_rows)

    @property
    def prompt_pass(self) -> tuple[int, int]:
        """New and cached rows of the largest pass over the prompt, which is the last one."""
        new = min(self.rows, self.chunk_rows or self.rows)
        return new, self.rows - new

    @property
    def num_batches(self) -> int:
        """The number of batches that the sequences are divided into."""
        return -(-self.sequences // self.batch)

    @property
    def generates(self) -> bool:
        """Whether there are decode steps."""
        return self.new_tokens > 0

    @property
    def kept_rows(self) -> int:
        """Rows in a sequence's KV cache at the end of the run."""
        return self.cached_rows - self.evicted_rows

    @property
    def memory_rows(self) -> int:
        """Rows of the KV cache that stay in memory while other layers run."""
        return self.kept_rows - self.offloaded_rows

    def kv_bytes(self, model: ModelSpec, num_kv_heads: int) -> int:
        """Bytes of one layer's KV caches of all sequences at the end of the run, while other layers run."""
        return self.sequences * self.memory_rows * kv_bytes_per_row(model, num_kv_heads)

    def fetched_bytes(self, model: ModelSpec, num_kv_heads: int) -> int:
        """Bytes of offloaded rows in memory at one time: of the layer that runs and of the next one."""
        return WHOLE_LAYERS * self.batch * self.offloaded_rows * kv_bytes_per_row(model, num_kv_heads)


class SizedOp(NamedTuple):
    """An operation with the sizes of its inputs, to plan memory and time by. `fetched_bytes` of KV rows from
    disk are in memory beside it.
    """

    op: Op
    inputs: tuple[Meta, ...]
    cached: int = 0
    fetched_bytes: int = 0


def in_all_layers(model: ModelSpec, one: SizedOp) -> tuple[tuple[SizedOp, float], ...]:
    """`one` in a layer of every kind that `model` has, with the share of layers of this kind."""
    kinds = layer_kinds(model)
    if one.op.layer < 0 or len(kinds) == 1:
        return ((one, 1.0),)
    return tuple((_on_layer(one, kind.layer), kind.share) for kind in kinds)


def _on_layer(one: SizedOp, layer: int) -> SizedOp:
    if one.op.layer == layer:
        return one
    return one._replace(op=replace(one.op, layer=layer))  # type: ignore[type-var]


def demand_of(model: ModelSpec, workload: Workload, batches_bursts: bool) -> Demand:
    """What a strategy plans for: the sizes of `workload` as `model` computes it, all requests of a burst as
    one batch if the method `batches_bursts`, the answer as long as the workload assumes; without KV caches
    the pass of the last token. Raises `SpecError` if it has no token count yet or asks for what `model`
    cannot do.
    """
    if workload.prompt_tokens is None:
        raise SpecError("workload.prompt_tokens: a plan needs the number of tokens, so tokenise first.")
    if workload.prompt_tokens <= model.image_rows - (not model.reads_text):
        raise SpecError(
            f"workload.prompt_tokens: {workload.prompt_tokens} rows, and a picture alone has "
            f"{model.image_rows} in {model.name}: count them too."
        )
    if workload.new_tokens and not (model.causal and model.has_head):
        raise SpecError(
            f"workload.new_tokens is {workload.new_tokens}: {model.name} is an encoder and generates none; "
            "set it to 0."
        )
    cached_rows = workload.prompt_tokens + workload.new_tokens - 1 if workload.new_tokens else 0
    longest = max(workload.prompt_tokens, cached_rows)
    if longest > model.max_positions:
        raise SpecError(
            f"workload: {workload.prompt_tokens} prompt tokens and {workload.new_tokens} new ones need "
            f"{longest} positions, {model.name} has {model.max_positions}: shorten the prompt or the answer."
        )
    known = Demand(
        batch=workload.together if batches_bursts else 1,
        sequences=workload.together,
        rows=workload.prompt_tokens,
        new_tokens=workload.new_tokens,
        cached_rows=cached_rows,
        draws=workload.temperature > 0 or workload.is_open or any(row.sampling for row in workload.trace),
    )
    known = _assuming(known, min(workload.assumed_tokens, model.max_positions))
    return _uncached(known) if known.generates and not workload.kv_cache else known


def _assuming(known: Demand, length: int) -> Demand:
    """`known` for sequences of `length` tokens in place of its own, and of one more than the prompt at least;
    0: its own.
    """
    rows = max(length, known.rows + 1)
    if not length or not known.generates or rows == known.cached_rows:
        return known
    return known._replace(
        new_tokens=rows - known.rows + 1, cached_rows=rows, true_new_tokens=known.new_tokens
    )


def _uncached(known: Demand) -> Demand:
    """`known` for a run whose every token is a pass over all rows so far: as large as the last one, and
    nothing is kept.
    """
    rows = known.longest.cached_rows
    return known._replace(rows=rows, new_tokens=1, cached_rows=0, true_new_tokens=None)


def hidden(model: ModelSpec, batch: int, rows: int) -> Meta:
    """The shape of hidden states: [B, T, D]."""
    return Meta((batch, rows, model.hidden_size), model.dtype)


def end_ops(model: ModelSpec, demand: Demand) -> tuple[SizedOp, ...]:
    """The operations of embedding and output, which the source computes."""
    rows = 1 if demand.generates else demand.rows
    last = SizedOp(result_op(model, demand.generates), (hidden(model, demand.batch, rows),))
    return (*prompt_ops(model, demand), last)


def prompt_ops(model: ModelSpec, demand: Demand) -> list[SizedOp]:
    """The operations that embed the prompt."""
    new, cached = demand.prompt_pass
    tokens = Meta((demand.batch, new), "int64")
    if not model.vision:
        return [SizedOp(Embed(cached), (tokens,))]
    ops, x = [], pixels_meta(model, demand.batch)
    for op in image_ops(model):
        ops.append(SizedOp(op, (x,)))
        x = op.cost(model, (x,), 0).output
    return [*ops, SizedOp(EmbedPrompt(), (tokens, x))] if model.reads_text else ops


def attention_ops(model: ModelSpec, demand: Demand, start: int, stop: int) -> list[SizedOp]:
    """Attention of query heads [start, stop): in the prefill, and in the last decode step."""
    steps = [(0, demand.rows)] + [(demand.cached_rows - 1, 1)] * (demand.new_tokens > 1)
    ops = []
    for position, new in steps:
        evicted = max(0, position + new - demand.kept_rows) if demand.evicted_rows else 0
        x = hidden(model, demand.batch, new + min(position, evicted))
        op: Op = Attention(0, start, stop, True, "plan" if demand.generates else None)
        if evicted:
            op = AttentionAgain(0, start, stop, True, "plan", evicted, max(position, evicted))
        ops.append(SizedOp(op, (x,), min(position, demand.kept_rows)))
    return ops


def beside_rows(model: ModelSpec, demand: Demand, num_kv_heads: int, ops: Iterable[SizedOp]) -> list[SizedOp]:
    """`ops` with the bytes of the KV rows that are fetched from disk on a device with `num_kv_heads`."""
    fetched_bytes = demand.fetched_bytes(model, num_kv_heads)
    return [one._replace(fetched_bytes=fetched_bytes) for one in ops]


def block_ops(model: ModelSpec, demand: Demand) -> tuple[SizedOp, ...]:
    """A whole layer: in the prefill, and in the last decode step."""
    cache = "plan" if demand.generates else None
    new, cached = demand.prompt_pass
    ops = [SizedOp(Block(0, cache), (hidden(model, demand.batch, new),), cached)]
    if demand.new_tokens > 1:
        ops.append(SizedOp(Block(0, "plan"), (hidden(model, demand.batch, 1),), demand.cached_rows - 1))
    if demand.evicted_rows:
        for attention in attention_ops(model, demand, 0, model.num_heads):
            (x,) = attention.inputs
            columns = FeedForward(0, 0, model.intermediate_size, True)
            ops += [attention, SizedOp(Residual(0, "ffn"), (x, x)), SizedOp(columns, (x,))]
    return tuple(ops)


def working_bytes(model: ModelSpec, ops: Iterable[SizedOp]) -> int:
    """The largest working set of `ops`: inputs, output and temporary tensors of one operation."""
    return max((_working(model, one) for one in ops), default=0)


def _working(model: ModelSpec, one: SizedOp) -> int:
    """Bytes that an operation works with, in the layer that needs most: it stands for that of every layer."""
    return max(_working_in(model, alike) for alike, _ in in_all_layers(model, one))


def _working_in(model: ModelSpec, one: SizedOp) -> int:
    cost = one.op.cost(model, one.inputs, one.cached)
    tensors = sum(payload_bytes(x) for x in one.inputs) + payload_bytes(cost.output)
    return tensors + cost.scratch_bytes + one.fetched_bytes


def weights_bytes(plan: Placement, model: ModelSpec, device: int) -> int:
    """Bytes of the weights resident on `device`; a tied table counts once."""
    ledger = Ledger("", inf, model)
    for piece in plan.held_by(device):
        ledger.load(piece)
    return ledger.weights_bytes


def needed_bytes(
    model: ModelSpec,
    plan: Placement,
    rank: int,
    kv_bytes: Mapping[int, int],
    ops: Mapping[int, Sequence[SizedOp]],
) -> int:
    """Weights, KV caches at their largest and the working set of device `rank`."""
    working = working_bytes(model, ops.get(rank, ()))
    return weights_bytes(plan, model, rank) + kv_bytes.get(rank, 0) + working


def check_memory(
    cluster: ClusterSpec,
    model: ModelSpec,
    plan: Placement,
    kv_bytes: Mapping[int, int],
    ops: Mapping[int, Sequence[SizedOp]],
    remedy: str,
) -> None:
    """Check weights, KV caches at their largest and working sets against each device's memory.

    `kv_bytes` and `ops` are by rank. Raises `PlanError` with every device that lacks memory; `remedy` ends
    its sentence: what a person may do.
    """
    short = []
    for rank in sorted({holding.device for holding in plan.holdings}):
        device, have = cluster.devices[rank], cluster.devices[rank].usable_bytes
        need = needed_bytes(model, plan, rank, kv_bytes, ops)
        if need > have:
            short.append(f"{device.name} {needs_and_has(need, have)}")
    if short:
        raise PlanError(f"{plan.strategy}: {', '.join(short)}: {remedy}.")
