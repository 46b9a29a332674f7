"""How device processes end, as the run says it."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from engine.runs import children
from engine.runs.children import end_all, ending_of, fork_device
from engine.worlds.real.device_process import write_stacks_on_request

PATIENCE_S = 600.0
"""For processes that end by themselves, however busy the host is."""
ENDS = {
    "its process ended with status 3": "raise SystemExit(3)",
    "its process was ended by SIGSEGV": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "its process was ended by signal 35": "import os; os.kill(os.getpid(), 35)",
    "its process was ended by SIGKILL": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("sentence", ENDS)
def test_the_ending_of_a_process_is_said_and_still_there_for_who_waits_for_it(sentence):
    process = subprocess.Popen([sys.executable, "-c", ENDS[sentence]])
    assert ending_of(process.pid, PATIENCE_S) == sentence
    assert process.wait() != 0
    assert ending_of(process.pid) == "", "nobody's child any more"


def test_the_ending_is_said_by_a_parent_that_has_more_files_open_than_select_takes():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    process = subprocess.Popen(["sleep", "0.2"])
    with ExitStack() as many:
        for _ in range(1100):
            many.enter_context(open(os.devnull))  # noqa: PTH123
        assert ending_of(process.pid, PATIENCE_S) == "its process ended with status 0"
    process.wait()


@pytest.fixture
def lasting() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not end by itself, and at the latest ends with the test."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield process
    process.kill()
    process.wait()


def test_a_process_that_lives_on_without_its_socket_is_killed_and_said_to_be(lasting):
    process = lasting
    assert ending_of(process.pid, timeout_s=0.05) == (
        "its process closed its socket, did not end within 0.05 s and was killed"
    )
    assert process.wait() == -signal.SIGKILL


def test_a_process_that_is_asked_for_its_stacks_before_it_can_write_them_writes_them_later(monkeypatch):
    def device(rank, assignment, sock, parent):
        """The beginning of a device process, held up until it was sent the signal."""
        sock.recv(1)
        write_stacks_on_request()
        os._exit(0)

    monkeypatch.setattr(children, "device_process", device)
    child = fork_device(0, "d0", None, ())
    os.kill(child.pid, signal.SIGUSR1)
    child.sock.sendall(b"\n")
    assert ending_of(child.pid, PATIENCE_S) == "its process ended with status 0"
    lines, _ = child.output.read()
    assert any("in device" in line for line in lines)
    end_all([child], at_once=False)
    assert signal.SIGUSR1 not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "blocked for the fork only"
