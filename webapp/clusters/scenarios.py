"""Scenarios (timed changes of a run): example traces of link rates, and uploaded files."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import File, Router, Schema
from ninja.files import UploadedFile

from engine.cli.scenario_file import parse_trace
from engine.domain.errors import SpecError
from engine.domain.scenario import Scenario
from topologies.traces import FOLDER, TRACES
from webapp.accounts.access import one_at_a_time, operator
from webapp.base.files import read_scenario

router = Router(tags=["catalogue"])
MAX_FILE_BYTES = 1_000_000


class TraceOut(Schema):
    name: str
    about: str


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
def read_scenario_file(request: HttpRequest, file: File[UploadedFile]) -> Scenario:
    """A CSV trace, or a scenario in TOML or JSON → its changes. Nothing is stored."""
    name = str(file.name)
    if (file.size or 0) > MAX_FILE_BYTES:
        why = f"is larger than {MAX_FILE_BYTES / 1e6:.0f} MB"
        raise SpecError(f"{name}: {why}: give a shorter scenario.", [("scenario", why)])
    try:
        text = file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(f"{name}: is not UTF-8 text.", [("scenario", "is not text")]) from error
    return read_scenario(text, name)
