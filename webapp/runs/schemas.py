"""The bodies of the runs API's requests and answers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import Field, field_validator

from engine.domain.by_hand import EditablePlan
from engine.domain.events import RunState
from engine.domain.finding import Finding
from engine.domain.links import Direction
from engine.domain.plan import Plan
from engine.domain.report import OutcomeKind, RunReport
from engine.domain.spec import RunSpec
from engine.domain.stored import Stored, read_plan, read_report, read_spec, upgrade_spec
from engine.domain.trace import SpanKind
from engine.domain.values import Fraction, NonNegative, Positive, Value, Whole
from engine.experiments.presentation.compared_view import Kind
from engine.reports.compare import Comparison, RunColumn
from engine.reports.finding import finding_of
from engine.reports.metrics import metrics_of_a, values_of
from webapp.accounts.rights import Rights
from webapp.runs.models import FIGURES_IN_COLUMNS, Run
from webapp.runs.waiting import Place, places

MOST_LISTED = 5000
"""Most runs in one answer."""


class PredictionOut(Schema):
    report: RunReport
    plan: Plan | None
    editable: EditablePlan | None = Field(description="The plan as a person may edit it: a parameter `plan`.")


class PointOf(Schema):
    """The experiment that a run is a point of."""

    id: int
    title: str


class RunRow(Schema):
    id: int
    name: str
    status: RunState
    detail: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cluster_name: str
    model: str
    strategy: str
    owner: str
    locked: str | None = Field(description="Why you may not change it; null if you may.")
    queue_position: int | None = Field(description="1 is next; None unless queued.")
    starts_in_s: float | None = Field(description="An estimate for a queued run, if there is one.")
    outcome: OutcomeKind | None
    correct: bool | None
    valid: bool | None
    lossy: bool | None = Field(description="Whether the method may change the result; null if not checked.")
    params: dict[str, Any] = Field(description="Size of the workload, seed, and the strategy's parameters.")
    figures: dict[str, float] = Field(
        description="By name, those that lists show; `/api/metrics` has titles and units."
    )
    tags: list[str]
    experiment: PointOf | None = Field(description="Of which experiment it is a point; null: of none.")


class RunDetail(RunRow):
    figures: dict[str, float] = Field(description="All that its report has, by name.")
    notes: str
    request: dict[str, Any] = Field(description="The RunRequest, with a copy of its cluster.")
    spec: RunSpec | None = Field(description="Null if it cannot be read: `problems` has the reason.")
    plan: Plan | None
    report: RunReport | None
    prediction: RunReport | None = Field(
        description="The simulated world's report of the run as it was before the start."
    )
    finding: Finding | None = Field(description="The report in words.")
    problems: list[str] = Field(
        description="Which stored documents cannot be read, or not completely; why there is no prediction."
    )
    error: str | None


class RunEdit(Schema):
    name: str | None = Field(default=None, max_length=100)
    notes: str | None = None
    tags: list[str] | None = None


class LiveChange(Value):
    """A scenario's change without its time; `engine/domain/scenario.py` has the fields of each kind."""

    kind: Literal[
        "set_rate",
        "set_delay",
        "set_loss",
        "set_jitter",
        "link_down",
        "link_up",
        "slow_device",
        "drop_device",
        "freeze_device",
        "join_device",
    ]
    link: str | None = None
    device: str | None = None
    bit_per_s: Positive | None = None
    delay_s: NonNegative | None = None
    jitter_s: NonNegative | None = None
    loss_frac: Fraction | None = None
    factor: Positive | None = None
    direction: Direction | None = None


class ChangeIn(Schema):
    command: LiveChange


class Accepted(Schema):
    id: int


class Filters(Schema):
    status: str | None = None
    model: str | None = None
    strategy: str | None = None
    cluster: str | None = None
    tag: str | None = None
    search: str | None = None
    limit: int = Field(default=500, ge=1, le=MOST_LISTED)
    offset: int = Field(default=0, ge=0, le=1_000_000_000)


class PathPiece(Schema):
    """A piece of the critical path: what the device of this rank did, or that nothing had ended there."""

    device: int
    kind: SpanKind
    start_s: float
    end_s: float


