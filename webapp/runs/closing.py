"""How a run ends: once, in the database first, then in its events; also a run whose owner is gone."""

from __future__ import annotations

from typing import Any, Literal

from django.db import transaction
from django.db.models import QuerySet

from engine.domain.events import EVENTS, Event, Logged, ReportMade, StateChanged
from engine.domain.report import Outcome, RunReport
from engine.domain.stored import read_report, to_document
from engine.reports.metrics import listed_figures
from webapp.events import archive
from webapp.events.event_log import EventLog
from webapp.jobs import lease, workers
from webapp.jobs.lease import Lost, Ownership
from webapp.jobs.models import ACTIVE, OVER, move
from webapp.jobs.suspicion import Suspicion
from webapp.runs import attempts
from webapp.runs.models import FIGURES_IN_COLUMNS, Run

EndState = Literal["finished", "failed", "cancelled"]

suspects = Suspicion(Run)


def status_of(outcome: Outcome) -> EndState:
    return outcome.kind if outcome.kind == "finished" or outcome.kind == "cancelled" else "failed"


def finish(owner: Ownership, report: RunReport) -> EndState:
    """Keep the report; returns the status that follows from its outcome. Raises `Lost`."""
    status = status_of(report.outcome)
    figures = listed_figures(report)
    changes: dict[str, Any] = {
        "report": to_document(report),
        **{name: figures.pop(name, None) for name in FIGURES_IN_COLUMNS},
        "correct": report.correctness.ok,
        "valid": report.fidelity.valid,
        "lossy": report.correctness.lossy if report.correctness.checked else None,
        "figures": figures,
        **attempts.answer_of(owner.id, report),
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
            attempts.try_again(owner.id)


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


def settle_abandoned() -> list[str]:
    """Settle the runs whose owner is gone: what every worker does each few seconds, and the server when it is
    asked for its health. Returns which. Raises the database's errors and Redis'.
    """
    return [run.title for run in suspects.abandoned(workers.home()) if settle(run)]


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
            return attempts.give_back(owner, "its worker died in the middle of it.")
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
