"""Which points are wanted, and which is next.

What is to do follows from the database alone: Celery's messages carry no work; they only say "look".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet
from django.utils import timezone

from engine.domain.spec import RunSpec
from engine.domain.stored import read_spec, to_document
from engine.domain.world import MEASURED, WORLDS, World
from engine.strategies.registry import installed_code
from webapp.base.redis import REDIS_ERRORS
from webapp.experiments import versions
from webapp.experiments.models import OPEN, Cell, Execution, Experiment
from webapp.jobs import lease, workers
from webapp.jobs.intake import wake
from webapp.jobs.models import OVER, move
from webapp.jobs.need import Need
from webapp.runs import attempts
from webapp.runs.models import Run
from webapp.runs.predictions import boards_of

PREDICTED: tuple[World, ...] = tuple(world for world in WORLDS if world not in MEASURED)
"""Worlds that need no network: their points go to the workers of the queue `points`."""

BY_WORKERS: tuple[World, ...] = ("emulated", "nodes")
"""Worlds whose points become runs, which the workers of the queue `emulate` carry out."""

POINT_LIMIT_S = 120.0
"""Wall seconds that the prediction of one point may take."""

FORGET_AFTER_S = 3600.0
BATCH = 8


def spec_of(point: Run) -> RunSpec:
    """What a point runs. Raises `SpecError` if a newer EdgeLoom stored it in a way that cannot be read
    here.
    """
    return read_spec(point.spec, f"The spec of the point {point.digest[:12]}").needed()


def all_points() -> QuerySet[Run]:
    """Every point, whether people see it among their runs or not."""
    return Run._base_manager.exclude(digest="")


def state_of(status: str, has_result: bool) -> str:
    """The state of a point as experiments show it: waiting, running, done, or failed, without a result."""
    if status == "waiting":
        return status
    if status in OPEN:
        return "running"
    return "done" if has_result else "failed"


DONE, FAILED = (Q(run__status__in=OVER, run__result__isnull=is_lacking) for is_lacking in (False, True))
"""Cells whose point is over: with a result, or without."""

SHOWN = ("id", "world", "status", "result", "error", "listed", "wall_s", "code_version")


def with_points(cells: QuerySet[Cell]) -> QuerySet[Cell]:
    """The cells with what experiments show of their points."""
    others = [field.name for field in Run._meta.concrete_fields if field.name not in SHOWN]
    return cells.select_related("run").defer(*(f"run__{name}" for name in others))


# Telling workers -----------------------------------------------------------------------------------
MOST = 16


def announce(count: int, queue: str = "points") -> None:
    """Wake up to `count` processes that predict points, of all workers or of the one whose own `queue` it is.
    Without Redis none wakes: they look at every beat.
    """
    with suppress(*REDIS_ERRORS):
        wake("points.next", queue, min(count, MOST))


# Wanting ------------------------------------------------------------------------------------------
def wanted(specs: Mapping[str, RunSpec], world: str) -> dict[str, Run]:
    """A point for every digest: those that exist, and new ones that wait.

    Points without a network are computed anew by a new version of the code; an emulation takes minutes, so
    one that an older version finished is used, and shown as stale.
    """
    found = newest(specs, world)
    new = [
        Run(
            need=Need(boards=boards_of(spec)).model_dump(mode="json", exclude_defaults=True),
            digest=digest,
            world=world,
            code_version=versions.version_of(world),
            status="waiting",
            listed=False,
            spec=to_document(spec),
            method=spec.method_code,
        )
        for digest, spec in specs.items()
        if digest not in found
    ]
    Run._base_manager.bulk_create(new, ignore_conflicts=True)  # wanted twice at a time: one point for both
    return newest(specs, world)


def newest(digests: Iterable[str], world: str) -> dict[str, Run]:
    """Digest → the point of this version or, of emulations, else the last finished one."""
    found: dict[str, Run] = {}
    now = versions.version_of(world)
    asked = list(digests)
    for start in range(0, len(asked), 500):  # databases limit the number of values in one statement
        stored = Run._base_manager.filter(digest__in=asked[start : start + 500], world=world)
        if world in PREDICTED:
            stored = stored.filter(code_version=now)
        of_others_first = sorted(
            stored.only("digest", "code_version", "result"), key=lambda one: (one.code_version == now, one.pk)
        )
        usable = [one for one in of_others_first if one.code_version == now or one.result is not None]
        found |= {one.digest: one for one in usable}
    return found


# Taking -------------------------------------------------------------------------------------------
def waiting(worlds: Sequence[str]) -> QuerySet[Run]:
    """Points that wait, and that an execution which is neither paused nor cancelled wants."""
    wanting = Cell.objects.filter(run=OuterRef("pk"), execution__state="active")
    return all_points().filter(Exists(wanting), status="waiting", world__in=worlds)


def methods_here() -> tuple[str, ...]:
    """Values of `Run.method` of what this process can compute: EdgeLoom's own methods, and those from
    outside that it has.
    """
    return ("", *installed_code())


def is_any_for_this_worker(worlds: Sequence[str]) -> bool:
    """Whether something waits that this process can compute: for what it cannot it would look in vain."""
    return waiting(worlds).filter(method__in=methods_here()).exists()


def next_waiting(worlds: Sequence[str], count: int, but: Collection[int] = ()) -> list[int]:
    """The ids of what is next for this process, `but` those: previews first, since somebody looks at them;
    among equals in turns, the one that waited longest first.
    """
    possible = {
        "run__status": "waiting",
        "run__world__in": worlds,
        "run__method__in": methods_here(),
    }
    cells = Cell.objects.filter(**possible).exclude(run__in=but)
    of_it = cells.filter(execution=OuterRef("pk"))
    is_kept = ExpressionWrapper(Q(experiment__isnull=False), output_field=BooleanField())
    active = Execution.objects.filter(Exists(of_it), state="active")
    execution = active.order_by(is_kept, "served_at", "pk").first()
    if execution is None:
        return []
    Execution.objects.filter(pk=execution.pk).update(served_at=timezone.now())
    return list(cells.filter(execution=execution).order_by("index").values_list("run_id", flat=True)[:count])


NEEDED = ("fence", "digest", "world", "code_version", "spec", "attempts", "need")
"""What a worker needs of a point."""


def take(worker: workers.Identity, count: int = BATCH) -> list[Run]:
    """Give this worker, and nobody else, up to `count` predictions that wait."""
    return take_these(next_waiting(PREDICTED, count), worker)


def take_one(point_id: int, worker: workers.Identity) -> Run | None:
    """Take a point for this worker; None if another process was first."""
    return next(iter(take_these([point_id], worker)), None)


def take_these(point_ids: Sequence[int], worker: workers.Identity) -> list[Run]:
    """Those of the points that wait, for this worker, which does not renew their leases. All are read first:
    that whose number of owners is another by then was taken by somebody else.
    """
    waiting = Run._base_manager.filter(status="waiting").only(*NEEDED).in_bulk(point_ids)
    taken = []
    for point_id in dict.fromkeys(point_ids):  # cells of one execution may share a point
        if (point := waiting.get(point_id)) is None:
            continue
        same = Run._base_manager.filter(pk=point.pk, fence=point.fence)
        point.fence, point.attempts = point.fence + 1, point.attempts + 1
        begun = {"worker": str(worker), "fence": point.fence, "attempts": point.attempts}
        if move(same, "take", lease_until=lease.end(Run.LONGEST_LEASE_S), **begun):
            taken.append(point)
    return taken


def release(point: Run) -> None:
    """Let a point wait again that was taken but not begun, as if it had not been taken."""
    attempts.let_go(lease.owner_of(point), "give back", worker="", attempts=F("attempts") - 1)


def adopt() -> int:
    """Let what waits since before an upgrade be computed by the present version; returns how many cells."""
    changed = 0
    for world in (*PREDICTED, *BY_WORKERS):
        for point in waiting((world,)).exclude(code_version=versions.version_of(world)):
            changed += attempts.replace(point, point.cells.all(), versions.version_of(world))
    return changed


def renew(point: Run, execution: Execution) -> bool:
    """Let a stale result be computed anew, for the cells of `execution`; False if it is not stale.

    The result of older code stays, for whoever looks at it; that of an older calibration is replaced.
    """
    calibration = (point.result or {}).get("calibration", "")
    if not versions.reason_stale(point.world, point.code_version, calibration):
        return False
    version = versions.version_of(point.world)
    if point.code_version == version:
        return attempts.anew(point)
    return bool(attempts.replace(point, execution.cells.filter(run=point), version))


# Forgetting ---------------------------------------------------------------------------------------
def forget(now: datetime | None = None) -> None:
    """Delete what waits and nobody wants any more: points of previews that were replaced."""
    before = (now or timezone.now()) - timedelta(seconds=FORGET_AFTER_S)
    all_points().filter(status="waiting", cells=None, created_at__lt=before).delete()


def designs_since(since: datetime) -> list[Any]:
    """The documents of experiments that were edited, started or computed since, or of which points wait."""
    waiting = Cell.objects.filter(run__status__in=OPEN).values("execution")
    used = Q(created_at__gte=since) | Q(served_at__gte=since) | Q(pk__in=waiting)
    return [
        *Experiment.objects.filter(updated_at__gte=since).values_list("document", flat=True),
        *Execution.objects.filter(used).values_list("document", flat=True),
    ]
