"""What people do with runs: create, change, cancel, delete; and the states that a worker stores."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.dispatch import Signal
from django.http import Http404

from engine.domain.host_times import HostProfile
from engine.domain.report import Outcome
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.stored import read_plan, read_spec, to_document
from engine.domain.values import Value
from engine.experiments.execution.version import code_version
from engine.runs.made_plan import MadePlan, made_plan
from engine.runs.predict import prepare
from webapp.accounts import rights
from webapp.base import budgets
from webapp.base.errors import Conflict, Unavailable
from webapp.base.redis import REDIS_ERRORS, client, redis_needed
from webapp.clusters.model_library import with_local_weights
from webapp.events import stream
from webapp.events.event_log import EventLog
from webapp.jobs import lease
from webapp.jobs.intake import wake, want_prediction
from webapp.jobs.lease import Lost, Ownership
from webapp.jobs.models import ACTIVE, move
from webapp.jobs.need import Need
from webapp.runs import attempts, closing, control, predictions, quotas
from webapp.runs.models import Run
from webapp.runs.predictions import Planned, cores_for, need_of
from webapp.runs.requests import RunRequest, spec_of

turn_over = Signal()
"""Sent by an emulating `worker` when it can take its next run: the last one is over, or only compared."""


def find(run_id: int) -> Run:
    try:
        return Run.objects.select_related("owner").get(pk=run_id)
    except Run.DoesNotExist:
        raise Http404(f"There is no run {run_id}") from None


def owned(run_id: int, user: User) -> Run:
    """The run, for somebody who is about to change it. Raises 403 if they may not."""
    run = find(run_id)
    rights.require(user, run.owner, f"Run {run.pk}")
    return run


def create(request: RunRequest, owner: User) -> Run:
    """Check, plan, store and queue a run. Raises `SpecError`, `PlanError`, `TooMany`, `Unavailable`.

    Whoever is told that it cannot be started has no run: without Redis or a planning worker none is kept.
    """
    spec = spec_of(request)
    # The cluster is frozen into the request: asking for the same again must not follow later edits. A picture
    # is kept as the model sees it, not as it was uploaded.
    frozen = request.model_copy(
        update={"cluster_id": None, "cluster": spec.cluster, "workload": spec.workload}
    )
    budgets.check_emulation(spec)
    quotas.check_new_run(owner)
    planned = predictions.plan(spec, owner.pk)
    with transaction.atomic(), quotas.one_at_a_time(owner):
        quotas.check_new_run(owner)  # again: others of this person's may have been stored meanwhile
        run = store(frozen, spec, planned, owner)
    try:
        with redis_needed():
            queue(run)
    except Unavailable as error:
        if closing.end_queued(run.pk, Outcome(kind="failed", sentence=str(error))):
            delete(run)
            raise
    return run  # also if a worker that looked for forgotten runs has it already


def planned(spec: RunSpec, profile: HostProfile | None = None) -> Planned:
    """What a run needs before it is queued, computed in this process, which is a worker's; `profile` has the
    times of its machine. Raises `SpecError`, `PlanError`.
    """
    prepared = prepare(with_local_weights(spec))
    return Planned(made_plan(spec, prepared.plan, code_version()), cores_for(prepared, profile))


def store(request: RunRequest, spec: RunSpec, planned: Planned | None, owner: User | None) -> Run:
    """A run whose request, with everything in it, is `spec`; nothing is queued yet."""
    return Run.objects.create(spec=to_document(spec), **columns_of(request, spec, planned, owner))


def columns_of(
    request: RunRequest, spec: RunSpec, planned: Planned | None, owner: User | None
) -> dict[str, Any]:
    """What a row has of a run that is planned, besides its spec."""
    made = planned.made if planned else None
    plan = made.plan if made else None
    need = need_of(spec, plan, planned.cores) if planned and plan else Need()
    return {
        "name": request.name,
        "notes": request.notes,
        "tags": list(request.tags),
        "owner": owner,
        "request": to_document(request),
        "plan": to_document(plan) | made.model_dump(include={"digest", "code"}) if made and plan else None,
        "need": need.model_dump(mode="json", exclude_defaults=True),
        "world": "nodes" if spec.on_nodes else "emulated",
        "params": listed_params(request),
        "cluster_name": spec.cluster.name,
        "model": request.model,
        "strategy": request.strategy,
    }


def plan_of(run: Run) -> MadePlan | None:
    """The plan that was made when the run was asked for: its prediction and its emulation take that one, and
    make it anew only if other code than this process's made it. None if there is none. Raises `SpecError` if
    it cannot be read.
    """
    if not run.plan:
        return None
    about = {name: run.plan.get(name, "") for name in ("digest", "code")}
    if about["code"] != (code := code_version()):
        return MadePlan(**about).for_code(code)
    return MadePlan(plan=read_plan(run.plan, f"The plan of {run}").needed(), **about)


def listed_params(request: RunRequest) -> dict[str, Any]:
    """What lists show of a request: its size and seed, and the strategy's parameters but a plan by hand."""
    work = request.workload
    size: dict[str, Any] = {"new_tokens": work.new_tokens, "requests": work.requests, "seed": request.seed}
    if work.prompt_tokens is not None:
        size["prompt_tokens"] = work.prompt_tokens
    return size | {key: value for key, value in request.params.items() if key != "plan"}


