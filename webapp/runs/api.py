"""Runs over HTTP: predict, start, list, read, change, stop, replay, compare, export."""

from __future__ import annotations

import json
import zlib
from typing import Annotated, Any, Literal

from django.db import connection
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from ninja.responses import Status

from engine.domain.errors import SpecError
from engine.domain.report import RunReport
from engine.domain.stored import Stored, read_report, to_document
from engine.experiments.presentation.compared_runs import RunsFigure, figure_of_runs
from engine.experiments.presentation.compared_view import Chosen
from engine.reports.compare import check_number, compare
from engine.reports.intervals import Average, averages_of
from webapp.accounts import audit
from webapp.accounts.access import UserRequest, file_reader, one_at_a_time, operator
from webapp.accounts.rights import Rights
from webapp.base import budgets
from webapp.base.errors import Conflict
from webapp.base.redis import redis_needed
from webapp.events import archive, past
from webapp.events.process_log import LogQuery, ProcessLogOut, process_log
from webapp.jobs.models import ACTIVE
from webapp.runs import exports, predictions, services
from webapp.runs.models import DOCUMENTS, FIGURES_IN_COLUMNS, Run
from webapp.runs.replay import ReplayRequest, replayed
from webapp.runs.requests import Pair, RunRequest, reasons_against, spec_of
from webapp.runs.schemas import (
    Accepted,
    ChangeIn,
    ComparisonOut,
    FigureQuery,
    Filters,
    Grouped,
    PathPiece,
    PredictionOut,
    RunDetail,
    RunEdit,
    RunRow,
    detail,
    experiments_of,
    in_columns,
    name_of,
    row,
)
from webapp.runs.waiting import places

router = Router(tags=["runs"])
MOST_EXPORTED = 5000


@router.post("/predict", response=PredictionOut, auth=operator)
def predict(request: UserRequest, body: RunRequest) -> dict[str, Any]:
    """The same run in the simulated world, by a planning worker: figures, plan, memory per device."""
    answer = predictions.request(spec_of(body), request.auth.pk)
    return {**answer, "plan": answer["report"]["plan"]}


@router.post("/supports", response=dict[str, str | None], auth=operator)
def get_supports(request: HttpRequest, body: Pair) -> dict[str, str | None]:
    """For each strategy the sentence why it cannot run this model on this cluster, or null."""
    return reasons_against(body)


@router.post("/runs", response={201: Accepted}, auth=operator)
def start_run(request: UserRequest, body: RunRequest) -> Status[dict[str, Any]]:
    return Status(201, {"id": services.create(body, request.auth).pk})


@router.get("/runs", response=list[RunRow])
def list_runs(request: UserRequest, filters: Query[Filters]) -> list[dict[str, Any]]:
    """The runs that fit the filters, newest first."""
    waits = places()
    page = list(filtered(filters)[filters.offset : filters.offset + filters.limit])
    rights, points = Rights.of(request.auth), experiments_of(page)
    return [row(run, rights, waits.get(run.pk), points.get(run.pk)) for run in page]


def filtered(filters: Filters) -> QuerySet[Run]:
    runs = Run.objects.select_related("owner").defer(*DOCUMENTS, "result", "notes", "error")
    exact = {
        "status": filters.status,
        "model": filters.model,
        "strategy": filters.strategy,
        "cluster_name": filters.cluster,
    }
    runs = runs.filter(**{field: value for field, value in exact.items() if value is not None})
    if filters.tag is not None:
        if connection.features.supports_json_field_contains:
            runs = runs.filter(tags__contains=[filters.tag])
        else:  # SQLite: look for the tag as it is written in there
            runs = runs.filter(tags__icontains=json.dumps(filters.tag))
    if filters.search:
        fields = ("name", "notes", "cluster_name", "model", "strategy", "tags")
        any_field = Q()
        for field in fields:
            any_field |= Q(**{f"{field}__icontains": filters.search})
        runs = runs.filter(any_field)
    return runs


@router.get("/runs/export/{kind}", auth=file_reader)
@one_at_a_time
def export_runs(request: UserRequest, kind: Literal["csv", "parquet"], ids: str) -> HttpResponse:
    """The rows of these runs, `ids=1,2,3`, newest first."""
    chosen = Run.objects.select_related("owner").defer(*DOCUMENTS, "result")
    rights = Rights.of(request.auth)
    rows = [row(run, rights) for run in chosen.filter(pk__in=parse_ids(ids)[:MOST_EXPORTED])]
    columns = exports.columns_of(rows)
    if kind == "csv":
        return download(exports.runs_csv(columns), "text/csv; charset=utf-8", "runs.csv")
    return download(exports.runs_parquet(columns), "application/vnd.apache.parquet", "runs.parquet")


