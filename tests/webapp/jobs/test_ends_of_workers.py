"""Celery's workers and what they fork end, though nobody watches them any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.host.leftovers import children, is_alive
from tests.support.web import wait_until
from webapp.ops.places import ROOT
from webapp.ops.services import worker

CELERY = "\nfrom celery.__main__ import main\nmain()\n"
FORKED_LONG_BEFORE = """
import os, time
from celery import platforms

def wait_for_the_end_of_the_worker(name, set_pdeathsig=platforms.set_pdeathsig, worker=os.getpid()):
    while os.getppid() == worker:
        time.sleep(0.01)
    set_pdeathsig(name)

platforms.set_pdeathsig = wait_for_the_end_of_the_worker
"""
NEVER_DONE = """
import signal
from celery.signals import worker_shutdown
from webapp import celery
celery.STOP_S = 0.1
worker_shutdown.connect(lambda **kwargs: signal.pause(), weak=False)
"""


@contextmanager
def started(state_dir: Path, code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A planning worker whose Redis does not answer, after `code` has run in its process."""
    environment = {**os.environ, "LOOM_STATE_DIR": str(state_dir), "REDIS_URL": "redis://127.0.0.1:1/0"}
    with (state_dir / "log").open("wb") as log:
        process = subprocess.Popen(
            (sys.executable, "-c", code + CELERY, *worker("plan").arguments[2:]),
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_process_that_was_forked_a_moment_before_its_worker_was_killed_ends(tmp_path: Path) -> None:
    with started(tmp_path, FORKED_LONG_BEFORE) as process:
        wait_until(lambda: children(process.pid), "a process of the pool")
        forked = children(process.pid)
    wait_until(lambda: not any(is_alive(one) for one in forked), "the end of what was forked")


def test_a_worker_whose_stop_never_ends_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, NEVER_DONE) as process:
        wait_until(lambda: b"Cannot connect" in (tmp_path / "log").read_bytes(), "the start")
        process.terminate()
        assert process.wait(600) == -signal.SIGKILL
