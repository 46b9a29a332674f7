"""The devices of a run on boards that are none: processes here that are what a board has, each as drawn."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from engine.domain.spec import RunSpec

BOARD_PROCESS = "emulator.node.board_process"
CACHE_BYTES = 10_000_000_000
END_S = 5.0


@contextmanager
def with_played(spec: RunSpec, boards: Sequence[socket.socket]) -> Iterator[list[socket.socket]]:
    """Sockets that lead to the processes of all devices: those of `boards`, to which devices are bound, and
    between them those of devices that are played here.
    """
    bound = iter(boards)
    with ExitStack() as stack:
        yield [
            next(bound) if device.node else stack.enter_context(_played()) for device in spec.cluster.devices
        ]


@contextmanager
def _played() -> Iterator[socket.socket]:
    """Our end of the socket of a process that listens where boards can reach this machine."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            words = (str(theirs.fileno()), "", str(CACHE_BYTES), str(1 << 62), str(os.getpid()))
            process = subprocess.Popen(
                [sys.executable, "-m", BOARD_PROCESS, *words],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
                env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": _path()},
            )
        try:
            yield ours
        finally:
            with suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _path() -> str:
    return os.pathsep.join(path for path in sys.path if path)
