"""Predict the time of all requests of a burst in a pipeline, micro-batch by micro-batch. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import chain
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.message_costs import receiver_cost_s, sender_cost_s
from engine.domain.model import ModelSpec
from engine.domain.units import transfer_s
from engine.ops.core import Block
from engine.ops.tensors import Meta, payload_bytes
from engine.program.frames import framed_bytes
from engine.strategies.shared.demand import Demand, SizedOp, end_ops, hidden
from engine.strategies.shared.last_head import last_head_ops
from engine.strategies.shared.shares import op_s
from engine.strategies.shared.stages import Stage

PLAYED = 12
"""Tokens that are played: every further one takes as long as the last of them."""

Resource = int | tuple[int, bool] | tuple[int, int, str]
"""A device (rank), a link in one direction, or the sending from one device to another: it does one thing at a
time.
"""


class Leg(NamedTuple):
    """A part of a micro-batch's way: it occupies `resource` for `busy_s`, then takes `rest_s` more. One that
    `keeps` its resource has it until the end of the next leg that does not.
    """

    resource: Resource
    busy_s: float
    rest_s: float = 0.0
    keeps: bool = False


class PipelineTime:
    """Times of one run with micro-batches of `demand.batch` requests. A `continuous` one begins its next
    token before the others have theirs; else all wait for all. With `head_last` the last stage chooses
    tokens.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        continuous: bool,
        head_last: bool = False,
    ):
        self.cluster, self.model, self.demand = cluster, model, demand
        self.continuous, self.head_last = continuous, head_last and demand.generates
        self.layer_s = cache(self._layer_s)
        self.ends_s = cache(self._ends_s)

    def burst_s(self, stages: Sequence[Stage]) -> float:
        """Seconds until every request has its last token."""
        tokens = max(1, self.demand.new_tokens)
        ended_s = self._played_s(stages, min(tokens, PLAYED))
        if tokens <= PLAYED:
            return ended_s
        return ended_s + (tokens - PLAYED) * (ended_s - self._played_s(stages, PLAYED - 1))

    def _played_s(self, stages: Sequence[Stage], tokens: int) -> float:
        """Seconds until every request has so many tokens. A continuous run is one long way for each."""
        passes = [self._way(stages, index > 0) for index in range(tokens)]
        ways = [list(chain.from_iterable(passes))] if self.continuous else passes
        ended_s, free_s = 0.0, dict[Resource, float]()
        for way in ways:
            ended_s = max(_passed(way, [ended_s] * self.demand.num_batches, free_s))
        return ended_s

    def _way(self, stages: Sequence[Stage], decodes: bool) -> list[Leg]:
        """What a micro-batch does in one pass, in order."""
        source, last = self.cluster.source_rank, stages[-1].device
        begin_s, end_s = self.ends_s(decodes, last)
        legs, here = [Leg(source, begin_s)], source
        for stage in stages:
            legs += self._hop(here, stage.device, decodes, False)
            here = stage.device
            legs.append(Leg(here, stage.num_layers * self.layer_s(here, decodes)))
        head = Leg(here if self.head_last else source, end_s)
        back = self._hop(here, source, decodes, True)
        return [*legs, head, *back] if self.head_last else [*legs, *back, head]

    def _hop(self, src: int, dst: int, decodes: bool, returns: bool) -> list[Leg]:
        """A message: its sender works on one at a time for this receiver, until it has left; the slowest link
        on its path is busy with it.
        """
        if src == dst:
            return []
        demand = self.demand
        rows = 1 if decodes or (returns and demand.generates) else demand.rows
        x = hidden(self.model, demand.batch, rows)
        size = payload_bytes(Meta((demand.batch,), "int64") if returns and self.head_last else x)
        rates = {
            (hop.link, hop.forward): self.cluster.links[hop.link].rate(hop.forward)
            for hop in self.cluster.path(src, dst)
        }
        slowest = min(rates, key=lambda link: rates[link])
        size_bytes, devices = framed_bytes(size), self.cluster.devices
        after_s = self.cluster.delay_s(src, dst) + receiver_cost_s(devices[dst], size_bytes)
        return [
            Leg((src, dst, "sends"), sender_cost_s(devices[src], size_bytes), keeps=True),
            Leg(slowest, transfer_s(size_bytes, rates[slowest]), after_s),
        ]

    def _layer_s(self, rank: int, decodes: bool) -> float:
        demand, store = self.demand, "plan" if self.demand.generates else None
        middle = (demand.rows + demand.cached_rows) // 2 if decodes else 0
        x = hidden(self.model, demand.batch, 1 if decodes else demand.rows)
        return op_s(self.cluster.devices[rank], self.model, SizedOp(Block(0, store), (x,), middle))

    def _ends_s(self, decodes: bool, last: int) -> tuple[float, float]:
        """Seconds of embedding, and of the output: where the source or the last stage computes it."""
        source = self.cluster.devices[self.cluster.source_rank]
        *begin, end = end_ops(self.model, self.demand)
        embeds_s = 0.0 if decodes else sum(op_s(source, self.model, one) for one in begin)
        if self.head_last and last != self.cluster.source_rank:
            device = self.cluster.devices[last]
            return embeds_s, sum(
                op_s(device, self.model, one) for one in last_head_ops(self.model, self.demand)
            )
        return embeds_s, op_s(source, self.model, end)


def _passed(way: Sequence[Leg], ready_s: Sequence[float], free_s: dict[Resource, float]) -> list[float]:
    """When each micro-batch that begins at `ready_s` is through `way`: resources take who comes first."""
    waiting = [(time_s, index, 0) for index, time_s in enumerate(ready_s)]
    waiting.sort()
    ends_s, keeps = [0.0] * len(ready_s), dict[int, Resource]()
    behind: dict[Resource, deque[tuple[int, int]]] = {}  # who waits for a resource that another one keeps
    while waiting:
        now_s, index, number = heappop(waiting)
        if number == len(way):
            ends_s[index] = now_s
            continue
        leg = way[number]
        if leg.resource in behind and keeps.get(index) != leg.resource:
            behind[leg.resource].append((index, number))
            continue
        ended_s = free_s[leg.resource] = max(now_s, free_s.get(leg.resource, 0.0)) + leg.busy_s
        if leg.keeps:
            keeps[index] = leg.resource
            behind.setdefault(leg.resource, deque())
        elif index in keeps:
            kept = keeps.pop(index)
            free_s[kept] = ended_s
            if behind[kept]:
                following = behind[kept].popleft()
                keeps[following[0]] = kept
                heappush(waiting, (ended_s, *following))
            else:
                del behind[kept]
        heappush(waiting, (ended_s + leg.rest_s, index, number + 1))
    return ends_s