@router.get("/runs/{int:run_id}", response=RunDetail)
def get_run(request: UserRequest, run_id: int) -> dict[str, Any]:
    return detail(services.find(run_id), Rights.of(request.auth))


@router.patch("/runs/{int:run_id}", response=RunDetail, auth=operator)
def edit_run(request: UserRequest, run_id: int, edit: RunEdit) -> dict[str, Any]:
    services.owned(run_id, request.auth)
    budgets.check_labels(edit.name or "", edit.notes or "", edit.tags or [])
    Run.objects.filter(pk=run_id).update(**edit.model_dump(exclude_none=True))
    return detail(services.find(run_id), Rights.of(request.auth))


@router.delete("/runs/{int:run_id}", response={204: None}, auth=operator)
def delete_run(request: UserRequest, run_id: int) -> Status[None]:
    run = services.owned(run_id, request.auth)
    if run.status in ACTIVE:
        raise Conflict(f"{run} is {run.status}: cancel it before deleting it.")
    services.delete(run)
    audit.note(request.auth, "deleted", f"run {run_id}, {name_of(run)}")
    return Status(204, None)


@router.post("/runs/{int:run_id}/cancel", response={202: None}, auth=operator)
def cancel_run(request: UserRequest, run_id: int) -> Status[None]:
    services.cancel(services.owned(run_id, request.auth), request.auth.username)
    audit.note(request.auth, "cancelled", f"run {run_id}")
    return Status(202, None)


@router.post("/runs/{int:run_id}/changes", response={202: Accepted}, auth=operator)
def change_run(request: UserRequest, run_id: int, body: ChangeIn) -> Status[dict[str, Any]]:
    """Request a change now; the run's events confirm it when it is in force (`link_changed`, `device_lost`,
    …).
    """
    number = services.change(services.owned(run_id, request.auth), body.command, request.auth.username)
    given = body.command.model_dump(mode="json", exclude_none=True)
    audit.note(request.auth, "changed", f"run {run_id}: {json.dumps(given)}")
    return Status(202, {"id": number})


@router.post("/runs/{int:run_id}/replay", response={201: Accepted}, auth=operator)
def replay_run(request: UserRequest, run_id: int, body: ReplayRequest) -> Status[dict[str, Any]]:
    """The same run again, with what was done live as its scenario, and with these fields instead."""
    run = services.find(run_id)
    return Status(201, {"id": services.create(replayed(run, body), request.auth).pk})


@router.get("/runs/{int:run_id}/events")
def get_events(request: HttpRequest, run_id: int, since: int = 0) -> HttpResponse:
    """`{cursor, events}`: a page of events after the batch `since`. Request pages until one is empty."""
    services.find(run_id)
    with redis_needed():
        batches = archive.page_of_history(run_id, since)
    cursor = batches[-1].number if batches else since
    events = ",".join(batch.events[1:-1] for batch in batches)
    return HttpResponse(f'{{"cursor":"{cursor}","events":[{events}]}}', content_type="application/json")


@router.get("/runs/{int:run_id}/past")
def get_past(
    request: HttpRequest, run_id: int, since: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0
) -> HttpResponse:
    """The past in binary form: the events after the batch `since` as columns, which pages read faster than
    `events`.

    Chunks follow each other (webapp/runs/columns.py); four bytes of zeros end the past, without them request
    what comes after the newest cursor.
    """
    services.find(run_id)
    with redis_needed():
        page = past.page_of_past(run_id, since)
    answer = HttpResponse(content_type="application/octet-stream", headers={"Vary": "Accept-Encoding"})
    if "deflate" in request.headers.get("Accept-Encoding", ""):
        answer.content, answer["Content-Encoding"] = page, "deflate"
    else:
        answer.content = zlib.decompress(page)
    return answer


@router.get("/runs/{int:run_id}/process-log", response=ProcessLogOut)
def get_process_log(request: HttpRequest, run_id: int, query: Query[LogQuery]) -> ProcessLogOut:
    """What the processes of the devices wrote, a page at a time: ask with `since` = `cursor` while `more`."""
    with redis_needed():
        devices = [row["name"] for row in services.find(run_id).spec["cluster"]["devices"]]
        return process_log(run_id, devices, query)


@router.get("/runs/{int:run_id}/report.json")
def get_report_json(request: HttpRequest, run_id: int) -> HttpResponse:
    """The report as JSON of the present form; one that cannot be read is given as it was stored."""
    run = with_report(run_id)
    report = stored_report(run).value
    document = run.report if report is None else to_document(report)
    return download(json.dumps(document, indent=2), "application/json", f"run-{run_id}.json")


