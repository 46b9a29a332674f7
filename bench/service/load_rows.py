"""What the database of a load has: people with tokens, stored runs; and what became of new runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError

from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import CharField, F, Value
from django.db.models.functions import Cast, Concat

from bench.trials.requests import request_of_all
from bench.trials.session import LINES
from engine.domain.events import EVENTS, Logged
from engine.domain.report import RunReport
from engine.domain.stored import to_document
from engine.runs.predict import predict
from webapp.accounts import tokens
from webapp.events import archive
from webapp.jobs import announcement
from webapp.runs.models import Run
from webapp.runs.requests import spec_of


def are_ready(queues: set[str]) -> bool:
    return queues <= {one.queue for one in announcement.announced()}


class Rows:
    """What load tests need of the database: `body` is what people send to start a run; `viewer` and
    `operators` are secrets of API tokens.
    """

    def __init__(self, directory: Path, stored: int, people: int):
        request = request_of_all()
        self.body: dict[str, Any] = request.model_dump(mode="json", exclude_defaults=True)
        report: RunReport = predict(spec_of(request)).model_copy(update={"world": "emulated"})
        (directory / "report.json").write_text(report.model_dump_json())
        self.viewer = token_of("viewer", 0)
        self.operators = [token_of("operator", number) for number in range(people)]
        store_runs(stored, report, to_document(request), User.objects.get(username="operator0"))

    def answers(self, api: Any) -> bool:
        try:
            return bool(api.send("GET", "/api/health"))
        except URLError:
            return False

    def are_over(self, run_ids: list[int]) -> bool:
        return not Run.objects.filter(pk__in=run_ids, archived=False).exists()

    def problems(self, run_ids: list[int], expected: int) -> list[str]:
        found = [] if len(run_ids) == expected else [f"{len(run_ids)} of {expected} runs could be started"]
        for run in Run.objects.filter(pk__in=run_ids):
            events = [
                event
                for batch in archive.history(run.pk, 0)
                for event in EVENTS.validate_json(batch.events)
                if isinstance(event, Logged) and event.text.startswith("line ")
            ]
            if run.status != "finished" or [event.text for event in events] != expected_lines():
                found.append(f"run {run.pk} is {run.status} with {len(events)} lines")
        return found


def expected_lines() -> list[str]:
    return [f"line {number}" for number in range(LINES)]


def token_of(role: str, number: int) -> str:
    user = User.objects.create(username=f"{role}{number}")
    if role == "operator":
        user.groups.add(Group.objects.get_or_create(name="operator")[0])
    return tokens.make(user, "load", "operator" if role == "operator" else "viewer")[1]


def store_runs(count: int, report: RunReport, request: dict[str, Any], owner: User) -> None:
    """Store finished runs with documents of the usual size: copies of one, which the database makes."""
    Run.objects.create(
        owner=owner,
        status="finished",
        archived=True,
        cluster_name="lab-3",
        model="tiny-gpt2",
        strategy="voltage",
        latency_s=report.latency_s,
        request=request,
        spec=to_document(report.spec),
        plan=to_document(report.plan) if report.plan else None,
        report=to_document(report),
    )
    table = Run._meta.db_table
    columns = ", ".join(
        field.column for field in Run._meta.concrete_fields if field.column and not field.primary_key
    )
    with connection.cursor() as cursor:
        for have in doublings(count):
            copies = min(have, count - have)
            cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {table} LIMIT {copies}")
    Run.objects.update(name=Concat(Value("number "), Cast("pk", CharField())))
    Run.objects.annotate(rest=F("pk") % 100).filter(rest=0).update(tags=["every-hundredth"])


def doublings(count: int) -> Iterator[int]:
    """1, 2, 4, … below `count`."""
    have = 1
    while have < count:
        yield have
        have *= 2
