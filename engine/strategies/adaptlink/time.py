"""Predict the time of a request in AdaptLink, messages of full size included. Pure.

Hu et al., "AdaptLink" (AAAI 2025 workshop), equation 1, which minimises compute and messages of all layers
within every device's memory. As printed it adds up devices that work side by side; here a split layer takes
the longer side: the primary's columns, or the way to a secondary, its columns, and the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.units import transfer_s
from engine.ops.core import Add, Attention, Block, FeedForward, Norm, Residual
from engine.ops.operation import Op
from engine.ops.tensors import Meta, payload_bytes
from engine.program.frames import framed_bytes
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.messages import fixed_s, message_s
from engine.strategies.shared.shares import op_s

NOTE_INTEGERS = 6
"""A call carries its kind, step, layer, epoch and columns (`serve.py`)."""


class Phase(NamedTuple):
    """Equal steps of a request, `times` of them: new rows `x` [B, T, D] after `cached` ones; `result` are the
    rows that return.
    """

    times: int
    x: Meta
    cached: int
    cache: str | None
    result: Meta

    @property
    def call_bytes(self) -> int:
        """Bytes of a call with the rows, and of its reply."""
        return framed_bytes(payload_bytes(self.x), NOTE_INTEGERS)


class RequestTime:
    """Seconds of one request (or of a burst in one batch) on a cluster: the prompt and all further tokens."""

    def __init__(self, cluster: ClusterSpec, model: ModelSpec, demand: Demand):
        self.cluster, self.model, self.demand = cluster, model, demand
        self._known_s: dict[tuple[int, Phase, Op], float] = {}

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The prefill, and the token in the middle of the answer for all tokens after the first."""
        demand, model = self.demand, self.model
        x, row = hidden(model, demand.batch, demand.rows), hidden(model, demand.batch, 1)
        if not demand.generates:
            return (Phase(1, x, 0, None, x),)
        prefill = Phase(1, x, 0, "plan", row)
        middle = (demand.rows + demand.cached_rows) // 2
        return (prefill, Phase(demand.new_tokens - 1, row, middle, "plan", row))[: demand.new_tokens]

    def op_s(self, rank: int, phase: Phase, op: Op, inputs: int = 1) -> float:
        if (rank, phase, op) not in self._known_s:
            cached = phase.cached if op.cache else 0
            one = SizedOp(op, (phase.x,) * inputs, cached)
            self._known_s[rank, phase, op] = op_s(self.cluster.devices[rank], self.model, one)
        return self._known_s[rank, phase, op]

    def columns_s(self, rank: int, phase: Phase, columns: float) -> float:
        """Seconds of so many columns of a feed-forward part, after its norm: none without columns."""
        op = FeedForward(0, 0, int(columns), True, normed=True)
        return self.op_s(rank, phase, op) if columns else 0.0

    def ends_s(self, rank: int) -> float:
        """Seconds for which rows are on the way from the source to device `rank`, and back."""
        source = self.cluster.source_rank
        return sum(
            phase.times
            * (
                message_s(self.cluster, source, rank, payload_bytes(phase.x))
                + message_s(self.cluster, rank, source, payload_bytes(phase.result))
            )
            for phase in self.phases
        )

    def layer_s(self, rank: int, block: Callable[[Block], Op] = lambda op: op) -> float:
        """Seconds of one whole layer in all steps on device `rank`, as the operation that `block` makes."""
        return sum(
            phase.times * self.op_s(rank, phase, block(Block(0, phase.cache))) for phase in self.phases
        )

    def alone_s(self, rank: int, block: Callable[[Block], Op] = lambda op: op) -> float:
        """Seconds of a request that device `rank` computes alone."""
        return self.ends_s(rank) + self.model.num_layers * self.layer_s(rank, block)

    def least_s(self, rank: int) -> float:
        """Seconds that device `rank` needs as primary even if others compute all columns in no time."""
        return self.ends_s(rank) + self.model.num_layers * sum(
            phase.times * self.besides_columns_s(rank, phase) for phase in self.phases
        )

    def besides_columns_s(self, rank: int, phase: Phase) -> float:
        """A split layer on the primary besides columns, messages and sums."""
        attention = Attention(0, 0, self.model.num_heads, True, phase.cache)
        return (
            self.op_s(rank, phase, attention)
            + self.op_s(rank, phase, Residual(0, "attention"), 2)
            + self.op_s(rank, phase, Norm(0, "ffn"))
            + self.op_s(rank, phase, Residual(0, "ffn"), 2)
        )