class Grouped(Schema):
    groups: list[list[Whole]] = Field(max_length=MOST_LISTED, description="Ids of runs.")

    @field_validator("groups")
    @classmethod
    def _as_many_as_a_list_has(cls, groups: list[list[int]]) -> list[list[int]]:
        """Check that the groups have no more runs than a list shows; raises `ValueError`."""
        number = sum(map(len, groups))
        if number > MOST_LISTED:
            raise ValueError(f"have {number} runs, expected at most {MOST_LISTED}, as many as a list shows")
        return groups


class ComparedRun(RunColumn):
    id: int


class ComparisonOut(Comparison):
    baseline: int = Field(description="Id of the run that deltas refer to.")
    runs: tuple[ComparedRun, ...]


class FigureQuery(Schema):
    """A figure of compared runs: which metric against which parameter, coloured by which other one, and as
    what.
    """

    ids: str
    baseline: int | None = None
    y: str | None = None
    x: str | None = None
    hue: str | None = None
    kind: Kind | None = Field(default=None, alias="as")
    log_x: bool | None = Field(default=None, alias="logx")
    log_y: bool = Field(default=False, alias="logy")


def name_of(run: Run) -> str:
    return run.name or f"{run.strategy} on {run.cluster_name}"


def experiments_of(runs: Iterable[Run]) -> dict[int, PointOf]:
    """Run → the newest experiment that it is a point of."""
    computed = Run.objects.filter(pk__in=[run.pk for run in runs]).filter(
        cells__execution__experiment__isnull=False
    )
    wanting = "cells__execution__experiment__"
    names = computed.order_by(f"{wanting}pk").values_list("pk", f"{wanting}pk", f"{wanting}name").distinct()
    return {run: PointOf(id=experiment, title=name) for run, experiment, name in names}


def row(
    run: Run, rights: Rights, place: Place | None = None, experiment: PointOf | None = None
) -> dict[str, Any]:
    """A run as a row of a list. `place` is that of a queued run: a worker may have taken it in between."""
    waits = place if run.status == "queued" else None
    return {
        "id": run.pk,
        "name": name_of(run),
        "status": run.status,
        "detail": waits.problem or waits.waits_for if waits else run.detail,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "cluster_name": run.cluster_name,
        "model": run.model,
        "strategy": run.strategy,
        "owner": run.owner.username if run.owner else "",
        "locked": rights.locked(run.owner),
        "queue_position": waits.position if waits else None,
        "starts_in_s": waits.starts_in_s if waits else None,
        "outcome": run.outcome or None,
        "correct": run.correct,
        "valid": run.valid,
        "lossy": run.lossy,
        "params": run.params,
        "figures": run.figures | in_columns(run),
        "tags": run.tags,
        "experiment": experiment,
    }


def in_columns(run: Run) -> dict[str, float]:
    """The figures that the database has in columns of their own."""
    found = {name: getattr(run, name) for name in FIGURES_IN_COLUMNS}
    return {name: value for name, value in found.items() if value is not None}


def detail(run: Run, rights: Rights) -> dict[str, Any]:
    documents = {
        "spec": read_spec(run.spec, f"The spec of {run}"),
        "plan": read_plan(run.plan, f"The plan of {run}") if run.plan else None,
        "report": read_report(run.report, f"The report of {run}") if run.report else None,
        "prediction": read_report(run.prediction, f"The prediction of {run}") if run.prediction else None,
    }
    place = places().get(run.pk) if run.status == "queued" else None
    stored = documents["report"]
    report = stored.value if stored and isinstance(stored.value, RunReport) else None
    return row(run, rights, place, experiments_of([run]).get(run.pk)) | {
        "figures": values_of(report, metrics_of_a("run")) if report else {},
        "finding": finding_of(report) if report else None,
        "notes": run.notes,
        "request": {key: value for key, value in upgrade_spec(run.request).items() if key != "schema"},
        **{name: one.value if one else None for name, one in documents.items()},
        **({"plan": report.plan} if report and report.plan else {}),
        "problems": problems_of(run, documents.values()),
        "error": run.error or None,
    }


def problems_of(run: Run, documents: Iterable[Stored[Any] | None]) -> list[str]:
    found = [stored.problem for stored in documents if stored and stored.problem]
    return [*found, f"There is no prediction: {run.unpredicted}"] if run.unpredicted else found
