"""Calls in a process of their own: they answer, refuse, and end at their limits, whatever they do in C."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.confined import Confined, call
from engine.confined.call import _server
from engine.domain.errors import SpecError

MEMORY_BYTES = 1 << 28


def confined(function, limit_s=5.0):
    return Confined(function, limit_s, MEMORY_BYTES)


def refuse(text):
    raise SpecError(f"{text} is wrong.", [("path", "wrong")])


def overlap(folder):
    """How many calls are inside, as each finds it."""
    mine = Path(folder) / str(os.getpid())
    os.mkfifo(mine)  # a file could not be written
    found = len(os.listdir(folder))  # noqa: PTH208
    mine.unlink()
    return found


def test_a_call_answers_what_the_function_returns_or_raises_what_it_refuses():
    assert confined(pow)("powers", 3, 4) == 81
    with pytest.raises(SpecError, match=r"^cat is wrong\.$") as caught:
        confined(refuse)("pictures", "cat")
    assert caught.value.fields == [("path", "wrong")]
    with pytest.raises(SpecError, match=r"^zero: cannot be read: .*division"):
        confined(divmod)("zero", 1, 0)


def test_no_installed_method_is_imported_there(monkeypatch):
    monkeypatch.setenv("LOOM_METHODS", "somebodys")
    assert confined(os.getenv)("methods", "LOOM_METHODS") == ""


def test_the_limit_is_of_the_processors_time_and_waiting_for_it_may_take_longer():
    left_s, _ = confined(signal.getitimer)("timers", signal.ITIMER_PROF)
    wall_s, _ = confined(signal.getitimer)("timers", signal.ITIMER_REAL)
    assert 0 < left_s < 5.1 < wall_s  # the kernel rounds up to a tick


def test_arithmetic_in_c_that_would_take_hours_ends_at_the_limit():
    with pytest.raises(SpecError, match=r"^bomb: cannot be read: it takes longer than 0.5 s\.$"):
        confined(pow, 0.5)("bomb", 9, 9**9)


def test_what_waits_for_the_processor_is_answered_beyond_the_limit_and_what_waits_for_ever_ends(monkeypatch):
    assert confined(time.sleep, 0.2)("patience", 0.5) is None
    monkeypatch.setattr(call, "SLACK_S", 0.3)
    with pytest.raises(SpecError, match=r"^sleep: cannot be read: it takes longer than 0.5 s\.$"):
        confined(time.sleep, 0.2)("sleep", 600)


def test_what_needs_more_memory_than_it_may_is_refused():
    with pytest.raises(SpecError, match="too much memory"):
        confined(bytearray)("large", 4 * MEMORY_BYTES)


def test_a_process_that_dies_refuses_its_call_and_the_next_is_answered():
    with pytest.raises(SpecError, match="was ended"):
        confined(signal.raise_signal)("crash", signal.SIGKILL)
    _server.process.kill()
    _server.process.wait()
    assert confined(pow)("powers", 2, 3) == 8


def test_the_server_ends_with_the_process_that_asked_it_which_leaves_nothing_open():
    asks = "from engine.confined import Confined, call; print(Confined(pow, 5.0, 1 << 28)('powers', 2, 3))"
    program = f"{asks}; print(call._server.process.pid)"
    done = subprocess.run(
        [sys.executable, "-W", "default::ResourceWarning", "-c", program], capture_output=True, text=True
    )
    value, pid = done.stdout.split()
    assert (value, done.stderr) == ("8", "")
    assert not Path(f"/proc/{pid}").exists()


def test_copies_of_a_process_ask_its_server_which_has_an_ordinary_priority():
    """So modules are loaded once, and no clock waits for them."""
    call.start_server()
    own = confined(os.getppid)("servers")
    assert {own} == call.pids()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, str(confined(os.getppid)("servers")).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == str(own).encode()
    os.close(reading)
    os.close(writing)
    assert confined(os.getpriority)("niceness", os.PRIO_PROCESS, own) >= 0


def test_a_caller_that_ends_within_its_question_does_not_end_the_server_of_the_others():
    call.start_server()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        socket.send_fds(_server.control, [b"."], [theirs.fileno()])
        ours.sendall(b"half")
    assert {confined(os.getppid)("servers")} == call.pids()
    assert confined(pow)("powers", 2, 3) == 8


def test_it_knows_no_secret_and_writes_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("REDIS_URL", "redis://:password@host/0")
    _server.process.kill()
    _server.process.wait()
    assert confined(os.getenv)("secret", "REDIS_URL") is None
    with pytest.raises(SpecError):
        confined(Path.write_text)("file", tmp_path / "file", "text")


def test_calls_wait_for_each_other(tmp_path):
    one_at_a_time = confined(overlap, 30.0)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: one_at_a_time("folder", str(tmp_path)), range(8))) == [1] * 8
