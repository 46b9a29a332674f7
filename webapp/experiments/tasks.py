"""Celery tasks of the queue `points`: predict what waits, in slices of about a second; and of the queue
`plan`: expand an experiment into points for a person who waits.

A message says that something waits; what that is, the database says. A slice that leaves work behind sends
the next message. Lost messages (Redis restarted empty, a worker was killed) are sent again at a beat.
"""

from __future__ import annotations

import logging
import os
import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_init, worker_process_init
from django.contrib.auth.models import User

from engine.advice.assess import assess
from engine.advice.planners import in_words, planner_gains
from engine.advice.remedies import Remedy, remedies
from engine.advice.values import Assessment
from engine.domain import experiment as domain
from engine.domain.errors import HostError, PlanError, RunError, SpecError
from engine.domain.model import ModelSpec
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.stored import to_document
from engine.domain.stored_experiment import read_experiment
from engine.experiments.results.rows import Result, failure, result_of
from engine.experiments.results.versions import calibration_of
from engine.models import catalogue
from engine.runs.predict import predict
from webapp.base.database import any_of
from webapp.base.redis import client
from webapp.celery import app
from webapp.experiments import checks, executions, points, services, versions
from webapp.experiments.answers import some_finished
from webapp.experiments.models import Execution
from webapp.experiments.points import BATCH, POINT_LIMIT_S, PREDICTED, announce
from webapp.jobs import answers, lease, workers
from webapp.jobs.intake import own_queue
from webapp.runs import attempts
from webapp.runs.models import Run
from webapp.runs.tasks import with_profile

logger = logging.getLogger(__name__)
any_waiting = any_of(lambda: points.all_points().filter(status="waiting"))

SLICE_S = 1.0
"""Seconds of a slice after which no point is begun."""

QUICK_S = 0.05
"""Seconds: points that take less are taken from the database several at a time."""

MEMORY_BYTES = 3 * 2**30
"""What a process may allocate for a point beyond what it had at its start."""

EXPAND_LIMIT_S = 30
"""Seconds that the expansion of an experiment into points may take, for which somebody waits."""

REMEDIES_LIMIT_S = 12.0
"""Seconds that the search for what would make an experiment's question a real one may take."""

NICENESS = 5
"""A third of the usual share: a browser beside it stays quick, and a busy machine does not starve the points.
Emulations have -20, two hundred times as much."""


# For people who wait ------------------------------------------------------------------------------
@answers.question("plan.check_experiment", EXPAND_LIMIT_S)
def check_experiment(document: dict[str, Any]) -> dict[str, Any]:
    """Expand an experiment that somebody designs, and say what is wrong with it."""
    return {"check": checks.expanded(experiment_in(document)).model_dump(mode="json")}


@answers.question("plan.preview_experiment", EXPAND_LIMIT_S)
def preview_experiment(document: dict[str, Any], owner: int) -> dict[str, Any]:
    """Let the points of what somebody designs be predicted; gives the number of the execution."""
    made = executions.make_preview(experiment_in(document), User.objects.get(pk=owner))
    return {"execution": made.pk}


@answers.question("plan.freeze_experiment", EXPAND_LIMIT_S)
def freeze_experiment(experiment: int) -> dict[str, Any]:
    """Freeze the present version of a stored experiment; gives the number of the execution."""
    return {"execution": executions.freeze(services.find(experiment)).pk}


@answers.question("plan.experiment_planners", EXPAND_LIMIT_S)
def experiment_planners(execution: int) -> dict[str, Any]:
    """What planner=best would give the methods of an experiment that was carried out."""
    specs = some_finished(Execution.objects.get(pk=execution))
    gains = planner_gains(specs, lambda runs: [assess(run) for run in runs])
    return {"told": in_words(gains), "gains": [gain.model_dump() for gain in gains]}


@answers.question("plan.experiment_remedies", EXPAND_LIMIT_S)
def experiment_remedies(document: dict[str, Any]) -> dict[str, Any]:
    """Changes after which the methods of an experiment differ, as far as there is time to look for them."""
    ends_s = time.monotonic() + REMEDIES_LIMIT_S

    def assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
        found = []
        for spec in specs:
            if time.monotonic() > ends_s:
                raise OutOfTime
            found.append(assess(spec))
        return found

    value = experiment_in(document)
    first: dict[str, RunSpec] = {}
    for point in executions.points_of(value):
        if point.spec is not None:
            first.setdefault(f"{point.spec.strategy} {point.spec.params}", with_profile(point.spec))
    found: list[Remedy] = []
    with suppress(OutOfTime):
        for remedy in remedies(list(first.values()), models_here(), assess_all) if first else ():
            if not _is_varied(value, remedy):
                found.append(remedy)
    return {"remedies": [one.model_dump(mode="json") for one in found]}


