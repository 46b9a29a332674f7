"""What a run may have recorded: example traces of link rates, and files of rates, of requests, of prompts."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest
from ninja import File, Form, Router, Schema
from ninja.files import UploadedFile
from pydantic import Field

from engine.domain.errors import SpecError
from engine.domain.scenario import Scenario
from engine.domain.workload import TracedRequest
from topologies.traces import LINK, played_on, traces
from webapp.accounts.access import UserRequest, one_at_a_time, operator
from webapp.base import budgets
from webapp.base.files import read_prompts, read_requests, read_scenario
from webapp.clusters.catalogue import resolve_model
from webapp.jobs.answers import ask

router = Router(tags=["catalogue"])
MAX_FILE_BYTES = 8_000_000
MAX_PROMPTS_BYTES = 1_000_000
"""Their tokens come back with the run's request, a number for a byte at most."""


class TraceOut(Schema):
    name: str
    about: str


class RequestsOut(Schema):
    """Requests in the order of their arrival, and what was done to them, as sentences."""

    requests: list[TracedRequest]
    notes: list[str]


@router.get("/traces", response=list[TraceOut])
def list_traces(request: HttpRequest) -> list[TraceOut]:
    return [TraceOut(name=name, about=trace.about) for name, trace in traces().items()]


@router.get("/traces/{name}", response=Scenario)
def get_trace_scenario(request: HttpRequest, name: str) -> Scenario:
    """An example trace as a scenario; replace its one link by one of your cluster."""
    if name not in traces():
        sentence = f"There is no trace {name}: choose one of {', '.join(traces())}."
        raise SpecError(sentence, [("scenario", f"unknown: {name}")])
    return played_on(traces()[name].file, LINK)


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
    budgets.check_trace(len(found.requests), str(file.name))
    return RequestsOut(requests=list(found.requests), notes=list(found.notes))


class PromptsIn(Schema):
    """Whose tokens prompts become, and when they arrive where they do not say it: `rate_per_s` a second at
    random, else all at time 0. `new_tokens` is for those that do not say how many they get.
    """

    model: str
    weights: Literal["random"] | None = None
    new_tokens: int = Field(default=16, gt=0)
    rate_per_s: float | None = Field(default=None, ge=budgets.LEAST_RATE_PER_S, le=1e9)
    seed: int = Field(default=0, ge=0, lt=2**63)


@router.post("/prompts", response=RequestsOut, auth=operator)
@one_at_a_time
def read_prompts_file(
    request: UserRequest, file: File[UploadedFile], asked: Form[PromptsIn], options: Form[str] = ""
) -> RequestsOut:
    """Prompts as JSONL → a workload's trace, with the tokens of one model. Nothing is stored."""
    prompts = read_prompts(_text_of(file, "trace", MAX_PROMPTS_BYTES), str(file.name), options)
    model, weights = resolve_model(asked.model, asked.weights)
    arguments = [model.model_dump(mode="json"), weights.model_dump(mode="json")]
    numbers = [asked.new_tokens, asked.rate_per_s, asked.seed]
    answer = ask("plan.prompts", [prompts, *arguments, *numbers], request.auth.pk, large=True)
    return RequestsOut(requests=answer["requests"], notes=[])


def _text_of(file: UploadedFile, field: str, most_bytes: int = MAX_FILE_BYTES) -> str:
    if (file.size or 0) > most_bytes:
        why = f"is larger than {most_bytes / 1e6:.0f} MB"
        raise SpecError(f"{file.name}: {why}: give a shorter file.", [(field, why)])
    try:
        text: str = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{file.name}: is not UTF-8 text.", [(field, "is not text")]) from error
    return text
