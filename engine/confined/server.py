"""The process that forks for each confined call: `python -m engine.confined.server FD`. See `call.py`.

It gets a connection for each call over the socket FD, and ends with the process that holds the other end.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import math
import os
import pickle
import resource
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from engine.confined.wire import receive, send
from engine.domain.errors import SpecError
from engine.domain.parent import end_with

PR_SET_NO_NEW_PRIVS = 38
LIBC = ctypes.CDLL(None)


def serve(control: socket.socket) -> None:
    """Fork for each connection that comes over `control`, until that is closed. Also in an emulation, whose
    clock may go on meanwhile, with an ordinary priority.
    """
    os.setpriority(os.PRIO_PROCESS, 0, max(0, os.getpriority(os.PRIO_PROCESS, 0)))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets children that have ended
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        with socket.socket(fileno=descriptors[0]) as connection:
            try:
                question = receive(connection)
            except (OSError, EOFError):  # who asked has ended, and others still ask
                continue
            modules, *named = pickle.loads(question)
            for module in modules:
                importlib.import_module(module)
            server = os.getpid()
            if os.fork() == 0:
                end_with(server)
                control.close()
                _answer(connection, *named)


def _answer(
    connection: socket.socket, function: Any, arguments: Any, limits: tuple[float, float, int]
) -> NoReturn:
    try:
        began_s = time.monotonic()
        _limit(*limits)
        send(connection, str(began_s).encode())
        answer = _called(function, arguments)
        send(connection, json.dumps(answer).encode())
    finally:
        os._exit(0)


def _called(function: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    try:
        return {"value": function(*arguments)}
    except SpecError as error:
        return {"refused": [str(error), error.fields]}
    except RecursionError:
        return {"broke": "it is nested too deeply"}
    except MemoryError:
        return {"broke": "it needs too much memory"}
    except BaseException as error:  # a panic of Rust is no Exception
        return {"broke": str(error).rstrip(".") or type(error).__name__}


def _limit(limit_s: float, wall_s: float, memory_bytes: int) -> None:
    """Let the kernel end this process: no handler in Python would run while a parser in C works. Its time is
    the processor's, because on a busy machine a small file may wait for long.
    """
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, wall_s)
    seconds = math.ceil(limit_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it writes no file
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
