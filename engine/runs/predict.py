"""Runs in the simulated world: check the spec, plan it, simulate it in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from engine.domain.by_hand import EditablePlan
from engine.domain.cluster import ClusterSpec
from engine.domain.conditions import Conditions, absent_at_start
from engine.domain.errors import PlanError, RunError, SpecError
from engine.domain.events import Event, PlanMade, ReportMade
from engine.domain.host_times import RuntimeCosts
from engine.domain.plan import Plan
from engine.domain.report import Fidelity, Outcome, RunReport
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request
from engine.models.inputs.prompts import requests_of
from engine.models.inputs.text import check_draft_tokens
from engine.ops.ledger import check_on_chip
from engine.program.iterations import check_scheduler, chosen_scheduler
from engine.program.serve import go_on, serve
from engine.program.strategy import DivisibleParams
from engine.program.wave import check_cache
from engine.reports.fold import fold
from engine.reports.slow_start import slow_start_notes
from engine.reports.versions import versions
from engine.runs.made_plan import MadePlan
from engine.runs.method import method_report
from engine.runs.moments import timed
from engine.runs.replan import recover
from engine.strategies.outside import errors_of
from engine.strategies.registry import rule_of, strategy, strategy_of, why_not
from engine.strategies.shared.by_hand import editable
from engine.worlds.common.source import RealSource, SimulatedSource
from engine.worlds.simulated.device import Decisions
from engine.worlds.simulated.world import Programs, SimulatedWorld, no_search_for_cycles

Watch = Callable[[Event], None]
Reached = Callable[[int], None]
OUTCOMES = {
    "OutOfMemory": "out_of_memory",
    "OutOfTime": "out_of_time",
    "PeerFailed": "peer_lost",
    "Deadlock": "deadlock",
    "Cancelled": "cancelled",
}


def _nobody(event: Event) -> None:
    """Do nothing with an event: nobody watches."""


class Prepared(NamedTuple):
    """A spec that has been checked and planned: prompts as tokens, and the plan."""

    spec: RunSpec
    requests: tuple[Request, ...]
    plan: Plan
    notes: tuple[str, ...] = ()
    """What was decided for the run that its report says, in sentences."""


def prepare(spec: RunSpec, made: MadePlan | None = None) -> Prepared:
    """The run of `spec` with its requests and its plan; all times of its scenario are in seconds, and its
    scheduler has a name.

    `made`: the plan that was made of this spec before; it is checked, and none is made. Raises `SpecError`
    and `PlanError`.
    """
    check_draft_tokens(spec)
    requests = requests_of(spec)
    plan = plan_of(spec, requests, made.checked(spec) if made else None)
    notes = (made.anew,) if made and made.anew else ()
    prepared = _with_scheduler(Prepared(spec, requests, plan, notes))
    return _with_times(prepared) if prepared.spec.scenario.is_relative else prepared


def _with_scheduler(prepared: Prepared) -> Prepared:
    """The run with the scheduler that its method allows, where it leaves that open (auto)."""
    spec = prepared.spec
    if spec.workload.scheduler != "auto":
        return prepared
    name, note = chosen_scheduler(strategy(spec.strategy), prepared.plan, spec.workload)
    workload = spec.workload.model_copy(update={"scheduler": name})
    notes = (*prepared.notes, note) if note else prepared.notes
    return prepared._replace(spec=spec.model_copy(update={"workload": workload}), notes=notes)


def _with_times(prepared: Prepared) -> Prepared:
    """The run with the times of changes that are given as parts of the run without them."""
    spec = prepared.spec
    calm, outcome = simulate(prepared._replace(spec=spec.model_copy(update={"scenario": Scenario()})))
    if outcome.kind != "finished" or spec.workload.is_open:
        why = "nobody knows its requests" if spec.workload.is_open else f"this one {outcome.in_words}"
        raise SpecError(
            f"scenario: a change by at_frac or after_token needs a run that ends without changes, and {why}: "
            "give at_s."
        )
    scenario = timed(spec.scenario, calm)
    return prepared._replace(spec=spec.model_copy(update={"scenario": scenario}))


def plan_of(spec: RunSpec, requests: tuple[Request, ...], made: Plan | None = None) -> Plan:
    """The plan of the run's strategy: `made` if there is one and it is a plan of this run. Raises `SpecError`
    for bad parameters, `PlanError` when the strategy cannot or finds no plan.
    """
    chosen = strategy_of(spec)
    params = chosen.Params.parse(spec.params, f"parameters of {spec.strategy}")
    spec.scenario.check(spec.cluster)
    cluster = cluster_at_start(spec)
    with errors_of(chosen, "`supports` raised"):
        reason = why_not(chosen, cluster, spec.model)
    if reason:
        raise PlanError(f"{spec.strategy} cannot run {spec.model.name} on {spec.cluster.name}: {reason}")
    check_cache(chosen, spec.model, spec.workload)
    num_positions = max(len(request.tokens) for request in requests)
    workload = spec.workload.model_copy(update={"prompt_tokens": num_positions})
    with errors_of(chosen, "`plan` raised"):
        plan = made or chosen.plan(cluster, spec.model, workload, params)
    if (
        not isinstance(plan, Plan)
        or plan.strategy != chosen.name
        or not isinstance(plan.layout, chosen.Layout)
    ):
        raise PlanError(
            f"{spec.strategy}: `plan` returned {str(plan)[:60]!r}: expected a plan of {chosen.name} with a "
            f"{chosen.Layout.__name__}."
        )
    plan.validate_cover(spec.model, num_positions, generates=spec.workload.new_tokens > 0)
    check_on_chip(cluster, spec.model, plan)
    check_scheduler(chosen, plan, spec.workload)
    return plan


def cluster_at_start(spec: RunSpec) -> ClusterSpec:
    """The cluster with devices that join later as terminals.

    Raises `SpecError` if the source is one of them, `PlanError` if no device that computes is left.
    """
    absent = absent_at_start(spec.cluster, spec.scenario)
    if spec.cluster.source_rank in absent:
        raise SpecError(
            f"scenario: the source {spec.cluster.source} of {spec.cluster.name} joins only after the start, "
            "and nothing runs without it: remove that change, or choose another source."
        )
    cluster = Conditions(spec.cluster, absent).cluster
    if not cluster.workers:
        later = ", ".join(spec.cluster.devices[rank].name for rank in spec.cluster.workers)
        why = f"{later} join only later: let one be there from the start" if later else "add a device"
        raise PlanError(f"{spec.strategy}: no device of {spec.cluster.name} computes at the start: {why}.")
    return cluster


def editable_plan(spec: RunSpec, plan: Plan) -> EditablePlan | None:
    """The plan of a run as a person may edit it; None if its strategy takes no plans made by hand."""
    chosen = strategy(spec.strategy)
    params = chosen.Params.parse(spec.params, f"parameters of {spec.strategy}")
    if not isinstance(params, DivisibleParams):
        return None
    rows = len(requests_of(spec)[0].tokens)
    return editable(chosen, spec.cluster, spec.model, plan, rows, params)


def predict(
    spec: RunSpec,
    watch: Watch = _nobody,
    should_stop: Callable[[], bool] = lambda: False,
    reached: Reached = lambda tokens: None,
    made: MadePlan | None = None,
) -> RunReport:
    """The simulated world's report. Loads no torch, needs no root.

    `reached` gets, now and then, about how many tokens have been simulated. `made` as for `prepare`. Raises
    `SpecError` and `PlanError`; a run that cannot finish is an outcome in the report.
    """
    prepared = prepare(spec, made)
    spec = prepared.spec
    watch(PlanMade.of(prepared.plan))
    with no_search_for_cycles():
        trace, outcome = simulate(prepared, should_stop, reached=reached)
        if watch is not _nobody:
            for item in trace:
                watch(item)
        report = fold(spec, prepared.plan, trace, world="predicted", outcome=outcome)
        method = method_report(spec, prepared.plan, trace)
        fidelity = Fidelity(notes=(*prepared.notes, *slow_start_notes(spec.cluster, trace)))
        del trace  # else the search goes through all of it once
    report = report.model_copy(
        update={
            "versions": versions(),
            "scenario": spec.scenario,
            "method": method,
            "rule": rule_of(spec),
            "fidelity": fidelity,
        }
    )
    watch(ReportMade.of(report))
    return report


def decisions_in(trace: Iterable[Span | Mark]) -> Decisions:
    return {
        (item.device, item.facts["decision"]): item.facts["answer"]
        for item in trace
        if isinstance(item, Mark) and item.name == "decided"
    }


def simulate(
    prepared: Prepared,
    should_stop: Callable[[], bool] = lambda: False,
    decisions: Decisions | None = None,
    host: RuntimeCosts | None = None,
    reached: Reached = lambda tokens: None,
    shaped: bool = False,
) -> tuple[list[Span | Mark], Outcome]:
    """Trace and outcome of the simulated world; `decisions` are those of a real run of the same spec.

    A run that nothing disturbs is played with consecutive layers as one operation. If it does not finish, it
    is played again operation by operation, for the trace up to its end. With `host`, all devices are
    processes of one host and share its cores; `shaped` as for `SimulatedWorld`.
    """
    if host is not None:
        return play(prepared, should_stop, decisions, batched=False, host=host)
    if not prepared.spec.scenario.changes:
        trace, outcome = play(prepared, should_stop, decisions, batched=True, reached=reached, shaped=shaped)
        if outcome.kind in ("finished", "cancelled"):
            trace.sort(key=lambda item: item.end_s if isinstance(item, Span) else item.time_s)
            return trace, outcome
    return play(prepared, should_stop, decisions, batched=False, reached=reached, shaped=shaped)


def play(
    prepared: Prepared,
    should_stop: Callable[[], bool],
    decisions: Decisions | None,
    batched: bool,
    host: RuntimeCosts | None = None,
    reached: Reached = lambda tokens: None,
    shaped: bool = False,
) -> tuple[list[Span | Mark], Outcome]:
    """Trace and outcome of the simulated world, see `SimulatedWorld` for `batched`, `host` and `shaped`."""
    spec = prepared.spec
    trace: list[Span | Mark] = []
    world = SimulatedWorld(spec, prepared.plan, trace.append, decisions, batched, host, shaped=shaped)
    if not strategy(spec.strategy).is_lossy(prepared.plan):
        told = {request.index: request.new_tokens for request in prepared.requests}
        world.watch_work({index: tokens for index, tokens in told.items() if tokens is not None})
    source = SimulatedSource(world.devices[spec.cluster.source_rank])

    def looked() -> bool:
        if trace and isinstance(trace[-1], Span):
            reached(trace[-1].request * spec.workload.new_tokens + max(trace[-1].token, 0))
        return should_stop()

    try:
        run_world(prepared, world, source, trace, looked)
    except RunError as error:
        return trace, outcome_of(error)
    return trace, Outcome()


def run_world(
    prepared: Prepared,
    world: SimulatedWorld,
    source: SimulatedSource | RealSource,
    trace: Sequence[Span | Mark],
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Run the programs of `prepared` in `world`, whose events go to `trace`, to their end, with new plans
    where devices fail or join. Raises the `RunError` that ends the run.
    """
    spec, chosen = prepared.spec, strategy(prepared.spec.strategy)
    absent = absent_at_start(spec.cluster, spec.scenario)

    def source_of(rank: int) -> SimulatedSource | RealSource | None:
        return source if rank == spec.cluster.source_rank else None

    def recovered(event: Exception) -> Programs:
        """The programs that continue after `event`: none if every request was finished."""
        lost = source.device.failed
        if spec.cluster.source_rank in lost:
            raise event
        requests = recover(spec, prepared.requests, _SimulatedRun(world, source, trace), event)
        if not requests and not spec.workload.is_open:
            return []
        return [
            (
                rank,
                go_on(
                    device,
                    chosen,
                    world.plan,
                    device.adopt(world.plan),
                    spec.workload,
                    requests,
                    source_of(rank),
                ),
            )
            for rank, device in enumerate(world.devices)
            if rank not in lost
        ]

    programs = [
        (rank, serve(device, chosen, prepared.plan, spec.workload, prepared.requests, source_of(rank)))
        for rank, device in enumerate(world.devices)
        if rank not in absent
    ]
    with errors_of(chosen, "a device's program raised", RunError):
        world.run(programs, should_stop, recovered if spec.failover == "replan" else None)


class _SimulatedRun:
    """A simulated world as `recover` needs it."""

    def __init__(
        self, world: SimulatedWorld, source: SimulatedSource | RealSource, trace: Sequence[Span | Mark]
    ):
        self.world, self.source, self.trace = world, source, trace

    @property
    def plan(self) -> Plan:
        return self.world.plan

    @property
    def cluster_now(self) -> ClusterSpec:
        return self.source.device.cluster_now

    @property
    def now_s(self) -> float:
        return self.world.now_s

    def adopt(self, plan: Plan, requests: tuple[Request, ...]) -> None:
        self.world.plan = plan

    def record(self, mark: Mark) -> None:
        self.world.emit(mark)


def outcome_of(error: RunError) -> Outcome:
    kind: Any = OUTCOMES.get(type(error).__name__, "failed")
    return Outcome(kind=kind, sentence=str(error), device=error.device, time_s=error.time_s)
