"""One emulating worker of a trial: the real worker, but its emulations are `bench/trials/session.py`.

Each worker counts as a machine of its own (its `home`), with its own place for records and turns, except that
worker 0 is at home where the trial is: whether its process lives is seen there at once.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from django.conf import settings

import emulator.session.client as emulator_client
from bench.trials.session import DIRECTORY
from bench.trials.short_times import shorten_times
from emulator.network.probe import probe
from emulator.session.isolation import Isolated
from webapp.celery import app
from webapp.jobs import release, workers
from webapp.runs import tasks

SESSION = "bench.trials.session"

# Found out once, before workers are forked.
probe()
release.code_version()


class Post(NamedTuple):
    """What a worker is given. `node` is its name, which two may share; `directory` has its log and records;
    by `redis_url` it is the user that a worker is under `./loom up`. A `quick` one has the times of
    `bench/trials/short_times.py`.
    """

    number: int
    node: str
    directory: Path
    redis_url: str
    quick: bool = True


def work(post: Post) -> None:
    """Work as a worker until SIGTERM, in a process of its own."""
    log = os.open(post.directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["EDGELOOM_STATE_DIR"] = str(post.directory / "emulator")
    os.environ["REDIS_URL"] = settings.REDIS_URL = app.conf.broker_url = post.redis_url
    if post.quick:
        shorten_times()
    if post.number:
        patch.object(workers, "home", partial(_home, post.number)).start()
    patch.multiple(emulator_client, Isolated=_isolated, SERVER=SESSION).start()
    assert vars(tasks)["emulate"] is emulator_client.emulate, "the task runs what is replaced here"
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO")
    pool = ("--pool", "threads", "--concurrency", "1")
    app.worker_main(["worker", "-Q", "emulate", "-n", post.node, *pool, *quiet])


def _home(number: int) -> str:
    return f"machine{number}"


def _isolated(*arguments: object) -> Isolated:
    directory = Path(os.environ[DIRECTORY])
    return Isolated(*arguments, writes=(directory,))  # type: ignore[arg-type, misc]
