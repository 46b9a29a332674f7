"""What a run may have recorded: example traces of link rates, and uploaded files of rates and of requests."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import File, Form, Router, Schema
from ninja.files import UploadedFile

from engine.domain.errors import SpecError
from engine.domain.scenario import Scenario
from engine.domain.workload import TracedRequest
from engine.recorded.scenarios import parse_trace
from topologies.traces import FOLDER, TRACES
from webapp.accounts.access import one_at_a_time, operator
from webapp.base.files import read_requests, read_scenario

router = Router(tags=["catalogue"])
MAX_FILE_BYTES = 8_000_000


class TraceOut(Schema):
    name: str
    about: str


class RequestsOut(Schema):
    """Requests in the order of their arrival, and what was done to them, as sentences."""

    requests: list[TracedRequest]
    notes: list[str]


@router.get("/traces", response=list[TraceOut])
def list_traces(request: HttpRequest) -> list[TraceOut]:
    return [TraceOut(name=name, about=(make.__doc__ or "").strip()) for name, make in TRACES.items()]


@router.get("/traces/{name}", response=Scenario)
def get_trace_scenario(request: HttpRequest, name: str) -> Scenario:
    """An example trace as a scenario; replace its one link by one of your cluster."""
    if name not in TRACES:
        sentence = f"There is no trace {name}: choose one of {', '.join(TRACES)}."
        raise SpecError(sentence, [("scenario", f"unknown: {name}")])
    return parse_trace((FOLDER / f"{name}.csv").read_text(encoding="utf-8"), f"{name}.csv")


@router.post("/scenarios", response=Scenario, auth=operator)
@one_at_a_time
def read_scenario_file(
    request: HttpRequest, file: File[UploadedFile], link: Form[str] = "", options: Form[str] = ""
) -> Scenario:
    """A scenario in TOML or JSON, or recorded rates → its changes. Nothing is stored.

    `link` gets the rates of a file that names none; `options` say which part of the file: `until_s=60`.
    """
    return read_scenario(_text_of(file, "scenario"), str(file.name), link, options)


@router.post("/requests", response=RequestsOut, auth=operator)
@one_at_a_time
def read_requests_file(
    request: HttpRequest, file: File[UploadedFile], options: Form[str] = ""
) -> RequestsOut:
    """Recorded requests, ours, Azure's or BurstGPT's → a workload's trace. Nothing is stored."""
    found = read_requests(_text_of(file, "trace"), str(file.name), options)
    return RequestsOut(requests=list(found.requests), notes=list(found.notes))


def _text_of(file: UploadedFile, field: str) -> str:
    if (file.size or 0) > MAX_FILE_BYTES:
        why = f"is larger than {MAX_FILE_BYTES / 1e6:.0f} MB"
        raise SpecError(f"{file.name}: {why}: give a shorter file.", [(field, why)])
    try:
        text: str = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{file.name}: is not UTF-8 text.", [(field, "is not text")]) from error
    return text
