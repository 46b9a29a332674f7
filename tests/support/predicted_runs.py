"""Stores finished runs whose reports are predictions, in the database of a server: many runs in a second.

A process of its own, so that its settings are those of the server: `LOOM_STATE_DIR=… python -m
tests.support.predicted_runs` reads JSON lists of requests, one a line, and answers each with the ids of the
runs.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parents[2]


Store = Callable[[Sequence[Mapping[str, Any]]], list[int]]


@contextmanager
def storing_predicted(environment: Mapping[str, str]) -> Iterator[Store]:
    """A function that stores one finished run per request body, on the server that was started with
    `environment`, and returns their ids.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.predicted_runs"],
        env={**environment, "DJANGO_SETTINGS_MODULE": "webapp.settings"},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None, "they are pipes"

        def store(requests: Sequence[Mapping[str, Any]]) -> list[int]:
            process.stdin.write(json.dumps(list(requests)) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, "the process that stores runs has ended; what it said is above"
            ids: list[int] = json.loads(answer)
            return ids

        yield store


def _store(body: Mapping[str, Any]) -> int:
    from django.db import transaction

    from engine.domain.events import Event, to_json
    from engine.domain.stored import SCHEMA
    from engine.runs.best_planner import with_best_planner
    from engine.runs.predict import predict
    from webapp.events.models import EventSegment
    from webapp.jobs.lease import Ownership
    from webapp.runs import closing, services
    from webapp.runs.models import Run
    from webapp.runs.requests import RunRequest, spec_of

    request = RunRequest.model_validate(body)
    spec = spec_of(request)
    events: list[Event] = []
    report = with_best_planner(predict(spec, events.append))
    segment = gzip.compress(json.dumps(to_json(events)).encode())
    with transaction.atomic():  # or the server would settle a run that has ended without an archive
        run = services.store(request, spec, services.planned(spec), None)
        closing.finish(Ownership(Run, run.pk, run.fence), report)
        EventSegment.objects.create(run=run, first=1, last=1, batches=segment, schema=SCHEMA)
        Run.objects.filter(pk=run.pk).update(archived=True)
    return run.pk


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    for line in sys.stdin:
        sys.stdout.write(json.dumps([_store(body) for body in json.loads(line)]) + "\n")
        sys.stdout.flush()