class SplitTime:
    """Seconds of a split layer with `primary` and `secondaries` (ranks) in all steps, by their columns."""

    def __init__(self, times: RequestTime, primary: int, secondaries: Sequence[int]):
        self.times, self.primary, self.secondaries = times, primary, tuple(secondaries)
        cluster = times.cluster
        self.fixed_s = [
            (fixed_s(cluster, primary, rank), fixed_s(cluster, rank, primary)) for rank in secondaries
        ]
        self.there = self._links([(primary, rank) for rank in secondaries])
        self.back = self._links([(rank, primary) for rank in secondaries])

    def _links(self, pairs: Sequence[tuple[int, int]]) -> tuple[tuple[float, tuple[int, ...]], ...]:
        """The links of these paths: rate in bit/s, and the indexes of the paths over it."""
        users: dict[tuple[int, bool], list[int]] = {}
        for index, pair in enumerate(pairs):
            for hop in self.times.cluster.path(*pair):
                users.setdefault((hop.link, hop.forward), []).append(index)
        links = self.times.cluster.links
        return tuple((links[link].rate(ahead), tuple(on)) for (link, ahead), on in users.items())

    def split_s(self, columns: Sequence[int]) -> float:
        """`columns` of the primary and of each secondary, of which none has no columns."""
        return sum(phase.times * self.phase_s(phase, columns) for phase in self.times.phases)

    def messages_s(self, index: int) -> float:
        """Seconds of all messages with one secondary if it were the only one."""
        there, back = self.fixed_s[index]
        slowest = min(rate for rate, users in (*self.there, *self.back) if index in users)
        return sum(
            phase.times * (there + back + 2 * transfer_s(phase.call_bytes, slowest))
            for phase in self.times.phases
        )

    def phase_s(self, phase: Phase, columns: Sequence[int]) -> float:
        """One split layer in one step."""
        asked_s = self._arrivals_s([0.0] * len(self.secondaries), phase.call_bytes, self.there, 0)
        done_s = [
            asked + self.times.columns_s(rank, phase, size)
            for rank, asked, size in zip(self.secondaries, asked_s, columns[1:], strict=True)
        ]
        answered_s = self._arrivals_s(done_s, phase.call_bytes, self.back, 1)
        mine_s = self.times.columns_s(self.primary, phase, columns[0])
        sums_s = len(self.secondaries) * self.times.op_s(self.primary, phase, Add(), 2)
        besides_s = self.times.besides_columns_s(self.primary, phase)
        return besides_s + max(mine_s, *answered_s, 0.0) + sums_s

    def _arrivals_s(
        self,
        starts_s: Sequence[float],
        size_bytes: int,
        links: tuple[tuple[float, tuple[int, ...]], ...],
        way: int,
    ) -> list[float]:
        """When equal messages have arrived. Those that cross a link together share it: all of them have when
        the sum of their bytes has.
        """
        drained_s = [-inf] * len(starts_s)
        for rate, users in links:
            each_s = transfer_s(size_bytes, rate)
            ordered = sorted(starts_s[user] + self.fixed_s[user][way] for user in users)
            last_s = max(start + (len(ordered) - i) * each_s for i, start in enumerate(ordered))
            for user in users:
                drained_s[user] = max(drained_s[user], last_s)
        return drained_s