def queue(run: Run) -> None:
    """Announce a stored run, and let workers predict it and take it. Raises Redis' errors."""
    announce(run)
    enqueue(run.pk)


def announce(run: Run) -> None:
    """The first event of a run. Raises Redis' errors."""
    with suppress(Lost):  # a worker that looked for forgotten runs has it already
        log = EventLog(lease.owner_of(run))
        log.begin()
        log.send()


def enqueue(run_id: int) -> None:
    """Let workers predict a stored run and take it. Raises Redis' errors."""
    want_prediction(run_id)
    wake("emulate.next", "emulate")


def progress(owner: Ownership, state: str, detail: str) -> None:
    """Store a state that a run reports. Its status stays when a started run reports `queued`: it waits for
    another run on its host. Who asked to cancel it stays visible.
    """
    runs = lease.owned(owner).filter(status__in=ACTIVE)
    if state in ACTIVE:
        move(runs, state)
    runs.filter(cancel_by="").update(detail=detail[:200])


def cancel(run: Run, by: str) -> None:
    """Cancel a queued run, or ask an active one's worker to stop it. Raises `Conflict`.

    The wish is in the database: it does not need Redis, which only makes it arrive at once.
    """
    before = Outcome(kind="cancelled", sentence=f"Cancelled by {by} before it started.")
    if closing.end_queued(run.pk, before):
        with suppress(*REDIS_ERRORS):  # without Redis, a worker settles it later
            closing.settle(find(run.pk))
        return
    wish = f"{by} asked to stop this run; its worker has not ended it yet."
    if not Run.objects.filter(pk=run.pk, status__in=ACTIVE).update(cancel_by=by, detail=wish):
        run.refresh_from_db()
        raise Conflict(f"{run} is {run.status} already: there is nothing to cancel.")
    with suppress(*REDIS_ERRORS):
        control.send(run.pk, {"kind": "stop"}, by)
        closing.settle_abandoned()


def change(run: Run, command: Value, by: str) -> int:
    """Send a live change, complete with its defaults; returns its number.

    Raises `SpecError`, `Conflict`, `Unavailable`.
    """
    given = command.model_dump(mode="json", exclude_none=True)
    cluster = read_spec(run.spec, f"The spec of {run}").needed().cluster
    scenario = Scenario.parse({"changes": [{**given, "at_s": 0.0}]}, "change")
    budgets.check_scenario(scenario)
    scenario.check(cluster)
    if run.status != "running":
        raise Conflict(f"{run} is {run.status}: only a running run can be changed.")
    with redis_needed():
        return control.send(run.pk, scenario.changes[0].model_dump(mode="json", exclude={"at_s"}), by)


def delete(run: Run) -> None:
    """Delete a run and its events; experiments keep what it gave them. If Redis does not answer, its stream
    expires there later.
    """
    run_id = run.pk
    if run.digest:
        left = {name: getattr(run, name) for name in ("result", "wall_s", "dilation", "attempts")}
        why = run.error if run.is_over else "Its run was deleted before it had ended: retry it."
        attempts.anew(run, status=run.status if run.is_over else "failed", error=why, **left)
    run.delete()
    with suppress(*REDIS_ERRORS):
        client().delete(stream.stream_of(run_id), stream.fence_of(run_id), control.list_of(run_id))
