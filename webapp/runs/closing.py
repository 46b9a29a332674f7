"""How a run ends: once, in the database first, then in its events; also a run whose owner is gone. And how a
point of an experiment ends, or waits again.
"""

from __future__ import annotations

from typing import Any, Literal

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from engine.domain.events import EVENTS, Event, Logged, ReportMade, StateChanged
from engine.domain.report import Outcome, RunReport
from engine.domain.stored import read_report, read_spec, to_document
from engine.experiments.results.rows import Result, result_of
from engine.experiments.results.validity import told
from engine.experiments.results.versions import calibration_of
from engine.reports.metrics import listed_figures
from webapp.events import archive
from webapp.events.event_log import EventLog
from webapp.jobs import lease, workers
from webapp.jobs.lease import Lost, Ownership
from webapp.jobs.models import ACTIVE, OVER, move
from webapp.runs.models import FIGURES_IN_COLUMNS, Run

MAX_ATTEMPTS = 3
"""A point whose worker died so often is given up: it may be what kills them."""

EndState = Literal["finished", "failed", "cancelled"]


def status_of(outcome: Outcome) -> EndState:
    return outcome.kind if outcome.kind == "finished" or outcome.kind == "cancelled" else "failed"


def finish(owner: Ownership, report: RunReport) -> EndState:
    """Keep the report; returns the status that follows from its outcome. Raises `Lost`."""
    status = status_of(report.outcome)
    figures = listed_figures(report)
    changes: dict[str, Any] = {
        "report": to_document(report),
        "plan": to_document(report.plan) if report.plan else None,
        **{name: figures.pop(name, None) for name in FIGURES_IN_COLUMNS},
        "correct": report.correctness.ok,
        "valid": report.fidelity.valid,
        "lossy": report.correctness.lossy if report.correctness.checked else None,
        "figures": figures,
        **_answer_of(owner.id, report),
    }
    if not _close(lease.owned(owner), report.outcome, **changes):
        raise Lost(owner)
    return status


def end(owner: Ownership, outcome: Outcome) -> None:
    """Close a run that will have no report; a point waits again. Raises `Lost`."""
    with transaction.atomic():
        if not _close(lease.owned(owner), outcome):
            raise Lost(owner)
        if outcome.kind != "cancelled":
            try_again(owner.id)


def queue_again(owner: Ownership) -> bool:
    """Let go of a run that has not begun, so that another worker takes it; False if it is to be cancelled."""
    wanted = lease.owned(owner).filter(cancel_by="")
    return bool(move(wanted, "queue", detail="", worker="", lease_until=None, started_at=None))


def end_queued(run_id: int, outcome: Outcome) -> bool:
    """Close a run that has not started; False if it has."""
    queued = Run.objects.filter(pk=run_id, status="queued")
    return _close(queued, outcome, lease_until=lease.now())  # nobody's, so that somebody settles it


def _close(runs: QuerySet[Run], outcome: Outcome, **changes: Any) -> bool:
    error = "" if outcome.kind == "finished" else outcome.sentence
    changes |= {"outcome": outcome.kind, "error": error, "detail": "", "finished_at": lease.now()}
    return bool(move(runs, status_of(outcome), **changes))


def ending(run: Run) -> list[Event]:
    """The last events of a run that is over, as its row tells."""
    events: list[Event] = [StateChanged(state=run.status, detail=run.error)]
    report = read_report(run.report, f"The report of {run}").value if run.report else None
    if report is not None:
        return [*events, ReportMade.of(report)]
    return events if run.status == "cancelled" else [Logged(level="error", text=run.error), *events]


def settle(run: Run) -> bool:
    """Bring an abandoned run to its end: close it, complete its events, archive it.

    False if its owner is back or somebody else does it. If this fails in the middle, the next who finds the
    run abandoned goes on. Raises Redis' errors.
    """
    owner = lease.take_over(run)
    if owner is None:
        return False
    try:
        run.refresh_from_db()
        if not run.listed:
            return give_back(owner, "its worker died in the middle of it.")
        if run.status in ACTIVE:
            end(owner, outcome_without_worker(run))
        log = EventLog(owner)
        log.begin()
        if not says_its_end(log):
            log.add(ending(Run.objects.get(pk=run.pk)))
        log.close()
    except (Lost, Run.DoesNotExist):
        return False
    return True


