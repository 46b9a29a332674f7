"""Predict the time of a request whose layers are split by heads and columns, and added up by all-reduces.

Every device has a clock of its own: one whose part is short sends its sums sooner. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.core import Add, Attention, FeedForward, Residual
from engine.ops.head_columns import HeadColumns
from engine.ops.layout import kv_heads
from engine.ops.tensors import Meta, payload_bytes
from engine.program.collectives import AllReduce
from engine.program.frames import framed_bytes
from engine.strategies.planner.exchange import Exchange, Floats
from engine.strategies.shared.all_reduce_time import AllReduceChoice, cluster_all_reduce_s
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.embedding import EmbeddingChoice, is_worth_a_table
from engine.strategies.shared.messages import message_s
from engine.strategies.shared.shares import op_s
from engine.strategies.shared.tensor_parallel import Bounds

EXACT_LAYERS = 2
"""Layers that are timed one by one: each further one takes as long as the last."""


class Phase(NamedTuple):
    """Equal passes of a request: `times` of `rows` new rows beside `cached` ones."""

    rows: int
    cached: int
    times: int


def phases_of(demand: Demand) -> tuple[Phase, ...]:
    """The pass over the prompt and, as one of middle length, those of all further tokens."""
    prompt = Phase(demand.rows, 0, 1)
    if demand.new_tokens < 2:
        return (prompt,)
    return prompt, Phase(1, (demand.rows + demand.cached_rows) // 2, demand.new_tokens - 1)


class SplitTime:
    """Times of one run on any group and shares. `how` adds up, and `splits_head` and `embedding` say where
    the ends are computed (`shared/tensor_parallel.py`).
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        how: AllReduceChoice = "auto",
        splits_head: bool = False,
        embedding: EmbeddingChoice = "source",
    ):
        self.cluster, self.model, self.demand = cluster, model, demand
        self.how, self.splits_head, self.embedding = how, splits_head and demand.generates, embedding
        self.phases = phases_of(demand)
        self.part_s = cache(self._part_s)
        self._first_alike = cluster.first_alike
        self._exchange = cache(self._exchange_of)
        self.all_reduces = cache(self._all_reduces)

    def request_s(self, bounds: Bounds) -> float:
        """Seconds of the prompt and all further tokens, without what the source does in every plan."""
        hows = self.all_reduces(bounds.group)
        return sum(
            phase.times * self._pass_s(bounds, number, how)
            for number, (phase, how) in enumerate(zip(self.phases, hows, strict=True))
        )

    def chosen(self, group: tuple[int, ...]) -> tuple[AllReduce, AllReduce]:
        """The algorithms for prompts and for tokens."""
        hows = self.all_reduces(group)
        return hows[0], hows[-1]

    def attention_s(self, rank: int, start: int, stop: int) -> float:
        """Seconds of these heads of a layer in the whole request."""
        return sum(p.times * self._heads_s(rank, start, stop, n) for n, p in enumerate(self.phases))

    def ffn_s(self, rank: int, columns: int) -> float:
        """Seconds of so many columns of a layer in the whole request."""
        return sum(p.times * self.part_s(rank, "columns", columns, n) for n, p in enumerate(self.phases))

    def _all_reduces(self, group: tuple[int, ...]) -> tuple[AllReduce, ...]:
        """The algorithm of each phase: the faster one for members that begin together."""
        if self.how != "auto":
            return (self.how,) * len(self.phases)
        ways: tuple[AllReduce, ...] = ("ring", "direct")
        start_s = np.zeros(len(group))
        return tuple(
            min(ways, key=lambda how, n=n: float(self._summed_s(group, start_s, n, how).max()))  # type: ignore[misc]
            for n, _ in enumerate(self.phases)
        )

    def _pass_s(self, bounds: Bounds, number: int, how: AllReduce) -> float:
        group = bounds.group
        heads = [
            self._heads_s(rank, *cut, number) for rank, cut in zip(group, pairwise(bounds.heads), strict=True)
        ]
        columns = [
            self.part_s(rank, "columns", stop - start, number)
            for rank, (start, stop) in zip(group, pairwise(bounds.columns), strict=True)
        ]
        parts_s = [np.array(heads), np.array(columns)]
        rest_s = np.array([self.part_s(rank, "residual", 0, number) for rank in group])
        ready_s, layers = self._input_s(group, number), self.model.num_layers
        before_s = ready_s
        for _ in range(min(layers, EXACT_LAYERS)):
            before_s = ready_s
            for part_s in parts_s:
                ready_s = self._summed_s(group, ready_s + part_s, number, how) + rest_s
        more_s = max(0, layers - EXACT_LAYERS) * float((ready_s - before_s).max())
        return more_s + self._output_s(bounds, ready_s, number)

    def _summed_s(self, group: tuple[int, ...], start_s: Floats, number: int, how: AllReduce) -> Floats:
        if len(group) == 1:
            return start_s
        x = hidden(self.model, self.demand.batch, self.phases[number].rows)
        size_bytes = payload_bytes(x)
        if how not in ("ring", "direct"):
            summed_s = cluster_all_reduce_s(self.cluster, group, size_bytes, how)
            return np.full(len(group), float(start_s.max()) + summed_s)
        add_s = np.array([self.part_s(rank, "add", 0, number) for rank in group])
        elements = int(np.prod(x.shape))
        return self._exchange(group).all_reduce_s(how, start_s, size_bytes, elements, add_s)

    def _input_s(self, group: tuple[int, ...], number: int) -> Floats:
        """When each member has the input, which the source sends to all."""
        source, rows = self.cluster.source_rank, self.phases[number].rows
        everyone = group if source in group else (*group, source)
        row_bytes = payload_bytes(hidden(self.model, self.demand.batch, rows))
        if self._members_embed(group):
            row_bytes = payload_bytes(Meta((self.demand.batch, rows), "int64"))
        sent, me = np.zeros((len(everyone),) * 2, dtype=bool), everyone.index(source)
        sent[me, : len(group)] = True
        sent[me, me] = False
        exchange = self._exchange(everyone)
        bytes_of = np.where(np.arange(len(everyone)) == me, framed_bytes(row_bytes), 0.0)
        arrived_s, _ = exchange.arrivals_s(
            np.zeros(len(everyone)), bytes_of, sent, np.zeros(len(exchange.rate))
        )
        return np.maximum(arrived_s, 0.0)[: len(group)]

    def _members_embed(self, group: Sequence[int]) -> bool:
        if self.embedding == "auto":
            return is_worth_a_table(self.cluster, self.model, self.demand, group)
        return self.embedding == "members"

    def _output_s(self, bounds: Bounds, ready_s: Floats, number: int) -> float:
        """When the source has the last layer's rows, or with a split head the best token of each member."""
        group, source = bounds.group, self.cluster.source_rank
        if self.splits_head:
            columns = [stop - start for start, stop in pairwise(bounds.columns)]
            chosen_s = [
                ready + self.part_s(rank, "head", mine, number) + message_s(self.cluster, rank, source, 16)
                for rank, ready, mine in zip(group, ready_s, columns, strict=True)
                if mine
            ]
            return float(max(chosen_s))
        if source in group:
            return float(ready_s[group.index(source)])
        rows = 1 if self.demand.generates else self.demand.rows
        size_bytes = payload_bytes(hidden(self.model, self.demand.batch, rows))
        return float(ready_s[0]) + message_s(self.cluster, group[0], source, size_bytes)

    def _exchange_of(self, group: tuple[int, ...]) -> Exchange:
        return Exchange(self.cluster, group)

    def _heads_s(self, rank: int, start: int, stop: int, number: int) -> float:
        """Seconds of the attention of heads. A KV group that a device has in part costs the whole group's
        keys and values.
        """
        if start == stop:
            return self.part_s(rank, "heads", 0, number)
        first, last = kv_heads(self.model, start, stop)
        offset = start - first * self.model.group_size
        return self.part_s(rank, "heads", stop - start, number, offset if offset and last > first else 0)

    def _part_s(self, rank: int, part: str, count: int, number: int, offset: int = 0) -> float:
        if self._first_alike[rank] != rank:
            return self.part_s(self._first_alike[rank], part, count, number, offset)
        model, phase = self.model, self.phases[number]
        x = hidden(model, self.demand.batch, phase.rows)
        store = "plan" if self.demand.generates else None
        if part == "heads":
            one = SizedOp(Attention(0, offset, offset + count, True, store), (x,), phase.cached)
        elif part == "columns":
            one = SizedOp(FeedForward(0, 0, count, True), (x,))
        elif part == "residual":
            one = SizedOp(Residual(0, "ffn"), (x, x))
        elif part == "head":
            stop = max(1, round(model.vocab_size * count / model.intermediate_size))
            one = SizedOp(HeadColumns(0, stop), (hidden(model, self.demand.batch, 1),))
        else:
            one = SizedOp(Add(), (x, x))
        return op_s(self.cluster.devices[rank], model, one)
