"""Find the devices, the rows and the decoder with which Voltage answers a request soonest. Pure.

Hu, Li (ICDCS 2024), section V: any shares are possible, and the paper gives no rule for them; its evaluation
uses even ones. The search is that of all methods that divide units (`planner/search.py`). Here these are the
rows, and the one KV cache: who has it decodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, permutations
from math import inf

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.units import transfer_s
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import payload_bytes
from engine.planning.judge import Judge
from engine.planning.search import Shares
from engine.program.frames import framed_bytes
from engine.program.strategy import Strategy
from engine.strategies.planner.groups import Group
from engine.strategies.planner.search import GroupSearch
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    block_ops,
    end_ops,
    hidden,
    weights_bytes,
    working_bytes,
)
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.messages import fixed_s, message_s
from engine.strategies.shared.pipeline import ends_placement
from engine.strategies.shared.shares import bounds_of, layer_s, op_s, prefill_layer_s
from engine.strategies.voltage.layout import PositionsLayout
from engine.strategies.voltage.plan import (
    Division,
    VoltageParams,
    check_params,
    decodes_with_cache,
    last_layer_rows,
    plan_with,
    rule,
    wanted_decoder,
)
from engine.strategies.voltage.positions import bounds, shard_of

Piece = tuple[int, int, int, bool]
"""A member (rank), its rows [start, stop), and whether it fills a KV cache."""
MEASURED_LAYERS = 4
"""Devices wait for each other only once in a layer, so that a late start is made up for in several."""


def chosen_plan(
    method: Strategy, cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: VoltageParams
) -> Plan[PositionsLayout]:
    """Voltage's plan: the best one, that of the paper's rule, or that made by hand. Raises `PlanError` where
    a worker lacks memory, `SpecError` for parameters at odds.
    """
    check_params(model, params)
    search = RowSearch(method, cluster, model, demand, params)
    if params.plan is None and params.planner == "best":
        best = search.best_plan()
        if best is not None:
            return best
    division = rule(cluster, model, demand, params)
    together = search.with_division(model, division)
    if params.plan is None and params.fallback == "single":
        alone, alone_s = search.alone()
        together_s = search.judge.seconds(lambda few: search.with_division(few, division))
        if alone is not None and alone_s < together_s:
            return search.plan_of(model, alone)
    return together


class RowSearch(GroupSearch[PositionsLayout]):
    """The search for one run. With trimmed keys the last member with rows decodes; else the KV cache is a
    second unit. Of tokens that are recomputed the rows of the longest pass are divided.
    """

    def __init__(
        self, method: Strategy, cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: VoltageParams
    ):
        caches = decodes_with_cache(demand, params)
        recomputes = demand.generates and not caches
        sizes = demand.rows, demand.new_tokens, demand.batch
        judge = Judge(method, cluster, model, *sizes, measured=MEASURED_LAYERS, recomputes=recomputes)
        super().__init__(judge, cluster, model, demand)
        self.name, self.params, self.wanted = method.name, params, wanted_decoder(cluster, params)
        self.caches, self.recomputes, self._first_alike = caches, recomputes, cluster.first_alike
        self.gives_cache = caches and not params.causal_trim
        self.rows = demand.cached_rows if recomputes else demand.rows
        self.work_s, self.need_bytes = cache(self._work_s), cache(self._need_bytes)
        self.tokens_s, self.around_s, self.way = (
            cache(self._tokens_s),
            cache(self._around_s),
            cache(self._way),
        )
        self.row_bytes = payload_bytes(hidden(model, demand.batch, 1))
        self.skips_last = last_layer_rows(model, demand, params) == "needed"

    def with_division(self, model: ModelSpec, division: Division) -> Plan[PositionsLayout]:
        return plan_with(self.name, self.cluster, model, self.demand, self.params, division)

    def plan_of(self, model: ModelSpec, shares: Shares) -> Plan[PositionsLayout]:
        ratios = tuple(count / self.rows for count in shares.amounts[0])
        return self.with_division(model, Division(shares.group, ratios, self.decoder(shares)))

    def decoder(self, shares: Shares) -> int | None:
        """Who decodes with a KV cache."""
        group, (rows, *given) = shares
        if not self.caches:
            return None
        return group[given[0].index(1) if given else max(i for i, count in enumerate(rows) if count)]

    def alone(self) -> tuple[Shares | None, float]:
        """The fastest of a few devices that alone are fast by estimate, and its seconds."""
        ones = [one for rank in self.cluster.workers for one in self.starts((rank,)) if self.fits(one)]
        played = {one: self.seconds(one) for one in sorted(ones, key=self.estimate_s)[: self.alone_played]}
        return min(played.items(), key=lambda item: item[1], default=(None, inf))

    def rule(self, group: Group) -> list[Shares]:
        return self._dealt(group, bounds(self.rows, (1 / len(group),) * len(group)))

    def starts(self, group: Group) -> list[Shares]:
        """Equal shares and such in proportion to speed; of two members also all rows on the faster one, from
        whom some may move. With trimmed keys also in the opposite order.
        """
        found = list[Shares]()
        for some in [group, group[::-1]] if self.params.causal_trim else [group]:
            speeds = [1 / self.work_s(rank, 0, self.rows, False) for rank in some]
            ways = [[1.0] * len(some), speeds]
            if len(some) == 2:
                ways.append([float(speed == max(speeds)) for speed in speeds])
            for weights in ways:
                ratios = [weight / sum(weights) for weight in weights]
                found += self._dealt(some, bounds(self.rows, ratios))
        return list(dict.fromkeys(found))

    def _dealt(self, group: Group, ends: Sequence[int]) -> list[Shares]:
        """Rows with these bounds, and the KV cache for the member that is wanted to decode, or would end
        soonest; none without the memory, or where the one that is wanted cannot.
        """
        shares = Shares(group, (tuple(stop - start for start, stop in pairwise(ends)),))
        if self.gives_cache:
            decoder = self.wanted if self.wanted in group else min(group, key=self.tokens_s)
            has_cache = tuple(int(rank == decoder) for rank in group)
            shares = Shares(group, (*shares.amounts, has_cache))
        return [shares] if self.fits(shares) else []

    def steps(self) -> tuple[int, ...]:
        return (1, int(self.wanted is None)) if self.gives_cache else (1,)

    def _fits(self, shares: Shares) -> bool:
        if self.caches and self.wanted not in (None, self.decoder(shares)):
            return False
        return all(
            self.need_bytes(*piece) <= self.cluster.devices[piece[0]].usable_bytes
            for piece in self.pieces(shares)
        )

    def pieces(self, shares: Shares) -> list[Piece]:
        """What each member computes of a layer. Where keys are not trimmed, it does not matter which rows."""
        group, (rows, *_), decoder = *shares, self.decoder(shares)
        starts = bounds_of(rows) if self.params.causal_trim else (0,) * len(rows)
        return [
            (rank, start, start + count, rank == decoder)
            for rank, start, count in zip(group, starts, rows, strict=False)
        ]

    def _sized(self, rank: int, start: int, stop: int, fills: bool) -> SizedOp:
        """A member's operation in a layer."""
        trims, x = self.params.causal_trim, hidden(self.model, self.demand.batch, self.rows)
        shard = shard_of(self.model, rank, range(start, stop), self.rows, self.params.order, trims, fills)
        return SizedOp(shard.op(0, "plan" if fills else None), (x,))

    def _need_bytes(self, rank: int, start: int, stop: int, fills: bool) -> float:
        """Weights, the KV cache and the largest working set of a member."""
        model, demand = self.model, self.demand
        layer_bytes, ops = sum(weight_bytes(model, part) for part in layer_slices(0)), list[SizedOp]()
        if start < stop or fills:
            ops.append(self._sized(rank, start, stop, fills))
        if fills:
            layer_bytes += demand.kv_bytes(model, model.num_kv_heads)
            ops += block_ops(model, demand)[1:]
        ends_bytes = 0
        if rank == self.cluster.source_rank:
            ends_bytes = weights_bytes(ends_placement("", self.cluster, model), model, rank)
            ops += end_ops(model, demand)
        return model.num_layers * layer_bytes + ends_bytes + working_bytes(model, ops)

    def _estimate_s(self, shares: Shares) -> float:
        """The layers, the ways from and to the source, and the decoder's tokens."""
        group, (rows, *_), decoder = *shares, self.decoder(shares)
        pieces, further = self.pieces(shares), max(0, self.demand.new_tokens - 1)
        work_s = [self.work_s(*piece) for piece in pieces]
        last_s = max(work_s)
        if self.skips_last:  # of one row, which takes little, and of the KV cache
            last_s = 0.0 if decoder is None else self.work_s(decoder, self.rows, self.rows, True)
        around_s = max(self.around_s(rank, stop > start) for rank, start, stop, _ in pieces)
        pass_s = (self.model.num_layers - 1) * self._layer_s(group, rows, work_s) + last_s + around_s
        if self.recomputes:
            return pass_s * (1 + further) * (self.demand.rows + further / 2) / self.rows
        return pass_s + (0.0 if decoder is None else self.tokens_s(decoder))

    def _layer_s(self, group: Group, rows: Sequence[int], work_s: Sequence[float]) -> float:
        """Seconds of a layer: of its slowest piece, of its fullest link, or half of what two members take in
        turns who wait for each other. A ring has about as many bytes as a direct gather.
        """
        members, gather = range(len(group)), self.params.gather
        if len(group) == 1:
            return work_s[0]
        sizes = {
            (i, j): rows[i] for i, j in permutations(members, 2) if rows[i] and (gather != "causal" or i < j)
        }
        ways = {(i, j): self.way(group[i], group[j]) for i, j in sizes}
        loads_s: defaultdict[tuple[int, bool], float] = defaultdict(float)
        for pair, count in sizes.items():
            for hop, byte_s in ways[pair][1]:
                loads_s[hop] += byte_s * framed_bytes(count * self.row_bytes)
        way_s = {
            pair: besides_s + max(loads_s[hop] for hop, _ in links)
            for pair, (besides_s, links) in ways.items()
        }
        turns_s = (
            (work_s[i] + there_s + work_s[j] + way_s[j, i]) / 2
            for (i, j), there_s in way_s.items()
            if (j, i) in way_s
        )
        return max(*work_s, *loads_s.values(), *turns_s)

    def _work_s(self, rank: int, start: int, stop: int, fills: bool) -> float:
        """Seconds of a piece of a layer."""
        alike = self._first_alike[rank]
        if alike != rank:
            return self.work_s(alike, start, stop, fills)
        if start == stop and not fills:
            return 0.0
        return op_s(self.cluster.devices[rank], self.model, self._sized(rank, start, stop, fills))

    def _around_s(self, rank: int, returns: bool) -> float:
        """Seconds of the rows' way from the source, and of the result's way back if this worker has one."""
        source, back = self.cluster.source_rank, self.row_bytes * (1 if self.skips_last else self.rows)
        there_s = message_s(self.cluster, source, rank, self.rows * self.row_bytes)
        return there_s + (message_s(self.cluster, rank, source, back) if returns else 0.0)

    def _way(self, src: int, dst: int) -> tuple[float, list[tuple[tuple[int, bool], float]]]:
        """What a message costs besides its bytes, and the links, each one way, with seconds for each byte."""
        links = self.cluster.links
        return fixed_s(self.cluster, src, dst), [
            ((hop.link, hop.forward), transfer_s(1, links[hop.link].rate(hop.forward)))
            for hop in self.cluster.path(src, dst)
        ]

    def _tokens_s(self, rank: int) -> float:
        """Seconds of all further tokens, if this worker decodes."""
        cluster, model, source = self.cluster, self.model, self.cluster.source_rank
        ways_s = sum(message_s(cluster, *way, self.row_bytes) for way in ((source, rank), (rank, source)))
        all_s, prompt_s = (
            each(cluster.devices[rank], model, self.demand) for each in (layer_s, prefill_layer_s)
        )
        return model.num_layers * (all_s - prompt_s) + max(0, self.demand.new_tokens - 1) * ways_s
