"""What a device process writes reaches the run's events: whole lines, so many, and those before its end."""

import os
import socket

import pytest

from engine.runs.children import Child
from engine.runs.output import LEFT_OUT, MOST_CHARS, MOST_LINES, Output
from engine.runs.pool import DevicePool
from tests.support.fake_devices import FakeClock, active_run


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    output = Output(reading, "d0")
    yield output, writing
    output.close()


def test_lines_are_read_when_they_are_whole_and_shown_with_the_device_in_this_process_log(pipe, capsys):
    output, writing = pipe
    os.write(writing, b"one\ntw")
    assert output.read() == (["one"], True)
    os.write(writing, b"o\n\xff\nthree")
    assert output.read() == (["two", "\ufffd"], True)
    os.close(writing)
    assert output.read() == (["three"], False)
    assert capsys.readouterr().err == "d0: one\nd0: two\nd0: \ufffd\nd0: three\n"


def test_a_process_that_writes_without_end_is_cut_off_and_says_so_once(pipe, capsys):
    output, writing = pipe
    os.write(writing, b"x" * (MOST_CHARS + 7) + b"\n" + b"y\n" * MOST_LINES)
    lines, _ = output.read()
    assert len(lines) == MOST_LINES + 1
    assert (lines[0], lines[-1]) == ("x" * MOST_CHARS + "…", LEFT_OUT)
    os.write(writing, b"z\n")
    os.close(writing)
    assert output.read() == ([], False)
    assert capsys.readouterr().err.endswith("z\n")


def test_the_last_words_come_before_the_end_of_the_process():
    clock = FakeClock()
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    child = Child(0, "d0", os.getpid(), ours, Output(reading, "d0"))
    pool = DevicePool(lambda rank, plan, others: child, lambda rank: "", clock)
    pool.fork(0, active_run(clock).plan)
    os.write(writing, b"Fatal error: no more memory\n")
    theirs.close()
    os.close(writing)
    found = [message for _ in range(2) for _, message in pool.read(0.0)]
    assert found == [{"type": "log", "lines": ["Fatal error: no more memory"]}, None]
    assert pool.read(0.0) == []
    child.close()


def test_what_a_process_wrote_comes_before_the_error_that_ends_the_run():
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    child = Child(0, "d0", os.getpid(), ours, Output(reading, "d0"))
    pool = DevicePool(lambda rank, plan, others: child, lambda rank: "", FakeClock())
    pool.fork(0, active_run(FakeClock()).plan)
    theirs.sendall(b'{"type": "error"}\n')
    os.write(writing, b"Traceback: here\n")
    found = [message["type"] for _, message in pool.read(0.0)]
    assert found == ["log", "error"]
    for end in (theirs, child):
        end.close()
    os.close(writing)
