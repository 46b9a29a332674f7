"""The Celery application: it hands tasks to workers on this machine, or on others that use the same Redis.

Three queues. `plan` predicts what a person waits for; it needs no rights and may run anywhere, several at a
time. `points` predicts the points of experiments, as many at a time as there are cores, with a lower
priority. `emulate` owns the network emulator of its host: root, one run at a time unless LOOM_RUNS_AT_ONCE
says otherwise. `webapp/ops/services.py` has their command lines.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Collection
from threading import Timer
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# Django's checks import every page and address, of which a worker needs none.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from django.conf import settings

VISIBILITY_TIMEOUT_S = 12 * 3600
ASKED_AGAIN_S = 3
"""How long a worker waits in Redis for a message before it asks again. One that comes ends the wait; a worker
that is to stop waits until it is over.
"""
STOP_S = 20.0
"""How long a worker that is told to stop may take. The supervisor's patience is shorter; this is for a worker
whose supervisor has been killed, and which waits for a Redis that has gone.
"""
LATER = 9
"""The priority of a task that nobody waits for, after all others of its queue; Redis' first is 0, the
default.
"""

UNACKED = ("", "_index", "_mutex")
"""The places where Celery's library for Redis notes messages that were taken and not acknowledged."""

app = Celery("webapp")
app.conf.update(
    broker_url=settings.REDIS_URL,
    task_default_queue="plan",
    task_serializer="json",
    accept_content=["json"],
    # A task is acknowledged when a worker takes it: a run delivered twice would be emulated twice. Redis
    # gives an unacknowledged message to another worker after the visibility timeout, so that is long as well.
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    # A worker takes a task when it has a free process: what it took in advance would come before questions
    # that are put later, and other workers could not take it.
    worker_disable_prefetch=True,
    broker_transport_options={
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "socket_connect_timeout": 3,
        "polling_interval": ASKED_AGAIN_S,
    },
    # A run outlives a restart of Redis; its worker waits for Redis for as long as it takes.
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # So it does for one that refuses, as a replica does until it is the master again.
    broker_channel_error_retry=True,
    # Whoever can write to Redis could else command every worker, whatever its queue.
    worker_enable_remote_control=False,
    task_publish_retry=False,
    worker_hijack_root_logger=False,
    task_send_sent_event=False,
    timezone="UTC",
)


def share_memory(**kwargs: Any) -> None:
    """Let processes that are forked share memory: the collector of each would write into every object there
    is, and so copy all memory that they share.
    """
    gc.collect()
    gc.freeze()


worker_init.connect(share_memory)


def of_other_queues(tasks: Collection[str], queues: Collection[str]) -> list[str]:
    """The tasks that a worker of `queues` has no message for: those of other queues, and Celery's own."""
    return [name for name in tasks if name.partition(".")[0] not in queues]


def know_own_tasks(**kwargs: Any) -> None:
    """Forget all others: who can write into one queue could else have any task carried out there."""
    for name in of_other_queues(app.tasks, app.amqp.queues.consume_from):
        app.tasks.unregister(name)


worker_init.connect(know_own_tasks)


def keep_own_messages(**kwargs: Any) -> None:
    """Note what was taken and not acknowledged in a place of this queue: Redis lets workers of other queues
    write elsewhere only.
    """
    queue = min(app.amqp.queues.consume_from)
    places = {f"unacked{part}_key": f"unacked:{queue}{part}" for part in UNACKED}
    app.conf.broker_transport_options = {**app.conf.broker_transport_options, **places}


worker_init.connect(keep_own_messages)

worker_pid = 0
"""The process that forks the others."""


def know_the_parent(**kwargs: Any) -> None:
    global worker_pid
    worker_pid = os.getpid()


worker_init.connect(know_the_parent)


def end_without_the_parent(**kwargs: Any) -> None:
    """End a process that was forked and whose worker has been killed since: Celery has the kernel end it with
    its worker, but only from a moment after the fork on.
    """
    if os.getppid() != worker_pid:
        os._exit(1)


worker_process_init.connect(end_without_the_parent)


def end_in_time(**kwargs: Any) -> None:
    """Kill this worker, and so what it has forked, unless it has ended in time."""
    timer = Timer(STOP_S, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


worker_shutting_down.connect(end_in_time)

app.autodiscover_tasks(["webapp.clusters", "webapp.runs", "webapp.experiments", "webapp.advice"])
