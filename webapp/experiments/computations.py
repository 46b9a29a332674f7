"""The states of a computation: wanted, taken, kept, given back, failed. Each step is one UPDATE with the
state that it expects, so that it has no effect if another process was first.

What is to do follows from the database alone. Celery messages carry no work; they only say "look".
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet
from django.utils import timezone

from engine.domain.spec import RunSpec
from engine.domain.stored import read_spec, to_document
from engine.domain.values import Value
from engine.domain.world import MEASURED, WORLDS, World
from engine.strategies.registry import installed_code
from webapp.base.redis import REDIS_ERRORS
from webapp.experiments import versions
from webapp.experiments.models import OPEN, Cell, Computation, Execution, Experiment
from webapp.jobs import lease, workers
from webapp.jobs.intake import wake
from webapp.runs.models import Run

PREDICTED: tuple[World, ...] = tuple(world for world in WORLDS if world not in MEASURED)
"""Worlds that need no network: their points go to the workers of the queue `points`."""

POINT_LIMIT_S = 120.0
"""Wall seconds that the prediction of one point may take."""

FORGET_AFTER_S = 3600.0
BATCH = 8
MAX_ATTEMPTS = 3
"""A point whose worker died so often is given up: it may be what kills them."""


def document_of(spec: RunSpec) -> bytes:
    return gzip.compress(json.dumps(to_document(spec)).encode(), compresslevel=3, mtime=0)


def spec_of(computation: Computation) -> RunSpec:
    """The run of a computation. Raises `SpecError` if a newer EdgeLoom stored it in a way that cannot be read
    here.
    """
    document = json.loads(gzip.decompress(computation.spec))
    return read_spec(document, f"The spec of the point {computation}").needed()


def about_of(computation: Computation, code_version: str) -> dict[str, Any]:
    """What a result says of its origin."""
    return {"digest": computation.digest, "world": computation.world, "code_version": code_version}


# Telling workers -----------------------------------------------------------------------------------
MOST = 16


def announce(count: int, queue: str = "points") -> None:
    """Wake up to `count` processes that predict points, of all workers or of the one whose own `queue` it is.
    Without Redis none wakes: they look at every beat.
    """
    with suppress(*REDIS_ERRORS):
        wake("points.next", queue, min(count, MOST))


# Wanting ------------------------------------------------------------------------------------------
def wanted(specs: Mapping[str, RunSpec], world: str) -> dict[str, Computation]:
    """A computation for every digest: those that exist, and new ones that wait.

    Points without a network are computed anew by a new version of the code; an emulation takes minutes, so
    one that an older version finished is used, and shown as stale.
    """
    found = newest(specs, world)
    Computation.objects.bulk_create(
        [
            Computation(
                digest=digest,
                world=world,
                code_version=versions.version_of(world),
                spec=document_of(specs[digest]),
                method=specs[digest].method_code,
            )
            for digest in specs
            if digest not in found
        ],
        ignore_conflicts=True,  # somebody else wanted it at the same moment: it is theirs and ours
    )
    return newest(specs, world)


def newest(digests: Iterable[str], world: str) -> dict[str, Computation]:
    """Digest → the computation of this version or, of emulations, else the last finished one."""
    found: dict[str, Computation] = {}
    now = versions.version_of(world)
    for part in parts(list(digests)):
        stored = Computation.objects.filter(digest__in=part, world=world).defer("spec")
        if world in PREDICTED:
            stored = stored.filter(code_version=now)
        for computation in stored.order_by("pk"):
            mine = computation.code_version == now
            if mine or (computation.state == "done" and not is_of(found, computation, now)):
                found[computation.digest] = computation
    return found


def is_of(found: Mapping[str, Computation], computation: Computation, code_version: str) -> bool:
    """Whether the computation of this digest that was found already is of this version."""
    earlier = found.get(computation.digest)
    return earlier is not None and earlier.code_version == code_version


def parts(rows: Sequence[Any], size: int = 500) -> list[Sequence[Any]]:
    """`rows` in parts: databases limit the number of values in one statement."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


# Taking -------------------------------------------------------------------------------------------
def waiting(worlds: Sequence[str]) -> QuerySet[Computation]:
    """Computations that wait, and that an execution which is neither paused nor cancelled wants."""
    wanting = Cell.objects.filter(computation=OuterRef("pk"), execution__state="active")
    return Computation.objects.filter(Exists(wanting), state="waiting", world__in=worlds)


def methods_here() -> tuple[str, ...]:
    """Values of `Computation.method` of what this process can compute: EdgeLoom's own methods, and those from
    outside that it has.
    """
    return ("", *installed_code())


def is_any_for_this_worker(worlds: Sequence[str]) -> bool:
    """Whether something waits that this process can compute: for what it cannot it would look in vain."""
    return waiting(worlds).filter(method__in=methods_here()).exists()


