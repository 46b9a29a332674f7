"""The network between two boards is measured by those that have the run's key, whoever else calls."""

import socket
from contextlib import ExitStack

import pytest

from emulator.node.links import be_probed, probe
from emulator.session.calls import call
from engine.domain.errors import RunError
from engine.worlds.real import gate
from tests.support import impairment_bodies as bodies
from tests.support.small_clusters import cluster, link

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


@pytest.mark.root
def test_a_shaped_network_is_measured_as_it_is_shaped_in_each_direction():
    """Of some hundred segments, 10 % are lost: with 2 % to 25 % it is neither none of them nor other ones."""
    shaped = link("a", "b", 40e6, reverse_bit_per_s=10e6, delay_s=4e-3, loss_frac=0.1, reverse_loss_frac=0.0)
    found = call(bodies.probed, cluster("a b", "", shaped).model_dump(mode="json"))
    assert 0.02 < found["forward_loss_frac"] < 0.25 and found["backward_loss_frac"] < 0.02
    assert found["delay_s"] == pytest.approx(4e-3, rel=0.25)
    assert found["backward_bit_per_s"] == pytest.approx(10e6, rel=0.15)
    assert found["forward_bit_per_s"] < 40e6, "what one connection gets where so much is lost"
