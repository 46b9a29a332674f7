"""Find the group and the shares with which Galaxy answers a request soonest. Pure.

The search is that of all methods that split layers (`planner/split.py`). A layer over the prompt takes what
`time.py` says. In every further token the first member has the single row: it gets the others' sums, adds
them up and sends the row to all, twice per layer.
"""

from __future__ import annotations

import contextlib
from functools import cache
from itertools import pairwise

import numpy as np

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.ops.core import Norm
from engine.ops.tensors import payload_bytes
from engine.program.frames import framed_bytes
from engine.strategies.galaxy.plan import (
    Choice,
    GalaxyLayout,
    RowShares,
    Task,
    bounds_in,
    exact_shares,
    need_bytes_of,
    plan_with,
    task_of,
)
from engine.strategies.galaxy.time import layer_of_prompt_s
from engine.strategies.planner.groups import Group
from engine.strategies.planner.split import SplitSearch
from engine.strategies.planner.split_time import SplitTime
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.messages import message_s
from engine.strategies.shared.shares import largest_remainder, op_s
from engine.strategies.shared.tensor_parallel import Bounds


def best_galaxy_plan(
    name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand, overlap: bool, row_shares: RowShares
) -> Plan[GalaxyLayout] | None:
    """The plan with the shortest predicted request; None if no group has the memory."""
    search = GalaxySearch(GalaxyTime(name, cluster, model, demand, overlap, row_shares))
    for bounds in search.candidates():
        task = search.time.task(bounds.group)
        with contextlib.suppress(PlanError):
            return plan_with(name, task, overlap, search.time.choice(bounds))
    return None


class GalaxyTime(SplitTime):
    """Times of one run on any group and shares."""

    def __init__(
        self,
        name: str,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        overlap: bool,
        row_shares: RowShares,
    ):
        super().__init__(cluster, model, demand)
        self.name, self.overlap, self.row_shares = name, overlap, row_shares
        self.task = cache(self._task)

    def request_s(self, bounds: Bounds) -> float:
        prompt_s = self.model.num_layers * self.choice(bounds).layer_s
        return prompt_s + self._around_s(bounds) + self._tokens_s(bounds)

    def choice(self, bounds: Bounds) -> Choice:
        """The heads and columns in `bounds` with the division of rows that has the faster layer over the
        prompt.
        """
        task = self.task(bounds.group)
        ways = []
        for weights in self.row_weights(task):
            sizes = largest_remainder(self.demand.rows, weights)
            layer_s = layer_of_prompt_s(self.cluster, self.model, self.demand, bounds, sizes, task.tiles)
            ways.append(Choice(bounds, weights, "best", layer_s))
        return min(ways, key=lambda choice: choice.layer_s)

    def row_weights(self, task: Task) -> list[tuple[float, ...]]:
        ways = {"equal": (1.0,) * len(task.group), "proportional": task.capacities}
        return [*ways.values()] if self.row_shares == "best" else [ways[self.row_shares]]

    def _task(self, group: Group) -> Task:
        return task_of(self.name, self.cluster, self.model, self.demand, self.overlap, group)

    def _around_s(self, bounds: Bounds) -> float:
        """The way of the prompt's rows to the members, and of the result back."""
        x = hidden(self.model, self.demand.batch, 1 if self.demand.generates else self.demand.rows)
        source = self.cluster.source_rank
        back_s = message_s(self.cluster, bounds.group[-1], source, payload_bytes(x))
        return float(self._input_s(bounds.group, 0).max()) + back_s

    def _norm_s(self, rank: int) -> float:
        """Seconds of the norm of a single row, which is a pre-norm family's own operation."""
        x = hidden(self.model, self.demand.batch, 1)
        own = self.model.norm_position == "pre"
        return op_s(self.cluster.devices[rank], self.model, SizedOp(Norm(0, "ffn"), (x,))) if own else 0.0

    def _tokens_s(self, bounds: Bounds) -> float:
        """Seconds of all further tokens."""
        if len(self.phases) < 2:
            return 0.0
        group, first, source = bounds.group, bounds.group[0], self.cluster.source_rank
        row_bytes = payload_bytes(hidden(self.model, self.demand.batch, 1))
        exchange, size = self._exchange(group), len(group)
        up, down = np.zeros((size, size), dtype=bool), np.zeros((size, size), dtype=bool)
        up[1:, 0], down[0, 1:] = True, True
        sent_bytes, free_s = np.full(size, framed_bytes(row_bytes)), np.zeros(len(exchange.rate))
        heads, columns = (zip(group, pairwise(cuts), strict=True) for cuts in (bounds.heads, bounds.columns))
        parts = [
            np.array([self._heads_s(rank, start, stop, 1) for rank, (start, stop) in heads]),
            np.array([self.part_s(rank, "columns", stop - start, 1) for rank, (start, stop) in columns]),
        ]
        rest_s = self.part_s(first, "residual", 0, 1) + self._norm_s(first)
        ready_s = self._input_s(group, 1)
        before_s = ready_s
        for _ in range(2):
            before_s = ready_s
            for part_s in parts:
                computed_s = ready_s + part_s
                if size == 1:
                    ready_s = computed_s + rest_s
                    continue
                arrived_s, _ = exchange.arrivals_s(computed_s, sent_bytes, up, free_s)
                add_s = self.part_s(first, "add", 0, 1)
                summed_s = max(arrived_s[0] + add_s, computed_s[0] + (size - 1) * add_s) + rest_s
                given_s, _ = exchange.arrivals_s(np.full(size, summed_s), sent_bytes, down, free_s)
                ready_s = np.where(np.arange(size) == 0, summed_s, given_s)
        more_s = (self.model.num_layers - 2) * float((ready_s - before_s).max())
        token_s = float(ready_s[0]) + more_s + message_s(self.cluster, first, source, row_bytes)
        return self.phases[1].times * token_s


class GalaxySearch(SplitSearch):
    """Searches groups and shares for Galaxy. Heads go in whole KV groups."""

    time: GalaxyTime

    def head_unit(self, group: Group) -> int:
        return self.model.group_size

    def exact(self, group: Group) -> list[Bounds]:
        task, later = self.time.task(group), len(self.time.phases) - 1
        further = self.demand.new_tokens - 1

        def heads_s(i: int, count: int) -> float:
            return further * self.time.part_s(group[i], "heads", count, 1) if later else 0.0

        def columns_s(i: int, count: int) -> float:
            return further * self.time.part_s(group[i], "columns", count, 1) if later else 0.0

        found = []
        for weights in self.time.row_weights(task):
            sizes = largest_remainder(self.demand.rows, weights)
            shares = exact_shares(task, sizes, need_bytes_of(task, sizes), heads_s, columns_s)
            if shares is not None:
                found.append(bounds_in(task, shares))
        return found
