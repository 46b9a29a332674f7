"""A rough time of a request whose layers are split by heads and columns, by which a search ranks shares.

It has the slowest member's parts, and the most loaded link of messages that go at once. What a plan really
takes, the judge says (`engine/planning/judge.py`). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.units import transfer_s
from engine.ops.core import Attention, FeedForward, Residual
from engine.ops.operation import Op
from engine.ops.tensors import payload_bytes
from engine.planning.search import Shares
from engine.program.frames import framed_bytes
from engine.strategies.planner.groups import Group
from engine.strategies.shared.all_reduce_time import AllReduceChoice, cluster_all_reduce_s
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.messages import fixed_s, message_s
from engine.strategies.shared.shares import op_s


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


class SplitEstimate:
    """Rough times of one run. Partial sums are added up as `how` says."""

    def __init__(self, cluster: ClusterSpec, model: ModelSpec, demand: Demand, how: AllReduceChoice = "auto"):
        self.cluster, self.model, self.demand, self.how = cluster, model, demand, how
        self.phases, self._first_alike = phases_of(demand), cluster.first_alike
        self.part_s, self._around_s = cache(self._seconds_of_part), cache(self._seconds_around)
        self.ring_s, self.direct_s = cache(self._ring), cache(self._direct)

    def request_s(self, shares: Shares) -> float:
        """Seconds of a whole request: all layers of all its passes, and the ways to and from the source."""
        return sum(
            phase.times
            * (self.model.num_layers * self.layer_s(shares, number) + self._around_s(shares.group, number))
            for number, phase in enumerate(self.phases)
        )

    def layer_s(self, shares: Shares, number: int) -> float:
        """Seconds of a layer in a pass of phase `number`."""
        rest_s = max(self.part_s(rank, "residual", 0, number) for rank in shares.group)
        return sum(self.slowest_s(shares, number)) + 2 * (rest_s + self._sum_s(shares.group, number))

    def slowest_s(self, shares: Shares, number: int) -> tuple[float, float]:
        """Seconds of the slowest member's heads, and of its columns, in a pass of phase `number`."""
        group, (heads, columns, *_) = shares
        return (
            max(self.part_s(rank, "heads", mine, number) for rank, mine in zip(group, heads, strict=True)),
            max(
                self.part_s(rank, "columns", mine, number) for rank, mine in zip(group, columns, strict=True)
            ),
        )

    def in_all_s(self, rank: int, part: str, count: int) -> float:
        """Seconds of `count` heads, or columns, of a layer in the whole request."""
        return sum(p.times * self.part_s(rank, part, count, n) for n, p in enumerate(self.phases))

    def rows_bytes(self, number: int) -> int:
        """Bytes of the rows of a pass of phase `number`."""
        return payload_bytes(hidden(self.model, self.demand.batch, self.phases[number].rows))

    def _sum_s(self, group: Group, number: int) -> float:
        if self.how in ("tree", "star"):
            return cluster_all_reduce_s(self.cluster, group, self.rows_bytes(number), self.how)
        ways = {"ring": 2 * self.ring_s(group, number), "direct": self.direct_s(group, number)}
        return ways.get(self.how, min(ways.values()))

    def _ring(self, group: Group, number: int) -> float:
        """Equal parts of the rows from each member to the next, until all have all."""
        pairs, steps = tuple(zip(group, (*group[1:], group[0]), strict=True)), len(group) - 1
        return steps * self.at_once_s(pairs, self.rows_bytes(number) / len(group)) if steps else 0.0

    def _direct(self, group: Group, number: int) -> float:
        return self.at_once_s(tuple(permutations(group, 2)), self.rows_bytes(number))

    def at_once_s(self, pairs: Sequence[tuple[int, int]], size_bytes: float) -> float:
        """Seconds until a message of this size has arrived from each first to each second rank of `pairs`."""
        crossing = Counter(hop for pair in pairs for hop in self.cluster.path(*pair))
        loads_s = (
            count * transfer_s(framed_bytes(size_bytes), self.cluster.links[hop.link].rate(hop.forward))
            for hop, count in crossing.items()
        )
        return max(loads_s, default=0.0) + max((fixed_s(self.cluster, *pair) for pair in pairs), default=0.0)

    def _seconds_around(self, group: Group, number: int) -> float:
        """The way of the rows from the source to the members, and of the result back."""
        source = self.cluster.source_rank
        rows = 1 if self.demand.generates else self.demand.rows
        result = payload_bytes(hidden(self.model, self.demand.batch, rows))
        there_s = max(message_s(self.cluster, source, rank, self.rows_bytes(number)) for rank in group)
        return there_s + (0.0 if source in group else message_s(self.cluster, group[0], source, result))

    def _seconds_of_part(self, rank: int, part: str, count: int, number: int) -> float:
        if self._first_alike[rank] != rank:
            return self.part_s(self._first_alike[rank], part, count, number)
        model, phase = self.model, self.phases[number]
        x = hidden(model, self.demand.batch, phase.rows)
        store = "plan" if self.demand.generates else None
        op: Op = Residual(0, "ffn")
        if part == "heads":
            op = Attention(0, 0, count, True, store)
        elif part == "columns":
            op = FeedForward(0, 0, count, True)
        inputs = (x, x) if part == "residual" else (x,)
        return op_s(self.cluster.devices[rank], model, SizedOp(op, inputs, phase.cached))
