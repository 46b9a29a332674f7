"""What the experiments API answers: rows of lists, details, downloads."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse
from django.utils import timezone

from engine.domain import experiment as domain
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.stored_experiment import read_experiment
from engine.experiments.results.rows import Row
from webapp.experiments import services
from webapp.experiments.analysis import rows_of
from webapp.experiments.design import imported
from webapp.experiments.executions import value_of
from webapp.experiments.models import OPEN, Cell, Execution, Experiment
from webapp.experiments.points import DONE, FAILED, all_points, spec_of, with_points
from webapp.experiments.points import state_of as state_of_point
from webapp.experiments.progress import progress
from webapp.experiments.schemas import ExperimentState, PlannersOut, RowOut, RowsOut
from webapp.experiments.versions import reason_stale, version_of
from webapp.jobs import answers as planning
from webapp.jobs.models import OVER

OVERLAP_S = 5.0
"""A cursor lies so far in the past: a change may be stored a moment after its time."""

LOOKED_AT = 60
"""Points of which it is asked what planner=best would give their methods."""

NOTHING = {"total": 0, "done": 0, "failed": 0, "open": 0}


def state_of(execution: Execution | None, num_open: int) -> ExperimentState:
    if execution is None:
        return "new"
    if execution.state == "cancelled":
        return "cancelled"
    if num_open == 0:
        return "finished"
    return "paused" if execution.state == "paused" else "running"


def counted(executions: list[Execution]) -> dict[int, dict[str, int]]:
    """Execution → how many cells it has, by state."""
    found = (
        Cell.objects.filter(execution__in=executions)
        .order_by()
        .values("execution")
        .annotate(
            total=Count("pk"),
            done=Count("pk", filter=DONE),
            failed=Count("pk", filter=FAILED),
            open=Count("pk", filter=Q(run__status__in=OPEN)),
        )
    )
    numbers: dict[int, dict[str, int]] = {}
    for row in found:
        counts: dict[str, Any] = dict(row)
        numbers[counts.pop("execution")] = counts
    return numbers


def listed(experiments: QuerySet[Experiment], user: User) -> list[dict[str, Any]]:
    last = services.last_executions(experiments)
    counts = counted(list(last.values()))
    return [summary(experiment, last.get(experiment.pk), counts, user) for experiment in experiments]


def summary(
    experiment: Experiment, execution: Execution | None, counts: dict[int, dict[str, int]], user: User
) -> dict[str, Any]:
    numbers = dict(counts.get(execution.pk, NOTHING) if execution else NOTHING)
    return {
        "id": experiment.pk,
        "name": experiment.name,
        "title": str(experiment.document.get("title", "")),
        "owner": experiment.owner.username if experiment.owner else "",
        "may_change": services.may_change(experiment, user),
        "created_at": experiment.created_at,
        "updated_at": experiment.updated_at,
        "version": experiment.version,
        "state": state_of(execution, numbers.pop("open")),
        **numbers,
    }


def detail(experiment: Experiment, user: User) -> dict[str, Any]:
    execution = services.last_execution(experiment)
    stored = read_experiment(experiment.document, f"The experiment {experiment}")
    started = [execution] if execution else []
    return summary(experiment, execution, counted(started), user) | {
        "experiment": stored.value,
        "unreadable": stored.problem,
        "started_version": execution.version if execution else None,
        "progress": progress(execution) if execution else {},
        "stale": num_stale(execution) if execution else 0,
        "code_version": version_of("predicted"),
        "study": imported.origin_of(experiment),
    }


def num_stale(execution: Execution) -> int:
    """Cells whose result another version of the code, or another calibration, has computed."""
    ended = execution.cells.filter(run__status__in=OVER)
    made = ended.values_list("world", "run__code_version", "run__result__calibration")
    counted = made.annotate(Count("pk")).order_by()
    return sum(
        count
        for world, version, calibration, count in counted
        if reason_stale(world, version, calibration or "")
    )


def rows_since(experiment: Experiment, since: float) -> RowsOut:
    if not 0 <= since < 1e11 or not math.isfinite(since):
        raise SpecError(
            f"since is {since}: use the cursor of an earlier answer, or 0.", [("since", "no cursor")]
        )
    cursor = cursor_now()
    execution = services.last_execution(experiment)
    if execution is None:
        return RowsOut(rows=[], cursor=cursor, state="new", progress={})
    found = [RowOut(**row) for row in rows(execution, since)]
    worlds = progress(execution)
    num_open = sum(world.running + world.waiting for world in worlds.values())
    return RowsOut(rows=found, cursor=cursor, state=state_of(execution, num_open), progress=worlds)


def value_and_rows(experiment: Experiment) -> tuple[domain.Experiment, tuple[Row, ...]]:
    """The version that was started last, and its rows; of one that was not started, no rows.

    Raises `SpecError` if a newer version of EdgeLoom stored it in a way that cannot be read here.
    """
    execution = services.last_execution(experiment)
    if execution is None:
        return value_of(experiment), ()
    value, rows = value_of(execution), rows_of(execution)
    worlds = dict.fromkeys((*value.worlds, *(row.world for row in rows)))  # people may emulate later
    return value.model_copy(update={"worlds": tuple(worlds)}), rows


def planners(experiment: Experiment, person: int) -> PlannersOut:
    """What planner=best would give; a planning worker computes it. Raises as `planning.ask`."""
    execution = services.last_execution(experiment)
    if execution is None:
        return PlannersOut(told="", gains=[])
    return PlannersOut.model_validate(planning.ask("plan.experiment_planners", [execution.pk], person))


def some_finished(execution: Execution) -> list[RunSpec]:
    """The runs of at most `LOOKED_AT` finished points, drawn from the whole experiment, in its order."""
    done = execution.cells.filter(DONE).order_by("index")
    numbers = list(dict.fromkeys(done.values_list("run", flat=True)))
    places = sorted(Random(0).sample(range(len(numbers)), min(LOOKED_AT, len(numbers))))
    stored = all_points().in_bulk([numbers[place] for place in places])
    return [spec_of(stored[numbers[place]]) for place in places]


def download(content: str | bytes, content_type: str, name: str) -> HttpResponse:
    disposition = f'attachment; filename="{name}"'
    return HttpResponse(content, content_type=content_type, headers={"Content-Disposition": disposition})


# Rows ---------------------------------------------------------------------------------------------
def rows(execution: Execution, since: float = 0.0) -> list[dict[str, Any]]:
    """All that changed after `since`, seconds since 1970, in the order of the points."""
    cells = with_points(execution.cells.all())
    if since > 0:
        start = datetime.fromtimestamp(since, tz=UTC)
        cells = cells.filter(Q(linked_at__gt=start) | Q(run__changed_at__gt=start))
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
        "alone": "",
        "metrics": {},
        "run_id": None,
        "wall_s": None,
        "code_version": "",
        "calibration": "",
        "stale": "",
    }
    point = cell.run
    if point is None:
        return found
    result = point.result or {}
    calibration = result.get("calibration", "")
    ended = point.status in OVER
    return found | {
        "state": state_of_point(point.status, point.result is not None),
        "outcome": result.get("outcome"),
        "reason": result.get("sentence") or result.get("unfelt", "") if point.result else point.error,
        "alone": result.get("alone", ""),
        "metrics": result.get("metrics", {}),
        "run_id": point.pk if point.listed else None,
        "wall_s": point.wall_s,
        "code_version": point.code_version,
        "calibration": calibration,
        "stale": reason_stale(cell.world, point.code_version, calibration) if ended else "",
    }
