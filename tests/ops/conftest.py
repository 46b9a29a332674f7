"""Waiting, a private Redis, and finding every process that a start of `./loom` left."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from webapp.ops.redis_server import RedisServer, private_redis, redis_program

PATIENCE_S = 600.0
"""Only a test that fails takes it: other tests may have the cores meanwhile."""


def wait_until(condition: Callable[[], object], what: str | Callable[[], str]) -> None:
    """Until `condition` holds; fails after `PATIENCE_S`. Looking takes a fifth of a core, or half a second
    passes.
    """
    looks_s = time.monotonic()
    deadline = looks_s + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {PATIENCE_S:g} s for {what if isinstance(what, str) else what()}")
        time.sleep(min(max(0.05, 4 * (time.monotonic() - looks_s)), 0.5))
        looks_s = time.monotonic()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processes_with(text: str) -> dict[int, str]:
    """Process id → arguments of all processes that have `text` in their environment."""
    found = {}
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit() or int(directory.name) == os.getpid():
            continue
        try:
            if text.encode() in (directory / "environ").read_bytes():
                arguments = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(directory.name)] = arguments.decode()
        except OSError:
            continue  # it has just ended, or is not ours to read
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    made, configuration = private_redis(tmp_path)
    process = subprocess.Popen([redis_program(), str(configuration)], stdout=subprocess.DEVNULL, cwd=tmp_path)
    wait_until(made.answers, "Redis")
    yield made
    process.terminate()
    process.wait()
