"""Describe some devices of a cluster as LIME's ring (section IV-C). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from math import ceil

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.units import transfer_s
from engine.ops.core import Block, Embed
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.ops.tensors import Meta, payload_bytes
from engine.program.frames import framed_bytes
from engine.strategies.lime.allocation import Ring
from engine.strategies.lime.cost import HopTime, StepTimes, mean_step
from engine.strategies.shared.demand import Demand, SizedOp, end_ops, hidden
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.shares import op_s


def hop_of(cluster: ClusterSpec, src: int, dst: int, size_bytes: int) -> HopTime:
    """The hop of a message of `size_bytes` from rank to rank on an idle path; nothing to oneself."""
    if src == dst:
        return HopTime()
    path = cluster.path(src, dst)
    rate = min(cluster.links[hop.link].rate(hop.forward) for hop in path)
    wire_bytes = framed_bytes(size_bytes)
    sent_s, received_s = (
        wire_bytes / rate if rate else 0.0
        for rate in (cluster.devices[rank].staging_byte_per_s for rank in (src, dst))
    )
    occupied_s = cluster.devices[src].message_overhead_s + sent_s + transfer_s(wire_bytes, rate)
    return HopTime(occupied_s, cluster.delay_s(src, dst) + received_s)


class PassTimes:
    """Seconds of one forward pass of `rows` new rows after `cached` ones, on any devices of `cluster`.

    `around` gives the times on one ring. What devices and messages need is computed once for all rings.
    """

    def __init__(self, cluster: ClusterSpec, model: ModelSpec, demand: Demand, rows: int, cached: int):
        self.cluster, self.model, self.source = cluster, model, cluster.source_rank
        cache = "plan" if demand.generates else None
        x = hidden(model, demand.batch, rows)
        block = Block(0, cache)
        attention, residual, *_ = block.parts(model)
        self.layer = (SizedOp(block, (x,), cached),)
        self.attention = (SizedOp(attention, (x,), cached), SizedOp(residual, (x, x)))
        *begin, end = end_ops(model, demand)
        if cached:
            begin = [SizedOp(Embed(cached), (Meta((demand.batch, rows), "int64"),))]
        self.begin_s, self.end_s = self._seconds(self.source, begin), self._seconds(self.source, [end])
        self.hidden_bytes = payload_bytes(x)
        result = payload_bytes(hidden(model, demand.batch, 1))
        self.result_bytes = result if demand.generates else self.hidden_bytes
        self.of_device = lru_cache(maxsize=None)(self._of_device)
        self.hop = lru_cache(maxsize=None)(partial(hop_of, cluster))

    def _seconds(self, rank: int, ops: Sequence[SizedOp]) -> float:
        return sum(op_s(self.cluster.devices[rank], self.model, one) for one in ops)

    def _of_device(self, rank: int) -> tuple[float, float]:
        return self._seconds(rank, self.layer), self._seconds(rank, self.attention)

    def around(self, ranks: Sequence[int]) -> StepTimes:
        """The pass on the ring of `ranks`."""
        following = (*ranks[1:], ranks[0])
        source, size = self.source, self.hidden_bytes
        return StepTimes(
            layer_s=tuple(self.of_device(rank)[0] for rank in ranks),
            attention_s=tuple(self.of_device(rank)[1] for rank in ranks),
            hops=tuple(self.hop(src, dst, size) for src, dst in zip(ranks, following, strict=True)),
            leave=self.hop(ranks[-1], source, self.result_bytes),
            enter=self.hop(source, ranks[0], size) if source != ranks[0] else None,
            begin_s=self.begin_s,
            end_s=self.end_s,
        )


def step_times(
    cluster: ClusterSpec, model: ModelSpec, ranks: Sequence[int], demand: Demand, rows: int, cached: int
) -> StepTimes:
    """One forward pass of `rows` new rows after `cached` ones, around the ring of `ranks`."""
    return PassTimes(cluster, model, demand, rows, cached).around(ranks)


class Rings:
    """Every ring of workers of `cluster`. `free_bytes` is what each rank can give to layers; a plan keeps
    memory for KV caches of `num_tokens` tokens per sequence. `part` is the mean pass of the `parts` in which
    the prompt passes.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        free_bytes: Mapping[int, float],
        num_tokens: int,
    ):
        self.cluster, self.model, self.free_bytes = cluster, model, free_bytes
        self.kv_bytes = num_tokens * token_bytes(model, demand)
        self.last_kv_bytes = demand.true.cached_rows * token_bytes(model, demand)
        self.new_tokens = demand.new_tokens
        self.prompt = PassTimes(cluster, model, demand, demand.rows, 0)
        self.parts, self.part = 1, self.prompt
        new, cached = demand.prompt_pass
        if cached:
            self.parts = ceil(demand.rows / new)
            self.part = PassTimes(cluster, model, demand, new, cached // 2)
        self.token = self.prompt
        if demand.new_tokens > 1:
            self.token = PassTimes(cluster, model, demand, 1, (demand.rows + demand.cached_rows) // 2)
        self.layer_s = {rank: self.token.of_device(rank)[0] for rank in free_bytes}

    def of(self, ranks: Sequence[int]) -> Ring:
        """The ring of `ranks`, in this order, for a token in the middle of the answer, else the prompt."""
        return self._ring(ranks, self.token.around(ranks))

    def of_part(self, ranks: Sequence[int]) -> Ring:
        """The ring of `ranks` for the mean part of the prompt."""
        return self._ring(ranks, self.part.around(ranks))

    def mean(self, ranks: Sequence[int]) -> Ring:
        """The ring of `ranks` for the mean of all passes of a request, its prompt's among them."""
        first, token = self.prompt.around(ranks), self.token.around(ranks)
        return self._ring(ranks, mean_step(first, token, max(1, self.new_tokens)))

    def _ring(self, ranks: Sequence[int], step: StepTimes) -> Ring:
        attention_bytes, ffn_bytes = (weight_bytes(self.model, piece) for piece in layer_slices(0))
        size = attention_bytes + ffn_bytes
        return Ring(
            num_layers=self.model.num_layers,
            layer_bytes=size,
            attention_frac=attention_bytes / size,
            kv_bytes=self.kv_bytes,
            memory_bytes=tuple(self.free_bytes[rank] for rank in ranks),
            load_s=tuple(size / self.cluster.devices[rank].disk_byte_per_s for rank in ranks),
            step=step,
            last_kv_bytes=self.last_kv_bytes,
        )


def token_bytes(model: ModelSpec, demand: Demand) -> int:
    """Bytes that one more token of every unfinished sequence adds to one layer's KV caches."""
    per_row = kv_bytes_per_row(model, model.num_kv_heads)
    return demand.sequences * per_row if demand.generates else 0
