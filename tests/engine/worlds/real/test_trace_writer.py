"""The thread that sends a device's trace, with a supervisor that the test plays."""

import json
import socket
import threading
import time

import pytest

from engine.worlds.real.control_socket import ControlSocket
from engine.worlds.real.trace_writer import TraceWriter


@pytest.fixture
def supervisor():
    """Both ends of a device's socket, the supervisor's as lines."""
    ours, theirs = socket.socketpair()
    ours.settimeout(600)
    with ours, theirs, ours.makefile("r", encoding="utf-8") as lines:
        yield theirs, lines


def control_of(sock):
    control = object.__new__(ControlSocket)  # without its thread, which ends the process with the socket
    control.sock, control.sent_s = sock, 0.0
    control.lock = threading.Lock()
    return control


def test_a_process_says_that_it_is_alive_only_after_a_second_without_a_message(supervisor, monkeypatch):
    theirs, lines = supervisor
    monkeypatch.setattr(TraceWriter, "start", lambda self: None)
    control = control_of(theirs)
    writer = TraceWriter(control)
    control.sent_s = -50.0
    writer.tell_alive(-49.1)
    before_s = time.monotonic()
    control.send({"type": "listening"})
    assert before_s <= control.sent_s <= time.monotonic()
    writer.tell_alive(control.sent_s + 1.0)
    writer.tell_alive(control.sent_s + 1.1)
    assert [json.loads(lines.readline())["type"] for _ in range(2)] == ["listening", "alive"]


def test_a_supervisor_that_has_ended_is_no_error_of_the_thread(supervisor, monkeypatch):
    theirs, _ = supervisor
    monkeypatch.setattr(TraceWriter, "start", lambda self: None)
    writer = TraceWriter(control_of(theirs))
    theirs.shutdown(socket.SHUT_RDWR)
    writer.tell_alive(1e12)
