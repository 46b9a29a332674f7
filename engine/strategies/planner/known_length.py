"""Plans where the length of answers is known: who knows it is not worse off than who assumes another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Layout, Plan
from engine.domain.workload import Workload
from engine.planning.judge import Judge
from engine.program.strategy import Strategy
from engine.strategies.shared.demand import Demand, demand_of

LayoutT = TypeVar("LayoutT", bound=Layout)

MOST_LAYERS = 2_000
"""A run that computes more layers, over all tokens and requests, is not played: of 160 tokens and
80 layers LIME took 37 s in place of 15, prediction included.
"""
FEW = 3
"""Lengths that are tried for a longer run, of a method whose runs are quickly played."""


def best_of_lengths(
    method: Strategy,
    cluster: ClusterSpec,
    model: ModelSpec,
    workload: Workload,
    plan: Plan[LayoutT],
    plan_for: Callable[[Workload], Plan[LayoutT]],
    number: int,
    most_layers: int = MOST_LAYERS,
) -> Plan[LayoutT]:
    """`plan`, which is that for `workload`; where plans know how long answers become, the one of it and of
    those for `number` other assumed lengths whose run ends first. Each is played to its last token, because
    weights that stream from some length on cost nothing before it; a run of more than `most_layers` is not,
    and of one of more than `MOST_LAYERS` only `FEW` lengths are tried.
    """
    demand = demand_of(model, workload, method.batches_bursts)
    if demand.true is not demand or not demand.generates:
        return plan
    layers = model.num_layers * demand.new_tokens * demand.sequences
    if layers > most_layers:
        return plan
    plans = [plan]
    for length in _lengths(model, demand, number if layers <= MOST_LAYERS else FEW):
        with suppress(PlanError):
            other = plan_for(workload.model_copy(update={"assumed_tokens": length}))
            if other not in plans:
                plans.append(other)
    if len(plans) == 1:
        return plan
    sizes = (demand.rows, demand.new_tokens, demand.sequences)
    return min(plans, key=Judge(method, cluster, model, *sizes, alike=False).whole_s)


def _lengths(model: ModelSpec, demand: Demand, number: int) -> Iterator[int]:
    """About `number` lengths: from the shortest answer to the true one, and the longest that there is."""
    step = max(1, -(-(demand.cached_rows - demand.rows) // max(1, number - 1)))
    yield from range(demand.rows + 1, demand.cached_rows, step)
    yield model.max_positions
