"""Runs commands and functions inside the network namespaces of other processes.

`run_each` starts one process per node at once and waits for all. `inside` calls a function on a thread, since
`setns` moves only the calling thread, and a socket stays in the namespace in which it was made.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from emulator.host.places import search_path
from engine.domain.command_name import COMMAND
from engine.domain.errors import HostError

T = TypeVar("T")

CLONE_NEWNET = 0x40000000  # linux/sched.h


class NodeCommand(NamedTuple):
    """A command: `argv` with `text` on standard input, inside the namespaces of process `pid`."""

    pid: int
    argv: tuple[str, ...]
    text: str = ""


def enter(pid: int) -> None:
    """Move the calling thread into the network namespace of `pid`; raises `HostError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            reason = os.strerror(ctypes.get_errno())
            raise HostError(f"entering a network namespace failed: {reason}.")


def inside(pid: int, work: Callable[[], T]) -> T:
    """Call `work` on a thread inside the network namespace of `pid`; its result or its exception."""
    results: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            enter(pid)
            results.append(work())
        except BaseException as error:  # handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=body, name="namespace")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def succeeds_apart(line: tuple[str, ...], text: str = "") -> bool:
    """Whether a command, with `text` as its input, succeeds in a network namespace made for it alone."""
    users = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    environment = os.environ | {"PATH": search_path()}
    done = subprocess.run(
        ("unshare", *users, "--net", *line),
        input=text.encode(),
        env=environment,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def run_each(commands: Sequence[NodeCommand]) -> list[str]:
    """Run all at once; returns their outputs in order. Raises `HostError` with the first failure."""
    running = [
        subprocess.Popen(
            ["mnexec", "-a", str(command.pid), *command.argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    outputs, complaint = [], ""
    for command, process in zip(commands, running, strict=True):
        output, error = process.communicate(command.text)
        outputs.append(output)
        if process.returncode and not complaint:
            complaint = f"`{' '.join(command.argv)}` failed: {error.strip() or process.returncode}"
    if complaint:
        raise HostError(f"{complaint}: run {COMMAND} doctor to see what this machine lacks.")
    return outputs
