"""Experiments over HTTP: check, preview, store, start, follow, pause, cancel, retry."""

from __future__ import annotations

from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from ninja import File, Router
from ninja.files import UploadedFile
from ninja.responses import Status

from engine.advice.remedies import Remedy
from engine.domain.errors import SpecError
from engine.domain.presented import Figure, Presented, Table
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.figure_values import FigureData
from engine.experiments.results.pivot import TableData, table_data
from engine.reproductions.summary import Reproductions
from engine.reproductions.verdicts import FigureVerdict
from webapp.accounts import audit
from webapp.accounts.access import UserRequest, check_operator, file_reader, one_at_a_time, operator
from webapp.base import budgets
from webapp.base.bodies import checked_json
from webapp.experiments import analysis, answers, checks, executions, exports, services
from webapp.experiments.design import imported, library, studies
from webapp.experiments.design.factor_option import FactorOption
from webapp.experiments.design.factors import options
from webapp.experiments.models import Experiment
from webapp.experiments.schemas import (
    AnalysisOut,
    BaseIn,
    CheckOut,
    Emulate,
    ExperimentEdit,
    ExperimentIn,
    ExperimentOut,
    ExperimentRow,
    FigureIn,
    PlannersOut,
    PreviewOut,
    Retried,
    Retry,
    RowsOut,
    ShippedOut,
    StudyOut,
    StudyResultsOut,
    TableIn,
)

Kind = TypeVar("Kind", bound=Presented)

router = Router(tags=["experiments"])


# Designing ----------------------------------------------------------------------------------------
@router.post("/check", response=CheckOut)
def check_experiment(request: UserRequest, body: ExperimentIn) -> CheckOut:
    """Check an experiment: how many points, how long they take, and what is wrong; it lists that, and refuses
    nothing.
    """
    return checks.check(body.experiment, body.toml, request.auth)


@router.post("/preview", response=PreviewOut, auth=operator)
def preview_experiment(request: UserRequest, body: ExperimentIn) -> PreviewOut:
    """Check an experiment, and predict its points: repeat the request until none waits. Each person has one
    preview, the last that they asked for.
    """
    return checks.preview(body.experiment, body.toml, request.auth)


@router.post("/remedies", response=list[Remedy], auth=operator)
def find_remedies(request: UserRequest, body: ExperimentIn) -> list[Remedy]:
    """Where all methods of an experiment come to one plan: changes of its base after which they differ, each
    checked by prediction.
    """
    return checks.remedies(body.experiment, body.toml, request.auth)


@router.post("/factors", response=list[FactorOption])
def list_factors(request: HttpRequest, body: BaseIn) -> list[FactorOption]:
    """What may be varied in a run like `base`, with units and sensible ranges."""
    return options(body.base)


@router.get("/shipped", response=list[ShippedOut])
def list_shipped(request: HttpRequest) -> list[ShippedOut]:
    """The experiments that come with EdgeLoom: store a copy to carry one out."""
    return library.shipped()


@router.get("/reproductions", response=Reproductions)
def get_reproductions(request: HttpRequest) -> Reproductions:
    """How the published figures of the papers compare with ours, by the results that come with EdgeLoom."""
    return library.reproductions()


@router.get("/reproductions/{name}", response=list[FigureVerdict])
def get_reproduction(request: HttpRequest, name: str) -> list[FigureVerdict]:
    """Every published figure of one table or figure beside ours."""
    return library.verdicts(name)


# Storing ------------------------------------------------------------------------------------------
@router.get("", response=list[ExperimentRow])
def list_experiments(request: UserRequest) -> list[dict[str, Any]]:
    """The stored experiments, newest first."""
    return answers.listed(Experiment.objects.select_related("owner"), request.auth)


@router.post("", response={201: ExperimentOut}, auth=operator)
def create_experiment(request: UserRequest, body: ExperimentIn) -> Status[dict[str, Any]]:
    value = services.parse(body.experiment, body.toml, body.files)
    return Status(201, answers.detail(services.create(value, body.name, request.auth), request.auth))