def next_waiting(worlds: Sequence[str], count: int) -> list[int]:
    """The ids of what is next for this process: previews first, since somebody looks at them; among equals in
    turns, the one that waited longest first.
    """
    possible = {
        "computation__state": "waiting",
        "computation__world__in": worlds,
        "computation__method__in": methods_here(),
    }
    of_it = Cell.objects.filter(execution=OuterRef("pk"), **possible)
    is_kept = ExpressionWrapper(Q(experiment__isnull=False), output_field=BooleanField())
    active = Execution.objects.filter(Exists(of_it), state="active")
    execution = active.order_by(is_kept, "served_at", "pk").first()
    if execution is None:
        return []
    Execution.objects.filter(pk=execution.pk).update(served_at=timezone.now())
    cells = execution.cells.filter(**possible)
    return list(cells.order_by("index").values_list("computation_id", flat=True)[:count])


def take(worker: workers.Identity, count: int = BATCH) -> list[Computation]:
    """Give this worker, and nobody else, up to `count` predictions that wait."""
    chosen = next_waiting(PREDICTED, count)
    return [mine for computation_id in chosen if (mine := take_one(computation_id, worker))]


def take_one(computation_id: int, worker: workers.Identity) -> Computation | None:
    """Take a computation for this worker; None if another process was first."""
    begun = {"state": "running", "attempts": F("attempts") + 1, "changed_at": timezone.now()}
    return lease.claim(Computation.objects.filter(state="waiting"), computation_id, worker, **begun)


def release(computation: Computation) -> None:
    """Let a computation wait again that was taken but not begun, as if it had not been taken."""
    _leave(computation, state="waiting", worker="", attempts=F("attempts") - 1)


def adopt() -> int:
    """Let what waits since before an upgrade be computed by the present version; returns how many cells."""
    changed = 0
    for world in (*PREDICTED, "emulated"):
        for computation in waiting((world,)).exclude(code_version=versions.version_of(world)):
            changed += relink(computation)
    return changed


def relink(computation: Computation, only: Execution | None = None) -> int:
    """Let the cells of `computation` (of one execution, or all) want the same point of the present code."""
    new, _ = Computation.objects.get_or_create(
        digest=computation.digest,
        world=computation.world,
        code_version=versions.version_of(computation.world),
        defaults={"spec": computation.spec, "method": computation.method},
    )
    cells = Cell.objects.filter(computation=computation)
    if only is not None:
        cells = cells.filter(execution=only)
    return cells.update(computation=new, linked_at=timezone.now())


def renew(computation: Computation, execution: Execution) -> bool:
    """Let a stale result be computed anew, for the cells of `execution`; False if it is not stale.

    The result of older code stays, for whoever looks at it; that of an older calibration is replaced.
    """
    calibration = (computation.result or {}).get("calibration", "")
    if not versions.reason_stale(computation.world, computation.code_version, calibration):
        return False
    if computation.code_version != versions.version_of(computation.world):
        relink(computation, only=execution)
        return True
    ended = Computation.objects.filter(pk=computation.pk, state=computation.state)
    anew: dict[str, Any] = {"state": "waiting", "attempts": 0}
    return bool(ended.update(**anew, run=None, worker="", sentence="", changed_at=timezone.now()))


# Ending -------------------------------------------------------------------------------------------
def keep(computation: Computation, result: Value, wall_s: float, dilation: float | None = None) -> bool:
    """Store the result; False if the computation has another owner by now."""
    kept: dict[str, Any] = {
        "result": to_document(result),
        "wall_s": wall_s,
        "dilation": dilation,
        "sentence": "",
    }
    return _leave(computation, state="done", **kept)


def fail(computation: Computation, sentence: str) -> bool:
    """End a computation without a result: there will be none unless somebody retries."""
    return _leave(computation, state="failed", sentence=sentence)


def give_back(computation: Computation, sentence: str) -> bool:
    """Let a computation wait again whose worker ends or has died; it has failed if that happened
    too often.
    """
    if computation.attempts >= MAX_ATTEMPTS:
        return fail(computation, f"Given up after {MAX_ATTEMPTS} attempts: {sentence}")
    return _leave(computation, state="waiting", worker="", run=None)


def become(computation: Computation, run: Run) -> bool:
    """Hand a planned computation over to its run: from now on that has the owner. False as `keep`."""
    return _leave(computation, worker="", run=run)


def _leave(computation: Computation, **changes: Any) -> bool:
    """Let go of it, with its last changes; False if it has another owner by now."""
    mine = lease.owned(lease.owner_of(computation)).filter(state="running")
    return bool(mine.update(lease_until=None, changed_at=timezone.now(), **changes))


def settle(computation: Computation) -> bool:
    """The worker that had it is gone; False if it is back or somebody else does it."""
    owner = lease.take_over(computation)
    if owner is None:
        return False
    computation.refresh_from_db()
    return give_back(computation, "its worker died in the middle of it.")


def forget(now: datetime | None = None) -> None:
    """Delete what waits and nobody wants any more: points of previews that were replaced."""
    before = (now or timezone.now()) - timedelta(seconds=FORGET_AFTER_S)
    Computation.objects.filter(state="waiting", cells=None, created_at__lt=before).delete()


def designs_since(since: datetime) -> list[Any]:
    """The documents of experiments that were edited, started or computed since, or of which points wait."""
    waiting = Cell.objects.filter(computation__state__in=OPEN).values("execution")
    used = Q(created_at__gte=since) | Q(served_at__gte=since) | Q(pk__in=waiting)
    return [
        *Experiment.objects.filter(updated_at__gte=since).values_list("document", flat=True),
        *Execution.objects.filter(used).values_list("document", flat=True),
    ]
