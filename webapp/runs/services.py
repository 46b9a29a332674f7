"""The life of a run, step by step: created, started, finished or failed; each step one database write."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from django.contrib.auth.models import User
from django.dispatch import Signal
from django.http import Http404
from django.utils import timezone

from engine.domain.events import Logged, StateChanged
from engine.domain.plan import Plan
from engine.domain.report import Outcome, RunReport
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.stored import read_spec, to_document
from engine.domain.values import Value
from engine.runs.predict import prepare
from webapp import budgets
from webapp.celery import app as celery
from webapp.errors import Conflict, Unavailable
from webapp.redis import REDIS_ERRORS, client, redis_needed
from webapp.runs import control, live, workers
from webapp.runs.models import ACTIVE, OVER, Run
from webapp.runs.requests import RunRequest, spec_of

run_over = Signal()
"""Sent by a run's worker when the run is over: `run_id`, `worker`, and `stopped`, whether it was cancelled
because its worker is to end."""

EndState = Literal["finished", "failed", "cancelled"]


def find(run_id: int) -> Run:
    try:
        return Run.objects.select_related("owner").get(pk=run_id)
    except Run.DoesNotExist:
        raise Http404(f"There is no run {run_id}") from None


def create(request: RunRequest, owner: User | None) -> Run:
    """Check, plan, store and queue a run. Raises `SpecError`, `PlanError`, `Unavailable`.

    Without Redis the run is stored as failed, so that its request is kept.
    """
    spec = spec_of(request)
    # The cluster is frozen into the request: asking for the same again must not follow later edits. A picture
    # is kept as the model sees it, not as it was uploaded.
    frozen = request.model_copy(
        update={"cluster_id": None, "cluster": spec.cluster, "workload": spec.workload}
    )
    run = store(frozen, spec, checked_plan(spec), owner)
    try:
        with redis_needed():
            queue(run.pk)
    except Unavailable as error:
        end(run.pk, Outcome(kind="failed", sentence=str(error)))
        raise
    return run


def checked_plan(spec: RunSpec) -> Plan:
    """The plan of a run that may be emulated here. Raises `SpecError`, `PlanError`."""
    budgets.check_emulation(spec)
    return prepare(spec).plan


def store(request: RunRequest, spec: RunSpec, plan: Plan, owner: User | None) -> Run:
    """A run whose request, with everything in it, is `spec`; nothing is queued yet."""
    return Run.objects.create(
        name=request.name,
        notes=request.notes,
        tags=list(request.tags),
        owner=owner,
        request=to_document(request),
        spec=to_document(spec),
        plan=to_document(plan),
        cluster_name=spec.cluster.name,
        model=request.model,
        strategy=request.strategy,
    )


def queue(run_id: int) -> None:
    """Announce a stored run and hand it to the workers. Raises Redis' errors."""
    live.append(run_id, [StateChanged(state="queued")])
    enqueue(run_id)


def enqueue(run_id: int) -> None:
    """Raises Redis' errors. By name: the tasks import this module, not the other way round."""
    celery.send_task("plan.predict_run", [run_id], queue="plan")
    celery.send_task("emulate.run", [run_id], queue="emulate")


def start(run_id: int, worker: workers.Identity) -> Run | None:
    """Give the run to this worker and return it; None if it is not queued any more and must not start."""
    taken = Run.objects.filter(pk=run_id, status="queued").update(
        status=ACTIVE[0], worker=str(worker), started_at=timezone.now()
    )
    return Run.objects.get(pk=run_id) if taken else None


def progress(run_id: int, state: str, detail: str) -> None:
    """Store a state that a run reports. Its status stays when a started run reports `queued`: it waits for
    another run on its host.
    """
    status = {"status": state} if state in ACTIVE else {}
    Run.objects.filter(pk=run_id, status__in=ACTIVE).update(detail=detail[:200], **status)


def status_of(outcome: Outcome) -> EndState:
    return outcome.kind if outcome.kind == "finished" or outcome.kind == "cancelled" else "failed"


def finish(run_id: int, report: RunReport) -> EndState:
    """Keep the report; returns the status that follows from its outcome."""
    status = status_of(report.outcome)
    finished = report.outcome.kind == "finished"
    Run.objects.filter(pk=run_id).update(
        status=status,
        detail="",
        finished_at=timezone.now(),
        report=to_document(report),
        plan=to_document(report.plan) if report.plan else None,
        error="" if finished else report.outcome.sentence,
        outcome=report.outcome.kind,
        latency_s=report.latency_s if finished else None,
        ttft_s=report.ttft_s if finished else None,
        tpot_s=report.tpot_s if finished else None,
        tokens_per_s=report.tokens_per_s if finished else None,
        correct=report.correctness.ok,
        valid=report.fidelity.valid,
    )
    return status


def end(run_id: int, outcome: Outcome) -> bool:
    """Close a run that will have no report; False if it is over already."""
    return bool(
        Run.objects.filter(pk=run_id)
        .exclude(status__in=OVER)
        .update(
            status=status_of(outcome),
            detail="",
            finished_at=timezone.now(),
            error=outcome.sentence,
            outcome=outcome.kind,
        )
    )


def fail_lost(run: Run) -> None:
    """Close a run whose worker has died: add the outcome to its events; store the rest of its stream."""
    sentence = (
        f"The worker {workers.parse_identity(run.worker).node} ended in the middle of this run, which was "
        f"{run.status}: its events are kept, start it again."
    )
    if end(run.pk, Outcome(kind="failed", sentence=sentence)):
        with redis_needed():
            log = Logged(level="error", text=sentence)
            live.append(run.pk, [log, StateChanged(state="failed", detail=sentence)])
            live.archive_rest(run.pk)


def cancel(run: Run, by: str) -> None:
    """Cancel a queued run, or ask an active one's worker to stop it. Raises `Conflict`, `Unavailable`."""
    if Run.objects.filter(pk=run.pk, status="queued").update(
        status="cancelled",
        outcome="cancelled",
        finished_at=timezone.now(),
        error=f"Cancelled by {by} before it started.",
    ):
        try:
            live.append(run.pk, [StateChanged(state="cancelled")])
            live.archive_rest(run.pk)
        except REDIS_ERRORS:
            Run.objects.filter(pk=run.pk).update(archived=True)
        return
    run.refresh_from_db()
    if run.is_over:
        raise Conflict(f"{run} is {run.status} already: there is nothing to cancel.")
    with redis_needed():
        if workers.parse_identity(run.worker).node in workers.alive("emulate"):
            control.send(run.pk, {"kind": "stop"}, by)
            return
    fail_lost(run)


def change(run: Run, command: Value, by: str) -> int:
    """Send a live change, complete with its defaults; returns its number.

    Raises `SpecError`, `Conflict`, `Unavailable`.
    """
    given = command.model_dump(mode="json", exclude_none=True)
    cluster = read_spec(run.spec, f"The spec of {run}").needed().cluster
    scenario = Scenario.parse({"changes": [{**given, "at_s": 0.0}]}, "change")
    scenario.check(cluster)
    if run.status != "running":
        raise Conflict(f"{run} is {run.status}: only a running run can be changed.")
    with redis_needed():
        return control.send(run.pk, scenario.changes[0].model_dump(mode="json", exclude={"at_s"}), by)


def delete(run: Run) -> None:
    """Delete a run and its events. If Redis does not answer, its stream expires there later."""
    run_id = run.pk
    run.delete()
    with suppress(*REDIS_ERRORS):
        client().delete(live.stream_of(run_id), control.list_of(run_id))
