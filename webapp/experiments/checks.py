"""What is wrong with an experiment that somebody designs, how long it will take, and a preview of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from engine.advice.remedies import Remedy
from engine.domain import experiment as domain
from engine.domain.errors import SpecError
from engine.domain.stored import to_document
from engine.experiments.design.expand import Point
from webapp.base import budgets
from webapp.clusters.validation import Problem
from webapp.experiments import analysis, executions, services
from webapp.experiments.answers import rows
from webapp.experiments.design import sizes
from webapp.experiments.design.sources import Limits
from webapp.experiments.models import OPEN
from webapp.experiments.points import newest
from webapp.experiments.progress import Pace, guessed_s, pace_here, slots
from webapp.experiments.schemas import CheckOut, PointOut, PreviewOut, RowOut
from webapp.jobs import answers


def check(fields: dict[str, Any] | None, toml: str | None, user: User) -> CheckOut:
    """Let a planning worker check an experiment; only sizes are checked here. Raises `Unavailable`,
    `TooMany`.
    """
    try:
        value = services.parse(fields, toml)
        large = sizes.is_large(value)
        answer = answers.ask("plan.check_experiment", [to_document(value)], user.pk, large)
    except SpecError as error:
        return CheckOut(**nothing(error))
    return CheckOut.model_validate(answer["check"])


def expanded(value: domain.Experiment) -> CheckOut:
    """Check an experiment in this process, which is a worker's. Raises `SpecError`."""
    points = executions.points_of(value)
    known = predicted([point.digest for point in points if point.spec])
    return CheckOut(**checked(points, known))


def preview(fields: dict[str, Any] | None, toml: str | None, user: User) -> PreviewOut:
    try:
        value = services.parse(fields, toml)
        execution = executions.preview(value, user)
    except SpecError as error:
        return PreviewOut(**nothing(error), rows=[], figures=[], best=[], notes=[], waiting=0)
    found = [RowOut(**row) for row in rows(execution)]
    drawn = analysis.preview_figures(value, analysis.rows_of(execution))
    pace = pace_here()
    waiting = sum(row.state in OPEN for row in found)
    first = found[0].world if found else "predicted"
    points = [
        PointOut(
            index=row.index,
            coordinates=row.coordinates,
            seed=row.seed,
            digest=row.digest,
            problem=row.reason if row.state == "problem" else "",
            emulate_s=emulate_s(pace, row.metrics.get("latency_s")),
        )
        for row in found
        if row.world == first
    ]
    known_s = [row.wall_s for row in found if row.wall_s]
    left_s = waiting * sum(known_s) / len(known_s) / max(1, slots("points")) if known_s else None
    return PreviewOut(
        num_points=len(points),
        limit=budgets.MAX_POINTS,
        problems=drawn.problems,
        points=points,
        predict_s=left_s if waiting else 0.0,
        emulate_s=total_s(points),
        rows=found,
        figures=drawn.figures,
        best=drawn.best,
        notes=[] if waiting else drawn.notes,
        waiting=waiting,
    )


def remedies(fields: dict[str, Any] | None, toml: str | None, user: User) -> list[Remedy]:
    """What would make the methods of an experiment differ; a planning worker looks for it. Raises
    `SpecError`, and as `answers.ask`.
    """
    document = to_document(services.parse(fields, toml))
    found = answers.ask("plan.experiment_remedies", [document], user.pk)
    return [Remedy.parse(one, "remedy") for one in found["remedies"]]


def nothing(error: SpecError) -> dict[str, Any]:
    """The answer about an experiment that has no points."""
    fields = error.fields or [("", str(error))]
    return {
        "num_points": 0,
        "limit": budgets.MAX_POINTS,
        "problems": [Problem(path=path, message=message) for path, message in fields],
        "sentence": str(error),
        "points": [],
        "predict_s": None,
        "emulate_s": None,
    }


def checked(points: Sequence[Point], known: dict[str, float]) -> dict[str, Any]:
    """What a check found of the points. `known` has the virtual seconds of points that are predicted already,
    by digest.
    """
    limits, pace = Limits(), pace_here()
    rows = []
    guess_s = 0.0
    for index, point in enumerate(points):
        problem = point.problem or (limits.problem_of(point.spec, "predicted") if point.spec else "")
        if point.spec is not None and not problem and point.digest not in known:
            guess_s += guessed_s(point.spec)
        rows.append(
            PointOut(
                index=index,
                coordinates=point.coordinates,
                seed=point.seed,
                digest=point.digest,
                problem=problem,
                emulate_s=emulate_s(pace, known.get(point.digest)),
            )
        )
    return {
        "num_points": len(points),
        "limit": budgets.MAX_POINTS,
        "problems": [],
        "points": rows,
        "predict_s": guess_s / max(1, slots("points")),
        "emulate_s": total_s(rows),
    }


def emulate_s(pace: Pace, virtual_s: float | None) -> float | None:
    return None if virtual_s is None else pace.wall_s(virtual_s)


def total_s(points: Sequence[PointOut]) -> float | None:
    """The predicted time of all points; those that are not predicted yet count as the mean of the others."""
    known = [point.emulate_s for point in points if point.emulate_s is not None]
    able = sum(not point.problem for point in points)
    return able * sum(known) / len(known) if known else None


def predicted(digests: Sequence[str]) -> dict[str, float]:
    """Virtual seconds of the points that are predicted already."""
    found = newest(digests, "predicted")
    totals = {digest: (one.result or {}).get("metrics", {}).get("latency_s") for digest, one in found.items()}
    return {digest: total for digest, total in totals.items() if total is not None}
