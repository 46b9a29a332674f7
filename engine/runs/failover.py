"""Continue a real run after a device has failed or joined: halt, plan again, connect, start. A strategy may
continue by itself after a failure. If a program did not, or if a device has joined, all programs are halted
and a new plan covers what is left to do (`replan.py`). A further failure restarts this sequence.
"""

from __future__ import annotations

import signal
from collections.abc import Collection
from typing import Protocol

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import RunError
from engine.domain.plan import Plan
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request
from engine.models.inputs.prompts import requests_of
from engine.runs.active_run import ActiveRun, Pairs
from engine.runs.failures import FailureDetector
from engine.runs.pool import DevicePool
from engine.runs.predict import Prepared, outcome_of, simulate
from engine.runs.replan import recover
from engine.strategies.registry import strategy

RESTART_LEAD_S = 0.02
"""Wall seconds between the order to start and the start."""

FEW_TOKENS = 2
"""The number of tokens to simulate to find which devices send to which: the prompt's, and one that is fed
back.
"""


class Collect(Protocol):
    """Waits until devices (all, or `ranks`) report `state`. False if one fails meanwhile or the run ends."""

    def __call__(self, state: str, ranks: Collection[int] | None = None) -> bool: ...


class Failover:
    """Makes new plans for one run, and starts them."""

    def __init__(self, run: ActiveRun, pool: DevicePool, failures: FailureDetector, collect: Collect):
        self.run, self.pool, self.failures, self._collect = run, pool, failures, collect
        self.epoch = 0

    def act(self) -> None:
        """Plan again if a program is stuck, or if the processes of all devices that join are there."""
        run, joining = self.run, self.run.joining
        has_joined = bool(joining) and not self.pool.with_state("forked", joining)
        if run.outcome is not None or not (has_joined or self.pool.with_state("stuck")):
            return
        if has_joined:
            names = ", ".join(run.cluster.devices[rank].name for rank in sorted(joining))
            self.failures.reason = f"{names} joined at {run.now_s:.3f} s."
            for rank in joining:
                run.conditions.join(rank)
            joining.clear()
        while run.outcome is None and not self._go_on():
            continue  # another device has failed meanwhile

    def _go_on(self) -> bool:
        """Halt, plan, connect, start. False if a further failure, or the end of the run, came between."""
        run, pool = self.run, self.pool
        pool.halt()
        while not self._collect("halted"):
            if run.outcome is not None:
                return False
        try:
            requests = recover(run.spec, run.requests, _RealRun(run), Exception(self.failures.reason))
        except RunError as error:
            run.outcome = outcome_of(error)
            return False
        if not requests and not run.spec.workload.is_open:  # the last token was emitted before the failure
            for child in pool.children.values():
                child.state = "finished"
            return True
        self.epoch += 1
        unused = run.needed_ranks() - pool.children.keys()  # devices that no plan has used so far
        for rank in unused:
            pool.fork_empty(rank, run.plan, run.applied)
            if rank in run.frozen:
                pool.signal(rank, signal.SIGSTOP)
        if not self._collect("listening", unused):
            return False
        pool.connect(
            run.pairs,
            type="resume",
            plan=run.plan.model_dump(mode="json"),
            epoch=self.epoch,
            lost=sorted(run.conditions.failed),
            requests=[request.model_dump(mode="json") for request in requests],
        )
        if not self._collect("ready"):
            return False
        assert run.start_wall_s is not None, "only a run that has started can continue"
        pool.start(run.start_wall_s, run.dilation, run.clock() + RESTART_LEAD_S)
        return True


class _RealRun:
    """An active run as `recover` needs it."""

    def __init__(self, run: ActiveRun):
        self.run = run

    @property
    def plan(self) -> Plan:
        return self.run.plan

    @property
    def cluster_now(self) -> ClusterSpec:
        return self.run.conditions.cluster

    @property
    def trace(self) -> list[Span | Mark]:
        return self.run.trace

    @property
    def now_s(self) -> float:
        return self.run.now_s

    def adopt(self, plan: Plan, requests: tuple[Request, ...]) -> None:
        spec = self.run.spec
        self.run.pairs = pairs_of(spec, plan, first_tokens(spec, plan, requests))
        self.run.plan = plan

    def record(self, mark: Mark) -> None:
        self.run.record(mark)


def pairs_of(spec: RunSpec, plan: Plan, trace: list[Span | Mark]) -> Pairs:
    """The pairs (sender, receiver) under `plan`: those in its predicted `trace`, and those that the strategy
    adds.
    """
    ranks = {device.name: rank for rank, device in enumerate(spec.cluster.devices)}
    talking = {
        (ranks[item.device], ranks[item.peer])
        for item in trace
        if isinstance(item, Span) and item.kind == "send"
    }
    return frozenset(talking) | strategy(spec.strategy).partners(spec.cluster, plan)


def first_tokens(spec: RunSpec, plan: Plan, requests: tuple[Request, ...]) -> list[Span | Mark]:
    """The predicted trace of `plan` over the first tokens, without the changes of the scenario."""
    requests = requests or requests_of(spec)
    few = min(spec.workload.new_tokens, max(request.emitted for request in requests) + FEW_TOKENS)
    workload = spec.workload.model_copy(update={"new_tokens": few})
    short = spec.model_copy(update={"workload": workload, "scenario": Scenario()})
    return simulate(Prepared(short, requests, plan))[0]
