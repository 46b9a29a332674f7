"""Celery tasks: predict (queue `plan`) and emulate (queue `emulate`). No other file uses the emulator."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from celery.worker.consumer import Consumer

from emulator import emulate, expect_emulations
from emulator.calibration.known import calibration_file, host_name, known_calibration, time_needed_s
from emulator.calibration.known import with_profile as calibrated
from emulator.calibration.shapes import SHORT
from emulator.host.leftovers import cleanup_stale
from emulator.host.places import state_directory
from emulator.network.probe import probe
from emulator.session.calibrating import calibrate_host
from emulator.session.turns import holders, name_of
from engine.domain.calibration import calibration_digest
from engine.domain.errors import Cancelled, EdgeLoomError
from engine.domain.spec import RunSpec
from engine.domain.stored import read_report, read_spec, to_document
from engine.plugins.packs import installed_packs
from engine.runs.best_planner import with_best_planner
from engine.runs.predict import editable_plan, predict
from engine.runs.uncertainty import with_uncertainty
from engine.strategies.registry import installed_code
from topologies.left_out import left_out
from webapp.base.redis import REDIS_ERRORS
from webapp.celery import app
from webapp.clusters.model_library import Reachable, with_local_weights, without_place
from webapp.clusters.tunnels import tunnels_of
from webapp.jobs import answers, lease, workers
from webapp.jobs.announcement import Announcement, Holder
from webapp.jobs.calibrating import MachineCalibration
from webapp.jobs.comparing import Comparisons, HandOver
from webapp.jobs.intake import OWN_QUEUE_KEEP_S, QueueIntake, own_queue, queue_wanted_predictions
from webapp.runs import attempts, closing, predictions, quotas, recording, services, waiting
from webapp.runs.control import CommandFeed
from webapp.runs.models import Run

logger = logging.getLogger(__name__)


FORM_LIMIT_S = 30
"""A form's prediction may keep its worker from others for so long, and a stored run's for `RUN_LIMIT_S`."""
RUN_LIMIT_S = 600


@answers.question("plan.predict", FORM_LIMIT_S)
def predict_now(spec: dict[str, Any]) -> dict[str, Any]:
    """Predict for a form that a person is filling in."""
    run = with_profile(RunSpec.parse(spec, "run"))
    report = with_uncertainty(predict(run))
    editable = editable_plan(run, report.plan) if report.plan else None
    return {
        "report": without_place(report).model_dump(mode="json"),
        "editable": editable.model_dump(mode="json") if editable else None,
    }


@answers.question("plan.plan_run", FORM_LIMIT_S)
def plan_run(spec: dict[str, Any]) -> dict[str, Any]:
    """Plan a run that a person wants to start."""
    known = known_calibration()
    planned = services.planned(RunSpec.parse(spec, "run"), known.profile if known else None)
    return {"plan": planned.made.model_dump(mode="json"), "cores": planned.cores}


@app.task(
    name="plan.predict_run",
    ignore_result=True,
    soft_time_limit=RUN_LIMIT_S,
    time_limit=RUN_LIMIT_S + answers.GRACE_S,
)
def predict_run(run_id: int) -> None:
    """Predict a stored run as it is before its start, and keep the prediction. Changes that came while it ran
    are none of its business: the report has the predictions that know them (`Predictions`).
    """
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        return
    why = ""
    try:
        unwanted = predictions.Unwanted(run_id)
        predicted = predict(spec_to_predict(run), should_stop=unwanted, made=services.plan_of(run))
        report = with_uncertainty(predicted, unwanted)
        report = with_best_planner(report)
    except EdgeLoomError as error:
        why = str(error)
    except SoftTimeLimitExceeded:
        why = f"it takes more than {RUN_LIMIT_S} s to compute, which is the limit."
    except MemoryError:
        size = f"{answers.MEMORY_BYTES >> 30} GiB"
        why = f"it needs more than {size} of memory to compute, which is the limit."
    if why:
        logger.warning("run %s gets no prediction: %s", run_id, why)
        Run.objects.filter(pk=run_id).update(unpredicted=why[:300])
    elif report.outcome.kind != "cancelled":
        prediction = to_document(without_place(report))
        Run.objects.filter(pk=run_id).update(prediction=prediction, unpredicted="")


def spec_to_predict(run: Run) -> RunSpec:
    """The run's spec, with the times of the host that ran it if it has run. Raises `SpecError` if it cannot
    be read.
    """
    spec = read_spec(run.spec, f"The spec of {run}").needed()
    if run.report is None:
        return with_profile(spec)
    report = read_report(run.report, f"The report of {run}").needed()
    return with_local_weights(spec.model_copy(update={"profile": report.spec.profile}))


def with_profile(spec: RunSpec) -> RunSpec:
    """The run with this host's times, where devices are modelled by them and they have been measured, and
    with the directory of its model on this host. Raises `HostError` if that is not to be had.
    """
    spec = with_local_weights(spec)
    paced = spec.model_copy(update={"dilation": 1.0})  # the simulated world has no use for a dilation
    return spec.model_copy(update={"profile": calibrated(paced).profile})


@app.task(name="emulate.next", ignore_result=True, bind=True)
def emulate_next(task: Any) -> None:
    """Calibrate this machine if somebody asked for it; then emulate the next run for this worker, if any."""
    me = workers.this_worker(task.request.hostname)
    calibration.carry_out(str(me), time_needed_s(SHORT), partial(calibrate_host, SHORT))
    worker = next(one.announcement for one in heartbeats if one.announcement.queue == "emulate")
    run = waiting.take(me, worker, waiting.fleet())
    if run is None:
        logger.info("no run is queued that this worker can do")
        return
    comparisons.carry_out(partial(emulate_run, run, me))
    if run.pk not in stopped_here:
        services.turn_over.send(sender=Run, worker=me)


def emulate_run(run: Run, me: workers.Identity, hand_over: HandOver = lambda: None) -> None:
    """Emulate a run that this worker has claimed, and keep its report, or why there is none. `hand_over` is
    called when only its outputs are left to be compared.
    """
    run_id = run.pk
    owner = lease.owner_of(run)
    try:
        publisher = recording.publisher_of(owner)
    except lease.Lost as lost:
        logger.warning("%s", lost)
        return
    commands = CommandFeed(run_id, publisher)
    watch = recording.Watch(owner, publisher, hand_over)
    began_s = time.monotonic()
    with lease.Renewal(owner, commands.stop, partial(is_to_stop, run_id)), publisher:
        try:
            with commands, stopped_with_the_worker(run_id, commands):
                spec = with_local_weights(read_spec(run.spec, f"The spec of {run}").needed())
                boards = tunnels_of(spec.cluster, run_id) if spec.on_nodes else None
                report = emulate(spec, watch, commands.queue, services.plan_of(run), boards)
            recording.keep(owner, publisher, without_place(report))
        except lease.Lost as lost:
            logger.warning("%s", lost)
        except Exception as error:
            only_waited = isinstance(error, Cancelled) and not watch.has_begun
            if run_id in stopped_here and only_waited and recording.put_back(owner, publisher):
                return
            recording.give_up(owner, publisher, recording.outcome_of_failure(run, error))
    with suppress(*REDIS_ERRORS):
        quotas.count_machine_time(run.owner_id, time.monotonic() - began_s)
    expect_emulations(many=True)
    if run_id in stopped_here and Run.objects.filter(pk=run_id, status="cancelled").exists():
        attempts.try_again(run_id)


def is_to_stop(run_id: int) -> bool:
    """Whether somebody wants it cancelled: the wish is in the database, as Redis may lose the command."""
    return Run.objects.filter(pk=run_id).exclude(cancel_by="").exists()


in_progress: dict[int, CommandFeed] = {}
stopped_here: set[int] = set()
"""Runs that were told to stop because this worker is to end."""
calibration = MachineCalibration()
comparisons = Comparisons()


@contextmanager
def stopped_with_the_worker(run_id: int, commands: CommandFeed) -> Iterator[None]:
    """Stop the run in the block if the worker shuts down."""
    in_progress[run_id] = commands
    try:
        yield
    finally:
        in_progress.pop(run_id, None)


@worker_shutting_down.connect
def stop_runs(**kwargs: Any) -> None:
    """Stop what a worker does that is to end: it waits for its task, which should take little time."""
    calibration.end()
    for run_id, commands in tuple(in_progress.items()):
        stopped_here.add(run_id)
        commands.stop()


heartbeats: list[workers.Heartbeat] = []
reachable = Reachable()


@worker_ready.connect
def begin(sender: Consumer, **kwargs: Any) -> None:
    """Start the heartbeats. An emulator worker first removes what a worker that died has left."""
    me = workers.this_worker(sender.hostname)
    queues = set(sender.app.amqp.queues.consume_from)
    if "emulate" in queues:
        cleanup_stale(state_directory())
    for queue in sorted(queues & set(workers.QUEUES)):
        introduced = workers.introduction(me, queue, sender.controller.concurrency, **abilities(queue))
        own = own_queue(queue, str(me))
        heartbeats.append(
            workers.Heartbeat(
                introduced,
                QueueIntake(sender, (queue, own)),
                partial(look_after, me),
                partial(present_figures, queue),
            )
        )
        sender.add_task_queue(own, expires=OWN_QUEUE_KEEP_S)
    for heartbeat in heartbeats:
        heartbeat.start()
    if "emulate" in queues:
        expect_emulations()


def abilities(queue: str) -> dict[str, Any]:
    """What a worker finds out once, at its start."""
    return {
        "processor": host_name(),
        "capabilities": tuple(item.name for item in probe().items if item.ok) if queue == "emulate" else (),
        "methods": installed_code(),
        "packs": installed_packs(),
        "left_out": left_out(),
    }


def present_figures(queue: str) -> dict[str, Any]:
    """What a worker finds out at every beat."""
    lag_s = max((feed.publisher.lag_s() for feed in tuple(in_progress.values())), default=0.0)
    found = {"event_lag_s": round(lag_s, 3), "models": reachable.digests(), **calibration_figures()}
    return found | calibration.now() | {"beside": beside()} if queue == "emulate" else found


def beside() -> tuple[Holder, ...]:
    """Who else emulates on this machine: another EdgeLoom, the command line."""
    return tuple(
        Holder(user=name_of(one.user), pid=one.pid, purpose=one.purpose, since=one.since_s, counts=one.counts)
        for one in holders()
        if one.pid != os.getpid()
    )


NO_CALIBRATION = {"calibration": "", "calibrated": "", "calibrated_at": 0.0, "calibration_caution": ""}


def calibration_figures() -> dict[str, Any]:
    """The calibration of this machine, which any process on it may have made, and how long a new one takes
    now.
    """
    takes = {"calibration_takes_s": round(time_needed_s(SHORT))}
    try:
        now = calibration_file().stat()
    except FileNotFoundError:
        return takes | NO_CALIBRATION
    return takes | figures_of_calibration(now.st_ino, now.st_size, now.st_mtime)


@lru_cache(maxsize=1)
def figures_of_calibration(number: int, size: int, changed_at: float) -> dict[str, Any]:
    """What the file says that is now this one: a digest of its times takes a while, and beats come often."""
    known = known_calibration()
    if known is None:
        return NO_CALIBRATION
    digest = calibration_digest(known.profile)
    return {
        "calibration": digest,
        "calibrated": known.device.source,
        "calibrated_at": changed_at,
        "calibration_caution": known.profile.caution,
    }


def look_after(me: workers.Identity, worker: Announcement) -> None:
    """A worker that is refused leaves everything to others but what nobody needs rights for."""
    closing.settle_abandoned()
    if worker.refused:
        return
    if worker.queue == "emulate":
        waiting.look_for_work(me, worker)
    elif worker.queue == "plan":
        queue_wanted_predictions()
    workers.beat.send(sender=workers.Heartbeat, queue=worker.queue, worker=me, slots=worker.slots)


@worker_shutdown.connect
def end(**kwargs: Any) -> None:
    comparisons.wait()
    while heartbeats:
        heartbeats.pop().stop()
