"""When a test exceeds its time limit, the stacks of all its processes are printed, then it fails.

pytest-timeout prints the stacks of pytest's own threads. Many tests wait for other processes, so this plugin
prints theirs first: py-spy reads the Python stacks of each descendant process from outside.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import pytest_timeout

from emulator.host.leftovers import Process, children

PY_SPY = str(Path(sys.executable).with_name("py-spy"))
PY_SPY_LIMIT_S = 20


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """As pytest-timeout's own signal timer, with the stacks of child processes."""
    if settings.method != "signal":
        return None

    def expire(number: int, frame: object) -> None:
        __tracebackhide__ = True
        item.config.get_terminal_writer().write(stacks_of_descendants())
        pytest_timeout.timeout_sigalrm(item, settings)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]
    signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


def descendants(pid: int) -> list[Process]:
    found = children(pid)
    return found + [below for child in found for below in descendants(child.pid)]


def stacks_of_descendants() -> str:
    """Command line and, for Python, the stacks of every process below this one."""
    text = ""
    for process in descendants(os.getpid()):
        text += f"\n~~~~ process {process.pid}: {_command_line(process.pid)}\n"
        try:
            dumped = subprocess.run(
                [PY_SPY, "dump", "--nonblocking", "--pid", str(process.pid)],
                capture_output=True,
                text=True,
                timeout=PY_SPY_LIMIT_S,
                check=False,
            )
            text += dumped.stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            text += f"its stacks could not be read: {error}\n"
    return text


def _command_line(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:300]
    except OSError:
        return "(it has ended)"