@router.post("/study", response={201: StudyOut}, auth=operator)
@one_at_a_time
def import_study(request: UserRequest, file: File[UploadedFile]) -> Status[StudyOut]:
    """Store the experiments of a study's archive as your own, to carry them out here. Its results are kept
    beside them, for `results` to compare with; they count for nothing else. No code in it is run.
    """
    return Status(201, studies.take(file.read(budgets.MAX_STUDY_BYTES + 1), str(file.name), request.auth))


@router.get("/{int:experiment_id}", response=ExperimentOut)
def get_experiment(request: UserRequest, experiment_id: int) -> dict[str, Any]:
    return answers.detail(services.find(experiment_id), request.auth)


@router.put("/{int:experiment_id}", response=ExperimentOut, auth=operator)
def update_experiment(request: UserRequest, experiment_id: int, edit: ExperimentEdit) -> dict[str, Any]:
    """What was started before goes on as it was frozen then."""
    experiment = services.owned(experiment_id, request.auth)
    only_name = edit.experiment is None and edit.toml is None
    value = None if only_name else services.parse(edit.experiment, edit.toml, edit.files)
    return answers.detail(services.edit(experiment, value, edit.name, edit.version), request.auth)


@router.delete("/{int:experiment_id}", response={204: None}, auth=operator)
def delete_experiment(request: UserRequest, experiment_id: int) -> Status[None]:
    """Delete an experiment. Its runs, and the results that other experiments share, are kept."""
    experiment = services.owned(experiment_id, request.auth)
    executions.delete(experiment, request.auth.username)
    audit.note(request.auth, "deleted", f"experiment {experiment_id}, {experiment.name}")
    return Status(204, None)


# Carrying out -------------------------------------------------------------------------------------
@router.post("/{int:experiment_id}/predict", response={202: ExperimentOut}, auth=operator)
def predict_experiment(request: UserRequest, experiment_id: int) -> Status[dict[str, Any]]:
    """Freeze the present version and predict all of its points."""
    experiment = services.owned(experiment_id, request.auth)
    executions.start(experiment)
    return Status(202, answers.detail(experiment, request.auth))


@router.post("/{int:experiment_id}/emulate", response={202: ExperimentOut}, auth=operator)
def emulate_experiment(request: UserRequest, experiment_id: int, body: Emulate) -> Status[dict[str, Any]]:
    """Emulate points of the present version, or run them on boards, one after the other, behind the runs that
    people ask for.
    """
    experiment = services.owned(experiment_id, request.auth)
    if bool(body.digests) == bool(body.choose):
        raise SpecError("Which points? Give either digests or choose.", [("digests", "give these or choose")])
    executions.carry_out(experiment, set(body.digests) if body.digests else None, body.world)
    return Status(202, answers.detail(experiment, request.auth))


@router.post("/{int:experiment_id}/pause", response={202: ExperimentOut}, auth=operator)
def pause_experiment(request: UserRequest, experiment_id: int) -> Status[dict[str, Any]]:
    experiment = services.owned(experiment_id, request.auth)
    executions.pause(experiment)
    return Status(202, answers.detail(experiment, request.auth))


@router.post("/{int:experiment_id}/resume", response={202: ExperimentOut}, auth=operator)
def resume_experiment(request: UserRequest, experiment_id: int) -> Status[dict[str, Any]]:
    experiment = services.owned(experiment_id, request.auth)
    executions.resume(experiment)
    return Status(202, answers.detail(experiment, request.auth))


@router.post("/{int:experiment_id}/cancel", response={202: ExperimentOut}, auth=operator)
def cancel_experiment(request: UserRequest, experiment_id: int) -> Status[dict[str, Any]]:
    experiment = services.owned(experiment_id, request.auth)
    executions.cancel(experiment, request.auth.username)
    audit.note(request.auth, "cancelled", f"experiment {experiment_id}, {experiment.name}")
    return Status(202, answers.detail(experiment, request.auth))


@router.post("/{int:experiment_id}/retry", response={202: Retried}, auth=operator)
def retry_experiment(request: UserRequest, experiment_id: int, body: Retry) -> Status[dict[str, Any]]:
    """Compute points again: those that failed, or those of an older version of the code."""
    experiment = services.owned(experiment_id, request.auth)
    return Status(202, {"count": executions.retry(experiment, stale=body.scope == "stale")})