@router.get("/runs/{int:run_id}/report.csv", auth=file_reader)
@one_at_a_time
def get_report_csv(request: HttpRequest, run_id: int) -> HttpResponse:
    report = stored_report(with_report(run_id)).needed()
    return download(exports.report_csv(report), "text/csv; charset=utf-8", f"run-{run_id}.csv")


@router.get("/runs/{int:run_id}/trace.json", auth=file_reader)
@one_at_a_time
def get_trace(request: HttpRequest, run_id: int) -> HttpResponse:
    """The trace of a run as Chrome's JSON: open it in ui.perfetto.dev."""
    run = services.find(run_id)
    with redis_needed():
        trace = exports.perfetto(run)
    return download(json.dumps(trace), "application/json", f"run-{run_id}-trace.json")


@router.get("/runs/{int:run_id}/critical-path", response=list[PathPiece])
@one_at_a_time
def get_critical_path(request: HttpRequest, run_id: int) -> list[PathPiece]:
    """The activities that the end of the run waited for, from its end back to the first arrival."""
    run = with_report(run_id)
    with redis_needed():
        return exports.path_of(run, stored_report(run).needed())


@router.post("/runs/averages", response=list[dict[str, Average]])
def average_runs(request: HttpRequest, body: Grouped) -> list[dict[str, Average]]:
    """For each group of runs and figure the mean with its 95 % interval, the median and the extremes."""
    wanted = {run_id for group in body.groups for run_id in group}
    rows = Run.objects.filter(pk__in=wanted).only("figures", *FIGURES_IN_COLUMNS)
    figures = {run.pk: run.figures | in_columns(run) for run in rows}
    return [averages_of(figures[run_id] for run_id in group if run_id in figures) for group in body.groups]


def with_report(run_id: int) -> Run:
    run = services.find(run_id)
    if run.report is None:
        raise Conflict(f"{run} has no report: it is {run.status}.")
    return run


def stored_report(run: Run) -> Stored[RunReport]:
    return read_report(run.report or {}, f"The report of {run}")


def download(text: str | bytes, content_type: str, name: str) -> HttpResponse:
    disposition = f'attachment; filename="{name}"'
    return HttpResponse(text, content_type=content_type, headers={"Content-Disposition": disposition})


@router.get("/compare", response=ComparisonOut)
@one_at_a_time
def compare_runs(
    request: HttpRequest, ids: str, baseline: int | None = None, grouped: bool | None = None
) -> dict[str, Any]:
    """Compare 2 to 50 runs by their ids, `ids=1,2,3`; deltas refer to the run `baseline`, else to the first.
    `grouped`: the columns are groups of repeats; else single runs; if not given, groups where there are
    several with repeats.
    """
    runs, reports, base = chosen_runs(ids, baseline)
    data = compare(reports, [run.pk for run in runs].index(base), grouped).model_dump()
    for column, run in zip(data["runs"], runs, strict=True):
        column |= {"id": run.pk, "name": name_of(run)}
    return data | {"baseline": base}


@router.get("/compare/figure", response=RunsFigure | None)
@one_at_a_time
def figure_of_compared_runs(request: HttpRequest, query: Query[FigureQuery]) -> RunsFigure | None:
    """The runs as an experiment whose factors are the parameters in which they differ; null where no two of
    them have a figure in common. What is not asked for follows from the runs.
    """
    runs, reports, base = chosen_runs(query.ids, query.baseline)
    named = [
        report.model_copy(update={"spec": report.spec.model_copy(update={"name": name_of(run)})})
        for run, report in zip(runs, reports, strict=True)
    ]
    names = [str(run.pk) for run in runs]
    chosen = Chosen(
        metric=query.y, x=query.x, series=query.hue, kind=query.kind, log_x=query.log_x, log_y=query.log_y
    )
    return figure_of_runs(reports, names, compare(named, names.index(str(base))), chosen)


def chosen_runs(ids: str, baseline: int | None) -> tuple[list[Run], list[RunReport], int]:
    """The runs with their reports, and the id of the baseline."""
    chosen = parse_ids(ids)
    check_number(len(chosen))  # before their reports are read
    base = chosen[0] if baseline is None else baseline
    if base not in chosen:
        sentence = f"baseline is {base}, which is not among the runs {ids}."
        raise SpecError(sentence, [("baseline", "not in ids")])
    runs = [with_report(run_id) for run_id in chosen]
    return runs, [stored_report(run).needed() for run in runs], base


def parse_ids(text: str) -> list[int]:
    try:
        ids = [int(part) for part in text.split(",")]
    except ValueError:
        sentence = f"ids is {text!r}, expected numbers like 1,2,3."
        raise SpecError(sentence, [("ids", "expected numbers")]) from None
    if len(set(ids)) < len(ids):
        raise SpecError(f"ids is {text}, with a run twice: give each once.", [("ids", "a run twice")])
    return ids
