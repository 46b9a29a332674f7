"""What AdaptLink did in a run: the split it chose, and its coverage over time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import MethodReport, PlanAt, layouts_of
from engine.domain.model import ModelSpec
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s
from engine.domain.values import Count, Fraction, NonNegative, Value
from engine.strategies.adaptlink.coverage import Coverage
from engine.strategies.adaptlink.layout import CommMode, SharesLayout

EVENTS = ("promoted", "copied", "copies_lost")


class Columns(Value):
    """Columns [start, stop) of every split feed-forward part, on `device`."""

    device: str
    start: Count
    stop: Count


class CoverageAt(Value):
    """The cover of columns from `time_s` on: `serving` compute and `copies` could take over; `uncovered` are
    columns [start, stop) that nobody could. `coverage` is the share of the secondaries' columns that have a
    copy.
    """

    time_s: NonNegative
    event: Literal["planned", "promoted", "copied", "copies_lost"]
    epoch: Count
    coverage: Fraction
    uncovered: tuple[tuple[Count, Count], ...]
    serving: tuple[Columns, ...]
    copies: tuple[Columns, ...]


class SharesReport(MethodReport):
    """What AdaptLink did in a run. `primary_share` is the part of every split layer that the primary keeps.
    `uncovered_s` is the time in which some columns had no copy, of `total_s`.
    """

    kind: Literal["shares"] = "shares"
    comm_mode: CommMode
    primary: str
    primary_share: Fraction
    num_split: Count
    num_layers: Count
    secondaries: tuple[str, ...]
    moved_heads: Count
    coverage: tuple[CoverageAt, ...]
    uncovered_s: NonNegative
    total_s: NonNegative

    def lines(self) -> tuple[str, ...]:
        rule = {
            "exact": "chosen by the predicted request",
            "eq5": "chosen by the paper's equation 5",
            "none": "nothing is split, as asked",
        }[self.comm_mode]
        if not self.num_split:
            return (f"{self.primary} computes all {self.num_layers} layers ({rule}).",)
        split = (
            f"{self.primary} shares {self.num_split} of {self.num_layers} layers with "
            f"{', '.join(self.secondaries)} and keeps {self.primary_share:.1%} of their columns ({rule})."
        )
        heads = (
            (f"{self.moved_heads} attention heads moved with their KV cache.",) if self.moved_heads else ()
        )
        first, last = self.coverage[0], self.coverage[-1]
        changed = f", at the end {last.coverage:.1%} ({last.event})" if len(self.coverage) > 1 else ""
        covered = (
            f"Backups: {first.coverage:.1%} of the secondaries' columns had a copy at first{changed}; "
            f"for {human_s(self.uncovered_s)} of {human_s(self.total_s)} some had none."
        )
        return (split, *heads, covered)


def shares_report(
    cluster: ClusterSpec, model: ModelSpec, plans: Sequence[PlanAt], trace: Sequence[Span | Mark]
) -> SharesReport:
    """The last plan's split, and the coverage of all plans and events in order of time."""
    layouts = list(layouts_of(plans, SharesLayout))
    last = layouts[-1][1]
    steps = sorted(
        [*(_planned(cluster, *one) for one in layouts), *_events(cluster, trace)], key=lambda one: one.time_s
    )
    total_s = max((item.end_s for item in trace if isinstance(item, Span)), default=0.0)
    ends = [*(one.time_s for one in steps[1:]), total_s]
    uncovered_s = sum(
        max(0.0, end_s - one.time_s) for one, end_s in zip(steps, ends, strict=True) if one.uncovered
    )
    return SharesReport(
        comm_mode=last.comm_mode,
        primary=cluster.devices[last.primary].name,
        primary_share=last.shards[0].stop / model.intermediate_size,
        num_split=len(last.split_layers),
        num_layers=model.num_layers,
        secondaries=tuple(cluster.devices[shard.device].name for shard in last.shards[1:]),
        moved_heads=sum(share.stop - share.start for share in last.heads),
        coverage=tuple(steps),
        uncovered_s=uncovered_s,
        total_s=total_s,
    )


def _planned(cluster: ClusterSpec, time_s: float, layout: SharesLayout) -> CoverageAt:
    coverage = Coverage(layout)
    return CoverageAt(
        time_s=time_s,
        event="planned",
        epoch=coverage.epoch,
        coverage=coverage.fraction(),
        uncovered=tuple(coverage.uncovered()),
        serving=_named(cluster, coverage.pieces),
        copies=_named(cluster, sorted(coverage.copies)),
    )


def _events(cluster: ClusterSpec, trace: Sequence[Span | Mark]) -> list[CoverageAt]:
    """The marks that the primary wrote when coverage changed; those of earlier versions lack the facts."""
    return [
        CoverageAt(
            time_s=mark.time_s,
            event=mark.name,
            epoch=mark.facts["epoch"],
            coverage=mark.facts["coverage"],
            uncovered=tuple((start, stop) for start, stop in mark.facts["uncovered"]),
            serving=_named(cluster, mark.facts["serving"]),
            copies=_named(cluster, mark.facts["copies"]),
        )
        for mark in trace
        if isinstance(mark, Mark) and mark.name in EVENTS and "coverage" in mark.facts
    ]


def _named(cluster: ClusterSpec, pieces: Sequence[Sequence[int]]) -> tuple[Columns, ...]:
    return tuple(
        Columns(device=cluster.devices[rank].name, start=start, stop=stop) for rank, start, stop in pieces
    )
