"""Choose the workers that compute in Voltage and their shares of the positions, by the predicted time. Pure.

Hu, Li (ICDCS 2024), section V: any shares are possible, and the paper gives no rule for them; its evaluation
uses even ones. `planner=best` minimises the time of the whole request, compute and exchanges together
(`voltage/time.py`): no device need compute, so the result is never predicted slower than even shares or one
device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise, permutations
from math import inf
from typing import NamedTuple

import numpy as np

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.core import Block
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import payload_bytes
from engine.strategies.planner.groups import Group, best_groups
from engine.strategies.planner.order import nearest_first
from engine.strategies.shared.demand import Demand, SizedOp, block_ops, hidden, working_bytes
from engine.strategies.shared.ends import end_holdings, layer_slices
from engine.strategies.shared.messages import message_s
from engine.strategies.shared.shares import layer_s, op_s, prefill_layer_s
from engine.strategies.voltage.layout import PositionsLayout
from engine.strategies.voltage.partition import last_layer, shard_time, shards_for
from engine.strategies.voltage.positions import PositionShard, bounds, search, shard_of
from engine.strategies.voltage.time import PassTime

CLIMBED = 4
"""How many of the best groups are improved by moving rows, judged by a layer with its exchange."""
FEW_DEVICES = 8
"""The most devices among which divisions are refined."""
REFINED = 2
"""How many of the best divisions are improved further, by moves of at most `LARGEST_STEP` rows."""
LARGEST_STEP = 4


class Division(NamedTuple):
    """A way to divide the positions: `ratios` for the workers `devices` (ranks), and who decodes with a KV
    cache.
    """

    devices: tuple[int, ...]
    ratios: tuple[float, ...]
    owner: int | None


class Chooser:
    """Predicts and chooses divisions. `options` is a layout without devices. `must` is the decode owner that
    is wanted, None for any.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        options: PositionsLayout,
        must: int | None,
    ):
        self.cluster, self.model, self.demand = cluster, model, demand
        self.options, self.must = options, must
        self._known_s: dict[Division, float] = {}
        self._times: dict[tuple[tuple[int, ...], int | None], PassTime] = {}

    def even(self, devices: Sequence[int]) -> Division:
        return self._division(devices, (1 / len(devices),) * len(devices))

    def given(self, devices: Sequence[int], ratios: Sequence[float]) -> Division:
        """The division with the given shares, whatever they cost."""
        return self._division(devices, ratios)

    def proportional(self, devices: Sequence[int]) -> Division:
        speeds = [1 / self._layer_s[rank] for rank in devices]
        return self._division(devices, [speed / sum(speeds) for speed in speeds])

    def alone(self) -> Division:
        """The one device with enough memory that computes everything soonest."""
        ranks = self._order if self.must is None else (self.must,)
        working = working_bytes(self.model, block_ops(self.model, self.demand))
        able = [rank for rank in ranks if self._room_bytes[rank] >= working] or ranks
        return self.faster(*(self.even([rank]) for rank in able))

    def searched(self) -> list[Division]:
        """Divisions, the fastest first: of the best groups, from even and proportional shares on, and of
        every device alone. Workers without memory for all layers are left out.
        """
        able = [rank for rank in self._order if self._room_bytes[rank] > 0]
        ranks = self._fastest_first(able or self._order)
        groups = best_groups(ranks, self._group_s, self._order)
        found = []
        ways = groups[:CLIMBED]
        if self.options.causal_trim:  # later devices have more keys
            ways = [*ways, *(group[::-1] for group in ways if len(group) > 1)]
        for group in ways:
            start = self.faster(self.even(group), self.proportional(group))
            found.append(self.faster(start, self._climbed(start)) if len(group) > 1 else start)
        found.sort(key=self.request_s)
        refined = [self._refined(one) for one in found[:REFINED] if len(one.devices) <= FEW_DEVICES]
        alone = [self.even([rank]) for rank in ranks if self.must in (None, rank)]
        all_found = (self.alone(), *refined, *found, *alone)
        return sorted((one for one in all_found if one.owner in (None, *one.devices)), key=self.request_s)

    def _group_s(self, group: Group) -> float:
        """Seconds of a request by these devices, the one that must decode among them."""
        if self.must not in (None, *group):
            return inf
        return min(self.request_s(self.even(group)), self.request_s(self.proportional(group)))

    def faster(self, *divisions: Division) -> Division:
        """The one with the shortest predicted request; the first of equals."""
        return min(divisions, key=self.request_s)

    def request_s(self, division: Division) -> float:
        """Seconds of a request: the prompt and all further tokens."""
        if division not in self._known_s:
            self._known_s[division] = self._request_s(division)
        return self._known_s[division]

    def _request_s(self, division: Division) -> float:
        _, _, owner = division
        layout = self.options.model_copy(update=division._asdict())
        time = self._time_of(division)
        rows, more = self.demand.rows, max(0, self.demand.new_tokens - 1)

        def pass_of(rows: int) -> float:
            shards = shards_for(self.model, layout, rows)
            return time.pass_s(shards, last_layer(self.model, layout, shards))

        first_s = pass_of(rows)
        if not more:
            return first_s
        if owner is None:
            return first_s + more * pass_of((rows + self.demand.cached_rows + 1) // 2)
        return first_s + more * self._token_s(owner)

    def _division(self, devices: Sequence[int], ratios: Sequence[float]) -> Division:
        return Division(tuple(devices), tuple(ratios), self._owner_of(devices, ratios))

    def _owner_of(self, devices: Sequence[int], ratios: Sequence[float]) -> int | None:
        """The worker that decodes with a KV cache; with trimmed keys the one that has the last rows."""
        if not self.demand.generates or self.options.decode == "recompute":
            return None
        if not self.options.causal_trim:
            return self.must if self.must is not None else self._fastest_first(devices)[0]
        ends = bounds(self.demand.rows, ratios)
        return devices[max(i for i in range(len(ratios)) if ends[i] < ends[i + 1])]

    def _climbed(self, start: Division) -> Division:
        """The best division that single moves lead to from `start`, by the time of a layer with
        its exchange.
        """
        devices, rows = start.devices, self.demand.rows
        time = self._time_of(start)
        specs = [self.cluster.devices[rank] for rank in devices]
        rooms = [self._room_bytes[rank] for rank in devices]
        trims, fills = self.options.causal_trim, start.owner is not None

        def shard(index: int, first: int, stop: int) -> PositionShard:
            # with trimmed keys only the device with the last rows has all keys, so it must fill the KV cache
            owns = fills and (stop == rows if trims else devices[index] == start.owner)
            return shard_of(
                self.model, devices[index], range(first, stop), rows, self.options.order, trims, owns
            )

        seconds = shard_time(self.model, specs, self.demand.batch, rows, shard, rooms)
        links_s = np.zeros(len(time.all.rate))

        def cost(sizes: Sequence[int], layer_s: Sequence[float]) -> tuple[float, ...]:
            if inf in layer_s:
                return (inf, *sorted(layer_s, reverse=True))
            now = np.array(sizes, dtype=float)
            ready_s, busy_s = time.gathered_s(np.array(layer_s), now, links_s)
            both = np.array(layer_s) + time.sending_s(now)
            return (float(max(ready_s.max(), busy_s.max())), *sorted(both.tolist(), reverse=True))

        ends = search(rows, bounds(rows, start.ratios), seconds, cost=cost)
        return self._division(devices, [(stop - first) / rows for first, stop in pairwise(ends)])

    def _refined(self, best: Division) -> Division:
        """The best division that moves of a few rows lead to from `best`, by the time of the
        whole request.
        """
        devices, step = best.devices, LARGEST_STEP
        while step:
            moved = [self._moved(best, i, j, step) for i, j in permutations(range(len(devices)), 2)]
            better = self.faster(best, *(one for one in moved if one is not None))
            if better == best:
                step //= 2
            best = better
        return best

    def _moved(self, division: Division, giver: int, taker: int, step: int) -> Division | None:
        """`division` with `step` rows of device index `giver` for `taker`; None if it has fewer."""
        rows = self.demand.rows
        sizes = [stop - first for first, stop in pairwise(bounds(rows, division.ratios))]
        if sizes[giver] < step:
            return None
        sizes[giver] -= step
        sizes[taker] += step
        return self._division(division.devices, [size / rows for size in sizes])

    def _time_of(self, division: Division) -> PassTime:
        devices, _, owner = division
        if (devices, owner) not in self._times:
            self._times[devices, owner] = PassTime(
                self.cluster, self.model, self.demand.batch, devices, self.options.gather, owner
            )
        return self._times[devices, owner]

    def _token_s(self, owner: int) -> float:
        """Seconds of a decode step of `owner`, with the way of its row from the source and back."""
        cluster, source = self.cluster, self.cluster.source_rank
        x = hidden(self.model, self.demand.batch, 1)
        middle = (self.demand.rows + self.demand.cached_rows) // 2
        token_s = self.model.num_layers * op_s(
            cluster.devices[owner], self.model, SizedOp(Block(0, "plan"), (x,), middle)
        )
        for src, dst in ((source, owner), (owner, source)) if owner != source else ():
            token_s += message_s(cluster, src, dst, payload_bytes(x))
        return token_s

    def _fastest_first(self, ranks: Sequence[int]) -> list[int]:
        """`ranks` by the time of a layer: of its prompt and tokens if one device generates, else of the
        prompt.
        """
        generates = self.demand.generates and self.options.decode != "recompute"
        times_s = self._worker_s if generates else self._layer_s
        return sorted(ranks, key=lambda rank: (times_s[rank], self._order.index(rank)))

    @cached_property
    def _order(self) -> Group:
        return nearest_first(self.cluster, self.model, self.demand)

    @cached_property
    def _layer_s(self) -> dict[int, float]:
        """Seconds of a layer over the prompt, by rank."""
        return {
            rank: prefill_layer_s(self.cluster.devices[rank], self.model, self.demand)
            for rank in self.cluster.workers
        }

    @cached_property
    def _worker_s(self) -> dict[int, float]:
        """Seconds of a layer over the prompt and in all further tokens, by rank."""
        return {
            rank: layer_s(self.cluster.devices[rank], self.model, self.demand)
            for rank in self.cluster.workers
        }

    @cached_property
    def _room_bytes(self) -> dict[int, float]:
        """Memory of each worker besides all layers, their KV cache, and the ends if it is the source.
        Negative if it cannot hold them.
        """
        model, demand = self.model, self.demand
        layer_bytes = sum(weight_bytes(model, piece) for piece in layer_slices(0))
        if self.options.decode != "recompute":
            layer_bytes += demand.kv_bytes(model, model.num_kv_heads)
        ends = sum(weight_bytes(model, one.slice) for one in end_holdings(self.cluster, model))
        return {
            rank: self.cluster.devices[rank].usable_bytes
            - model.num_layers * layer_bytes
            - (ends if rank == self.cluster.source_rank else 0)
            for rank in self.cluster.workers
        }
