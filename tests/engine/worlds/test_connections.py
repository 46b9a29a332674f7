"""Connections over loopback: what TCP is told before and after the run's clock is known."""

import socket

import pytest

from engine.worlds.real.connections import USER_TIMEOUT_S, Connections, Outlet


@pytest.fixture
def pair():
    """Device 0, and device 1 that it knows."""
    ends = [Connections(rank, "127.0.0.1") for rank in (0, 1)]
    ends[0].addresses = {1: ("127.0.0.1", ends[1].port)}
    yield ends
    for end in ends:
        end.listener.close()
        for peer in list(end.outlets):
            end.close(peer)
        for inlet in end.inlets:
            inlet.sock.close()
        end._woken.close()
        end._waker.close()


def patience_s(outlet: Outlet) -> float:
    return outlet.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1e3


def test_a_connection_that_is_open_when_the_clock_starts_gets_virtual_patience(pair):
    near, _ = pair
    assert near.open(1)
    near.dilate(4.0)
    assert patience_s(near.outlets[1]) == pytest.approx(4 * USER_TIMEOUT_S)


def test_a_connection_that_is_opened_later_gets_it_too(pair):
    near, _ = pair
    near.dilate(2.5)
    assert near.open(1)
    assert patience_s(near.outlets[1]) == pytest.approx(2.5 * USER_TIMEOUT_S)


def test_before_the_clock_starts_tcp_is_left_its_own_patience(pair):
    near, _ = pair
    assert near.open(1)
    assert patience_s(near.outlets[1]) == 0


def test_a_peer_that_nobody_listens_for_cannot_be_opened(pair):
    near, far = pair
    far.listener.close()
    assert not near.open(1)
    assert not near.outlets
