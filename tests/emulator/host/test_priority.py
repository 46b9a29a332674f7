"""Paced devices come first: real time for the first thread of a child, and for no shell."""

import multiprocessing
import os
import subprocess
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from emulator.host.leftovers import children
from emulator.host.priority import LOOP_PRIORITY, children_in_real_time
from emulator.host.rights import grants

pytestmark = pytest.mark.root


def policies(pid: int) -> dict[int, tuple[int, int]]:
    """Thread → (policy, priority)."""
    threads = [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    return {
        thread: (os.sched_getscheduler(thread), os.sched_getparam(thread).sched_priority)
        for thread in threads
    }


def device(ready: Connection) -> None:
    """A process with a second thread, until told to end."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    ready.send("ready")
    ready.recv()
    end.set()
    thread.join()


def test_first_threads_run_in_real_time_and_no_other_thread_and_no_shell() -> None:
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=device, args=(theirs,), daemon=True)
    child.start()
    shell = subprocess.Popen(["sleep", "1000"])
    assert ours.recv() == "ready"
    assert child.pid is not None
    # whatever else this test process has started is not the subject
    others = frozenset(known.pid for known in children(os.getpid()) if known.pid != child.pid)
    children_in_real_time(but=others)
    found = policies(child.pid)
    may = next(grant.ok for grant in grants() if grant.name == "real-time priority")
    assert found.pop(child.pid) == ((os.SCHED_RR, LOOP_PRIORITY) if may else (os.SCHED_OTHER, 0))
    assert [policy for policy, _ in found.values()] == [os.SCHED_OTHER]
    assert policies(shell.pid)[shell.pid][0] == os.SCHED_OTHER
    ours.send("end")
    child.join()
    shell.kill()
    shell.wait()
