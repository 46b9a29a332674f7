"""Shuts and opens the tap of a Celery worker, and gives a worker a queue of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer

from webapp.base.redis import client, push
from webapp.celery import LATER
from webapp.celery import app as celery

OWN_QUEUE_KEEP_S = 3600
"""Seconds after the end of a worker until Redis forgets its own queue."""

WANTED = "wanted:predictions"
"""Numbers of runs that are to be predicted. Only planning workers may write into their queue."""

WANTED_KEEP_S = 12 * 3600

logger = logging.getLogger(__name__)


class QueueIntake:
    """The queues that a Celery consumer reads. Only its own thread may change them: others pass calls on."""

    def __init__(self, consumer: Consumer, queues: tuple[str, ...]):
        self.consumer = consumer
        self.queues = queues
        self.is_open = True

    def open(self, is_open: bool) -> None:
        if is_open == self.is_open:
            return
        self.is_open = is_open
        change: Callable[[str], Any] = (
            self.consumer.add_task_queue if is_open else self.consumer.cancel_task_queue
        )
        for queue in self.queues:
            self.consumer.call_soon(change, queue)


def own_queue(queue: str, worker: str) -> str:
    """The queue from which only this worker takes: it wakes itself for what others cannot do."""
    return f"{queue}:{worker}"


def wake(task: str, queue: str, count: int = 1) -> None:
    """Let up to `count` workers of this queue, or the one whose own it is, look for what waits: the message
    carries no work, the database says what there is. Raises Redis' errors.

    The broker's library makes a worker's own queue expire only on the connection that declared it.
    """
    for _ in range(count):
        celery.send_task(task, queue=queue)
    if ":" in queue:
        client().expire(queue, OWN_QUEUE_KEEP_S)


def want_prediction(run_id: int) -> None:
    """Let a planning worker predict a stored run, within a beat. Raises Redis' errors."""
    push(WANTED, str(run_id), WANTED_KEEP_S)


def queue_wanted_predictions() -> None:
    """What a planning worker does at every beat: make tasks of the predictions that are wanted. Raises Redis'
    errors.
    """
    while (run_id := client().lpop(WANTED)) is not None:
        celery.send_task("plan.predict_run", [int(str(run_id))], queue="plan", priority=LATER)
