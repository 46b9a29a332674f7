"""What expert parallelism did: how much of the routers' choices fell on each device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import MethodReport, PlanAt, layouts_of
from engine.domain.trace import Mark, Span
from engine.domain.values import Count, Value
from engine.strategies.expert_parallel.choices import calls_of, load_of
from engine.strategies.expert_parallel.plan import ExpertsLayout

USED = "experts_used"
"""The host marks after each step the `pairs` of a row and an expert so far, by member of `group` (ranks)."""


class DeviceUse(Value):
    """A device with `experts` of every layer, and the pairs of a row and an expert that it computed."""

    device: str
    experts: Count
    pairs: Count


class ExpertsReport(MethodReport):
    """The use of the last plan of a run."""

    kind: Literal["expert_parallel"] = "expert_parallel"
    host: str
    devices: tuple[DeviceUse, ...]
    likely_experts: Count = Field(
        default=0,
        description="Even choices among so many experts of a layer would have asked as many different ones "
        "as the routers did; 0: no several rows went through a layer together.",
    )

    load: tuple[Count, ...] = Field(
        default=(), description="How often rows chose each expert, all layers together."
    )

    @classmethod
    def of(
        cls, cluster: ClusterSpec, plans: Sequence[PlanAt], trace: Sequence[Span | Mark]
    ) -> ExpertsReport | None:
        *_, (since_s, layout) = layouts_of(plans, ExpertsLayout)
        marks = [
            item
            for item in trace
            if isinstance(item, Mark)
            and item.name == USED
            and item.time_s >= since_s
            and tuple(item.facts["group"]) == layout.group  # a device may hear late of a new plan
        ]
        last = max(marks, key=lambda one: one.time_s, default=None)
        if last is None:
            return None
        counts = [stop - start for start, stop in zip(layout.experts, layout.experts[1:], strict=False)]
        uses = zip(layout.group, counts, last.facts["pairs"], strict=True)
        return cls(
            host=cluster.devices[layout.host].name,
            devices=tuple(
                DeviceUse(device=cluster.devices[rank].name, experts=count, pairs=pairs)
                for rank, count, pairs in uses
            ),
            likely_experts=likely_experts(trace, layout.experts[-1]),
            load=expert_load(trace, layout.experts[-1]),
        )

    def lines(self) -> tuple[str, ...]:
        total = max(1, sum(one.pairs for one in self.devices))
        shares = ", ".join(
            f"{one.device} {one.experts} experts, {one.pairs / total:.0%} of the work" for one in self.devices
        )
        found = self.likely_experts
        chose = f" Rows chose as if evenly among {found} of them (--likely-experts {found})." if found else ""
        most = max(self.load, default=0) * len(self.load) / max(1, sum(self.load))
        if most:
            chose += f" The most chosen expert had {most:.2g} times the rows of the mean."
        return (f"Experts of every layer: {shares}.{chose}",)


def expert_load(trace: Sequence[Span | Mark], num_experts: int) -> tuple[int, ...]:
    """How often the rows of a trace chose each expert; empty where its decisions do not say."""
    total: Counter[int] = Counter()
    for item in trace:
        if isinstance(item, Mark) and item.name == "decided":
            total.update(load_of(item.facts["answer"]))
    return tuple(total[expert] for expert in range(num_experts)) if total else ()


def likely_experts(trace: Sequence[Span | Mark], num_experts: int) -> int:
    """Among how many of `num_experts` the rows of a trace would have to choose evenly and independently for
    as many different experts as its decisions say; 0 where each was of one row.
    """
    calls: Counter[tuple[int, int]] = Counter()
    asked = 0
    for item in trace:
        if isinstance(item, Mark) and item.name == "decided":
            answer = calls_of(item.facts["answer"])
            rows = len({row for call in answer for row in call.rows})
            if rows > 1:
                calls[rows, sum(call.pairs for call in answer) // rows] += 1
                asked += sum(call.chosen for call in answer)
    if not calls:
        return 0

    def missed(among: int) -> float:
        expected = sum(
            count * among * (1 - (1 - each / among) ** rows) for (rows, each), count in calls.items()
        )
        return abs(expected - asked)

    return min(range(max(each for _, each in calls), num_experts + 1), key=missed)
