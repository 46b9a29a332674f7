"""Cells with what they have: rows that pages poll and that the functions of `engine/experiments` read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from webapp.experiments.models import Cell, Execution
from webapp.experiments.versions import reason_stale

OVERLAP_S = 5.0
"""A cursor lies so far in the past: a change may be stored a moment after its time."""


def rows(execution: Execution, since: float = 0.0) -> list[dict[str, Any]]:
    """All that changed after `since`, seconds since 1970, in the order of the points."""
    cells = execution.cells.select_related("computation").defer("computation__spec")
    if since > 0:
        start = datetime.fromtimestamp(since, tz=UTC)
        cells = cells.filter(Q(linked_at__gt=start) | Q(computation__changed_at__gt=start))
    return [row(cell) for cell in cells]


def cursor_now() -> float:
    return (timezone.now() - timedelta(seconds=OVERLAP_S)).timestamp()


def row(cell: Cell) -> dict[str, Any]:
    found = {
        "index": cell.index,
        "world": cell.world,
        "state": "problem",
        "coordinates": cell.coordinates,
        "seed": cell.seed,
        "digest": cell.digest,
        "outcome": None,
        "reason": cell.problem,
        "metrics": {},
        "run_id": None,
        "wall_s": None,
        "code_version": "",
        "calibration": "",
        "stale": "",
    }
    computation = cell.computation
    if computation is None:
        return found
    result = computation.result or {}
    calibration = result.get("calibration", "")
    ended = computation.state in ("done", "failed")
    return found | {
        "state": computation.state,
        "outcome": result.get("outcome"),
        "reason": computation.sentence or result.get("sentence", ""),
        "metrics": result.get("metrics", {}),
        "run_id": computation.run_id,
        "wall_s": computation.wall_s,
        "code_version": computation.code_version,
        "calibration": calibration,
        "stale": reason_stale(cell.world, computation.code_version, calibration) if ended else "",
    }