@router.post("/{int:experiment_id}/repeat", response={202: ExperimentOut}, auth=operator)
def repeat_study(request: UserRequest, experiment_id: int) -> Status[dict[str, Any]]:
    """Compute here what the study has of which the experiment was imported: predict all points, and emulate
    those that it has emulated.
    """
    experiment = services.owned(experiment_id, request.auth)
    imported.repeat(experiment)
    return Status(202, answers.detail(experiment, request.auth))


@router.get("/{int:experiment_id}/study", response=StudyResultsOut)
@one_at_a_time
def get_study_results(request: HttpRequest, experiment_id: int) -> StudyResultsOut:
    """The results of the study of which the experiment was imported, beside those of the same runs here."""
    return imported.results(services.find(experiment_id))


@router.get("/{int:experiment_id}/rows", response=RowsOut)
def list_rows(request: HttpRequest, experiment_id: int, since: float = 0.0) -> RowsOut:
    """The rows of the version that was started last that changed after the cursor `since`, and perhaps some
    that have not. Ask again every second or so while points wait or run.
    """
    return answers.rows_since(services.find(experiment_id), since)


# Looking at results -------------------------------------------------------------------------------
@router.get("/{int:experiment_id}/analysis", response=AnalysisOut)
@one_at_a_time
def get_analysis(request: HttpRequest, experiment_id: int) -> AnalysisOut:
    """All figures, tables and claims of the experiment, from the rows that it has so far."""
    return analysis.analysis(*answers.value_and_rows(services.find(experiment_id)))


@router.get("/{int:experiment_id}/planners", response=PlannersOut)
def get_planners(request: UserRequest, experiment_id: int) -> PlannersOut:
    """What planner=best would give the methods that followed their papers' rules, at a few points."""
    return answers.planners(services.find(experiment_id), request.auth.pk)


@router.post("/{int:experiment_id}/figure", response=FigureData)
@one_at_a_time
def make_figure(request: HttpRequest, experiment_id: int, body: FigureIn) -> FigureData:
    """A figure that the experiment does not have; nothing is stored."""
    budgets.check_conditions(body.figure.where)
    value, rows = answers.value_and_rows(services.find(experiment_id))
    return figure_data(value, body.figure, rows)


@router.post("/{int:experiment_id}/table", response=TableData)
@one_at_a_time
def make_table(request: HttpRequest, experiment_id: int, body: TableIn) -> TableData:
    """A table that the experiment does not have; nothing is stored."""
    budgets.check_conditions(body.table.where)
    value, rows = answers.value_and_rows(services.find(experiment_id))
    return table_data(value, body.table, rows)


@router.get("/{int:experiment_id}/export/{kind}", auth=file_reader)
@one_at_a_time
def export_experiment(
    request: UserRequest,
    experiment_id: int,
    kind: str,
    figure: str = "",
    table: str = "",
    size: str = "",
    sources: bool = False,
) -> HttpResponse:
    """A file to keep: toml, json, html (everything), zip (a study, with runs
    and digests, that `edgeloom study` repeats), svg and pdf (a `figure`, or the first), tex (a `table`,
    or all), csv and parquet (the numbers of a `figure` or of a `table`, or all points). Figure and table are
    each a name, or the JSON of one that the experiment does not have. `size` is that of a drawn figure: one
    or two columns of IEEE's or ACM's papers. A study with `sources` has the source of methods that are
    installed here and not EdgeLoom's, which only operators may have.
    """
    if sources:
        check_operator(request.auth)
    experiment = services.find(experiment_id)
    if kind == "toml":  # as it is now, also before it was started
        source = exports.Source(executions.value_of(experiment), None, ())
    else:
        value, rows = answers.value_and_rows(experiment)
        execution = services.last_execution(experiment)
        shown = (composed(Figure, figure, "figure"), composed(Table, table, "table"), size)
        source = exports.Source(value, execution, rows, *shown, with_sources=sources)
    file = exports.file_of(kind, source)
    return answers.download(file.content, file.content_type, f"{source.experiment.name}.{kind}")


def composed(of: type[Kind], text: str, field: str) -> Kind | str:
    """The name as it is, or the value of its JSON. Raises `SpecError`."""
    if not text.startswith("{"):
        return text
    value: Kind = of.parse(checked_json(text.encode()), field)
    budgets.check_conditions(value.where)
    return value
