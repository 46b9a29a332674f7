"""The state of one real run while it goes on: plan, conditions, trace, clock, outcome.

The supervisor makes it; changes, failure detection and recovery read and update it. It starts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.conditions import Conditions, absent_at_start
from engine.domain.events import Event
from engine.domain.plan import Plan
from engine.domain.report import Outcome
from engine.domain.scenario import Change
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request
from engine.worlds.common.device import takes_part

Pairs = frozenset[tuple[int, int]]
"""Pairs of ranks: (sender, receiver)."""


class ActiveRun:
    """One real run. Times that end in `wall_s` are of `clock`, others virtual seconds since the start.

    `pairs` are the devices that send to each other under the current plan. `emit` takes every event;
    `annotate` may add facts to a mark. `joining`: devices that have joined and that no plan uses yet;
    `applied`: the changes so far; `frozen`: devices that a change has stopped; `away`: devices that are
    absent, dropped or failed.
    """

    def __init__(
        self,
        spec: RunSpec,
        plan: Plan,
        requests: tuple[Request, ...],
        dilation: float,
        pairs: Pairs,
        emit: Callable[[Event], None],
        annotate: Callable[[Mark], Mark] = lambda mark: mark,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.spec, self.plan, self.requests = spec, plan, requests
        self.dilation, self.pairs = dilation, pairs
        self.emit, self.annotate, self.clock = emit, annotate, clock
        self.conditions = Conditions(spec.cluster, absent_at_start(spec.cluster, spec.scenario))
        self.trace: list[Span | Mark] = []
        self.outcome: Outcome | None = None
        self.start_wall_s: float | None = None
        self.applied: list[Change] = []
        self.joining: set[int] = set()
        self.frozen: set[int] = set()
        self.away: set[int] = set(self.conditions.failed)

    @property
    def cluster(self) -> ClusterSpec:
        """The cluster as it was drawn; `conditions.cluster` is the cluster as it is now."""
        return self.spec.cluster

    @property
    def started(self) -> bool:
        return self.start_wall_s is not None

    @property
    def now_s(self) -> float:
        """Virtual seconds since the start, 0 before it."""
        if self.start_wall_s is None:
            return 0.0
        return max(0.0, (self.clock() - self.start_wall_s) / self.dilation)

    def wall_of(self, virtual_s: float) -> float:
        """The wall time of a virtual time; the run must have started."""
        assert self.start_wall_s is not None, "the run has not started"
        return self.start_wall_s + virtual_s * self.dilation

    def record(self, item: Span | Mark) -> None:
        """Add `item` to the trace and emit it."""
        if isinstance(item, Mark):
            item = self.annotate(item)
        self.trace.append(item)
        self.emit(item)

    def end(self, kind: Any, sentence: str, device: str = "", time_s: float | None = None) -> None:
        """End the run with an outcome, unless it has one already."""
        if self.outcome is None:
            time_s = self.now_s if time_s is None else time_s
            self.outcome = Outcome(kind=kind, sentence=sentence, device=device, time_s=time_s)

    def needed_ranks(self) -> set[int]:
        """The present devices that the plan uses, or that send or receive messages."""
        present = set(range(len(self.cluster.devices))) - self.conditions.failed
        return {rank for rank in present if self.is_needed(rank)}

    def is_needed(self, rank: int) -> bool:
        """Whether the plan uses device `rank`. One without weights may still have to pass messages on."""
        talks = any(rank in pair for pair in self.pairs)
        return talks or takes_part(self.cluster, self.plan, rank)
