"""The network between two boards is measured by those that have the run's key, whoever else calls."""

import socket
from contextlib import ExitStack

import pytest

from emulator.node.links import be_probed, probe
from engine.domain.errors import RunError
from engine.worlds.real import gate

HERE, KEY = "127.0.0.1", b"k" * 32


def test_strangers_who_call_first_and_never_end_hold_up_no_measurement(monkeypatch):
    monkeypatch.setattr(gate, "PATIENCE_S", 0.2)
    port, thread = be_probed(HERE, KEY)
    with ExitStack() as stack:
        strangers = [stack.enter_context(socket.create_connection((HERE, port), 20)) for _ in range(3)]
        for stranger in strangers:
            stranger.sendall(b"\0")
        found = probe(HERE, port, KEY)
        assert found.forward_bit_per_s > 0 and found.backward_bit_per_s > 0 and found.delay_s > 0
        thread.join(20)
        assert not thread.is_alive(), "a process with threads is not forked"
        assert not any(stranger.recv(1) for stranger in strangers), "they are hung up on"


def test_another_key_measures_nothing():
    port, thread = be_probed(HERE, KEY)
    with pytest.raises(RunError, match="does not reach the board"):
        probe(HERE, port, b"o" * 32)
    assert probe(HERE, port, KEY).delay_s > 0
    thread.join(20)
    assert not thread.is_alive()
