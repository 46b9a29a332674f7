"""The attempts at a point of an experiment: what one leaves, and how the point waits for another."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from engine.domain.report import RunReport
from engine.domain.stored import read_spec, to_document
from engine.experiments.results.rows import Result, result_of
from engine.experiments.results.validity import told
from engine.experiments.results.versions import calibration_of
from webapp.jobs import lease
from webapp.jobs.lease import Ownership
from webapp.jobs.models import move
from webapp.runs.models import Run

MAX_ATTEMPTS = 3
"""A point whose worker died so often is given up: it may be what kills them."""


def about_of(point: Run, code_version: str) -> dict[str, Any]:
    """What a result says of its origin."""
    return {"digest": point.digest, "world": point.world, "code_version": code_version}


def answer_of(run_id: int, report: RunReport) -> dict[str, Any]:
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
        defaults={"status": "waiting", "listed": False}
        | {name: getattr(point, name) for name in ("method", "spec", "need")}
        | fields,
    )
    return cells.update(run=new, linked_at=timezone.now())