def outcome_without_worker(run: Run) -> Outcome:
    node = workers.parse_identity(run.worker).node if run.worker else "of this run"
    if run.cancel_by:
        sentence = f"Cancelled by {run.cancel_by}; the worker {node} had ended."
        return Outcome(kind="cancelled", sentence=sentence)
    sentence = (
        f"The worker {node} ended or was silent for more than {run.LEASE_S:.0f} s in the middle of "
        f"this run, which was {run.status}: its events are kept, start it again."
    )
    return Outcome(kind="failed", sentence=sentence)


def says_its_end(log: EventLog) -> bool:
    """Whether the events there are have the run's end."""
    last = log.unstored[-1:] or archive.next_segment(log.owner.id, log.number - 1)
    events = EVENTS.validate_json(last[-1].events) if last else []
    return any(isinstance(event, StateChanged) and event.state in OVER for event in events)


# Points of experiments ----------------------------------------------------------------------------
def about_of(point: Run, code_version: str) -> dict[str, Any]:
    """What a result says of its origin."""
    return {"digest": point.digest, "world": point.world, "code_version": code_version}


def _answer_of(run_id: int, report: RunReport) -> dict[str, Any]:
    """What an emulated point keeps of its report; nothing of a run that is no point, or broke."""
    run = Run.objects.exclude(digest="").filter(pk=run_id).first()
    if run is None or report.outcome.kind in ("failed", "cancelled"):
        return {}
    asked = read_spec(run.spec, f"The spec of {run}").needed()
    about = about_of(run, run.code_version) | {"calibration": calibration_of(asked, report.spec.profile)}
    result: Result = told(result_of(report, run=str(run.pk), **about), asked)
    wall_s = (timezone.now() - run.started_at).total_seconds() if run.started_at else 0.0
    return {"result": to_document(result), "wall_s": wall_s, "dilation": report.dilation}


def let_go(owner: Ownership, event: str, /, **changes: Any) -> bool:
    """End what a worker does with a point that is no run of people; False if it has another owner by now."""
    return bool(move(lease.owned(owner), event, lease_until=None, **changes))


def give_back(owner: Ownership, sentence: str) -> bool:
    """Let a point wait again whose worker has died; it has failed if that happened too often."""
    if lease.owned(owner).filter(attempts__gte=MAX_ATTEMPTS).exists():
        return let_go(owner, "failed", error=f"Given up after {MAX_ATTEMPTS} attempts: {sentence}")
    return let_go(owner, "give back", worker="")


def try_again(run_id: int) -> None:
    """Let an emulated point wait again whose run broke or was stopped, unless that happened too often."""
    point = Run.objects.exclude(digest="").filter(pk=run_id).first()
    if point is not None and point.attempts < MAX_ATTEMPTS:
        anew(point, attempts=point.attempts)
    elif point is not None:
        sentence = f"Given up after {MAX_ATTEMPTS} attempts: {point.error}"
        Run.objects.filter(pk=run_id).update(error=sentence)


def anew(point: Run, **fields: Any) -> bool:
    """Let another row take the place of a point for all who want it; one that people see stays as an ordinary
    run, with its events. False if somebody else was first.
    """
    with transaction.atomic():
        same = Run._base_manager.filter(pk=point.pk)
        if not same.filter(digest=point.digest).update(digest=""):
            return False
        replace(point, point.cells.all(), point.code_version, **fields)
        same.filter(listed=False).delete()
    return True


def replace(point: Run, cells: QuerySet[Any], code_version: str, **fields: Any) -> int:
    """Let these cells want the same point in another row, of this version of the code; returns how many."""
    new, _ = Run._base_manager.get_or_create(
        digest=point.digest,
        world=point.world,
        code_version=code_version,
        defaults={"status": "waiting", "listed": False, "method": point.method, "spec": point.spec} | fields,
    )
    return cells.update(run=new, linked_at=timezone.now())
