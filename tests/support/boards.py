"""Boards that are processes of this machine; the run's sockets lead straight to them, through no server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from emulator.session.boards import BoardsNetwork
from engine.domain.addresses import Origin
from engine.domain.events import Event
from engine.domain.report import RunReport
from engine.domain.scenario import LiveCommand
from engine.domain.spec import RunSpec
from engine.runs.execute import execute
from engine.runs.host_kernels import kernels_file, known_kernels, measured_kernels

ROOT = Path(__file__).parents[2]
CACHE_BYTES, MEMORY_BYTES = 1 << 30, 4 << 30


def bound(spec: RunSpec) -> RunSpec:
    """The run on boards: one for each device."""
    devices = tuple(
        device.model_copy(update={"node": f"pi-{device.name}"}) for device in spec.cluster.devices
    )
    cluster = spec.cluster.model_copy(update={"devices": devices})
    return spec.model_copy(update={"cluster": cluster, "dilation": "nodes"})


@cache
def kernels() -> Path:
    """The table of this machine's kernels, which a board has that is calibrated."""
    if known_kernels() is None:
        measured_kernels()
    return kernels_file()


@contextmanager
def board_process(home: Path, cache_bytes: int = CACHE_BYTES, memory_bytes: int = MEMORY_BYTES) -> Iterator:
    """A board's process for one run, and our end of its socket."""
    ours, theirs = socket.socketpair()
    theirs.sendall(Origin("127.0.0.1").line())
    (home / "edgeloom").mkdir(parents=True, exist_ok=True)
    shutil.copy(kernels(), home / "edgeloom")
    numbers = (str(cache_bytes), str(memory_bytes), str(os.getpid()))
    process = subprocess.Popen(
        [sys.executable, "-m", "emulator.node.board_process", str(theirs.fileno()), "127.0.0.1", *numbers],
        cwd=ROOT,
        env=os.environ | {"XDG_CACHE_HOME": str(home), "OMP_NUM_THREADS": "1"},
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    try:
        yield process, ours
    finally:
        with suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        process.wait()
        ours.close()


def run_on(
    spec: RunSpec,
    socks: Sequence[socket.socket],
    watch: Callable[[Event], None],
    next_command: Callable[[], LiveCommand | None] = lambda: None,
) -> RunReport:
    networks: list[BoardsNetwork] = []

    def opened(spec: RunSpec, dilation: float) -> BoardsNetwork:
        networks.append(BoardsNetwork(spec, socks))
        return networks[0]

    def start(*given):
        return networks[0].start(*given)

    return execute(spec, opened, watch, next_command, start=start)
