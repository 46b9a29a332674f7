"""What Galaxy did: each device's heads, columns and rows, and which planner chose them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import MethodReport, PlanAt, layouts_of
from engine.domain.units import human_s
from engine.domain.values import Count, NonNegative, Value
from engine.strategies.galaxy.plan import GalaxyLayout, PlannedBy

CHOSEN: dict[PlannedBy, str] = {
    "exact": "chosen by the planner exact",
    "balance": "chosen by the planner balance",
    "best": "with the shortest predicted request",
    "by_hand": "made by hand",
}


class Member(Value):
    """One device's share of every layer, and its rows of the prompt between the parts."""

    device: str
    heads: Count
    columns: Count
    rows: Count


class GalaxyShares(Value):
    """One plan. `layer_s` is the predicted time of a layer over the prompt."""

    time_s: NonNegative
    planner: PlannedBy
    members: tuple[Member, ...]
    overlap: bool
    layer_s: NonNegative


class GalaxyReport(MethodReport):
    """The plans of a run in order."""

    kind: Literal["galaxy"] = "galaxy"
    plans: tuple[GalaxyShares, ...]

    @classmethod
    def of(cls, cluster: ClusterSpec, plans: Sequence[PlanAt]) -> GalaxyReport:
        return cls(plans=tuple(_shares(cluster, *one) for one in layouts_of(plans, GalaxyLayout)))

    def lines(self) -> tuple[str, ...]:
        return tuple(line for plan in self.plans for line in _lines(plan))


def _shares(cluster: ClusterSpec, time_s: float, layout: GalaxyLayout) -> GalaxyShares:
    def part(bounds: Sequence[int], i: int) -> int:
        return bounds[i + 1] - bounds[i]

    return GalaxyShares(
        time_s=time_s,
        planner=layout.planner,
        members=tuple(
            Member(
                device=cluster.devices[rank].name,
                heads=part(layout.heads, i),
                columns=part(layout.columns, i),
                rows=part(layout.rows, i),
            )
            for i, rank in enumerate(layout.group)
        ),
        overlap=layout.overlap,
        layer_s=layout.predicted_layer_s.tiles if layout.overlap else layout.predicted_layer_s.whole,
    )


def _lines(plan: GalaxyShares) -> tuple[str, str]:
    shares = "; ".join(
        f"{m.device} {_of(m.heads, 'head')}, {_of(m.columns, 'column')}, {_of(m.rows, 'row')}"
        for m in plan.members
    )
    how = "in tiles beside the transfers" if plan.overlap else "after the transfers"
    return (
        f"Shares from {human_s(plan.time_s)} on, {CHOSEN[plan.planner]}: {shares}.",
        f"A layer over the prompt takes {human_s(plan.layer_s)}, its products {how}.",
    )


def _of(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
