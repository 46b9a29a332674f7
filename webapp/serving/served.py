"""Finds the runs that serve, and sends commands to one."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from engine.domain.errors import SpecError
from webapp.base.errors import Conflict
from webapp.base.redis import redis_needed
from webapp.runs import control
from webapp.runs.models import Run
from webapp.runs.schemas import name_of

ID_BYTES = 12


class UnknownModel(SpecError):
    """The request names a model that no run serves."""


def serving() -> QuerySet[Run]:
    """The runs that take requests now, newest first."""
    return Run.objects.filter(status="running", request__workload__pattern="serve").defer(
        "plan", "prediction"
    )


def find(model: str) -> Run:
    """The run that serves under this name or number. Raises `UnknownModel`, `Conflict`."""
    runs = list(serving())
    found = [run for run in runs if str(run.pk) == model] or [run for run in runs if name_of(run) == model]
    if not found:
        names = ", ".join(sorted({name_of(run) for run in runs})) or "none serves now"
        sentence = f"No run serves as {model!r}. Runs that serve: {names}."
        raise UnknownModel(sentence, [("model", sentence)])
    if len(found) > 1:
        numbers = ", ".join(str(run.pk) for run in found)
        raise Conflict(f"Several runs serve as {model!r}: name one by its number, {numbers}.")
    return found[0]


def check_serves(run: Run) -> None:
    """Check that the run takes requests now; raises `Conflict`."""
    if run.request.get("workload", {}).get("pattern") != "serve":
        raise Conflict(f"{run} has a fixed workload: start a run with the workload Serve.")
    if run.status != "running":
        raise Conflict(f"{run} is {run.status}: only a running run takes requests.")


def new_id(user: User) -> str:
    """A name for a request; it says whose it is."""
    return f"{user.pk}-{secrets.token_hex(ID_BYTES)}"


def is_of(name: str, user: User) -> bool:
    return name.startswith(f"{user.pk}-")


def send(run: Run, user: User, command: dict[str, Any]) -> None:
    """Send a command to the worker that carries out the run. Raises `Unavailable`."""
    with redis_needed():
        control.send(run.pk, command, user.username)