def models_here() -> list[ModelSpec]:
    return [catalogue.resolve(name)[0] for name in catalogue.names()]


def _is_varied(value: domain.Experiment, remedy: Remedy) -> bool:
    """Whether a factor of the experiment would overwrite the change."""
    paths = [path for factor in value.factors for path in factor.paths]
    paths += [path for factor in value.factors for level in factor.values for path in level.set]
    if remedy.cluster is not None:
        return any(path == "cluster" or "memory_bytes" in path for path in paths)
    return ("model" if remedy.model else "workload.prompt_tokens") in paths


class OutOfTime(Exception):
    """There is no time left to look for more."""


def experiment_in(document: dict[str, Any]) -> domain.Experiment:
    """The experiment in a document. Raises `SpecError` if it cannot be read here."""
    return read_experiment(document, "The experiment").needed()


# Points -------------------------------------------------------------------------------------------
@app.task(
    name="points.next",
    ignore_result=True,
    bind=True,
    soft_time_limit=POINT_LIMIT_S + SLICE_S,
    time_limit=POINT_LIMIT_S + SLICE_S + 20,
)
def predict_points(task: Any) -> None:
    """Predict points for about `SLICE_S`; the last one may take until `POINT_LIMIT_S`."""
    me = workers.this_worker(task.request.hostname)
    end_s = time.monotonic() + SLICE_S
    count = 1
    while time.monotonic() < end_s:
        begin_s = time.monotonic()
        taken = points.take(me, count)
        if not taken:
            return
        for point in taken:
            if time.monotonic() < end_s:
                predict_one(point)
            else:
                points.release(point)
        count = BATCH if time.monotonic() - begin_s < QUICK_S * len(taken) else 1
    if points.is_any_for_this_worker(PREDICTED):
        announce(1, task.request.delivery_info["routing_key"])


def predict_one(point: Run) -> None:
    """Store what the point gives, or why it gives nothing."""
    begin_s = time.monotonic()
    owner = lease.owner_of(point)
    try:
        result = result_of_point(point)
        kept = {"result": to_document(result), "wall_s": time.monotonic() - begin_s}
        attempts.let_go(owner, "finished", **kept)
        return
    except SoftTimeLimitExceeded:
        why = f"The prediction takes more than {POINT_LIMIT_S:.0f} s: ask for fewer tokens or devices."
    except MemoryError:
        why = f"The prediction needs more than {MEMORY_BYTES >> 30} GiB: ask for fewer tokens or devices."
    except HostError as error:
        why = str(error)
    except Exception as error:
        logger.exception("the point %s broke", point.digest)
        why = f"The prediction broke: {error!r}. The worker's log says more."
    attempts.let_go(owner, "failed", error=why)


def result_of_point(point: Run) -> Result:
    """A run that cannot be planned has a result, too. Raises `HostError`, and whatever breaks the program."""
    about = attempts.about_of(point, versions.version_of(point.world))
    try:
        asked = points.spec_of(point)
        spec = with_profile(asked)
        report = calculate(spec) if point.world == "calculated" else predict(spec)
    except (SpecError, PlanError, RunError) as error:
        return failure(error, **about)
    return result_of(report, calibration=calibration_of(asked, spec.profile), **about)


def calculate(spec: RunSpec) -> RunReport:
    from engine.runs.calculate import calculate  # it loads torch

    return calculate(spec)


def look_after(worker: workers.Identity, slots: int) -> None:
    """What a worker of the queue `points` does at every beat. It wakes itself: a message for all could be
    taken by a worker that has not the method. Raises Redis' errors.
    """
    if not any_waiting.exists():
        return
    points.adopt()
    points.forget()
    own = own_queue("points", str(worker))
    is_woken = client().llen("points") or client().llen(own)
    if not is_woken and points.is_any_for_this_worker(PREDICTED):
        announce(slots, own)


def on_beat(sender: Any, queue: str, worker: workers.Identity, slots: int, **more: Any) -> None:
    if queue == "points":
        look_after(worker, slots)


workers.beat.connect(on_beat)


@worker_init.connect
def know_the_version(**kwargs: Any) -> None:
    """Find the version of the code before processes are forked: each would read and hash all of it before its
    first point.
    """
    if {"plan", "points"} & set(app.amqp.queues.consume_from):
        versions.version_of("predicted")


@worker_process_init.connect
def step_back(**kwargs: Any) -> None:
    """A process that predicts points has a lower priority than others, and a limit of memory."""
    if "points" not in app.amqp.queues.consume_from:
        return
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    autogroup = Path("/proc/self/autogroup")
    if os.getsid(0) == os.getppid() and autogroup.exists():  # a session of this worker alone
        autogroup.write_text(str(NICENESS))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))
