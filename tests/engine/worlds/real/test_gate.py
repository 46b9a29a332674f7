"""Devices that others can reach let in who has the key of the run, and send to nobody else."""

import socket
import threading
from contextlib import ExitStack, suppress

import pytest

from engine.program.frames import FrameHeader
from engine.worlds.real.connections import HELLO, WARM_UP_BYTES, Connections
from engine.worlds.real.gate import Stranger, let_in, open_gate

KEY, OTHER = b"k" * 32, b"o" * 32
HERE = "127.0.0.1"


def both(first, second):
    """What two functions return or raise that are called at once."""
    found = {}

    def call(name, function):
        try:
            found[name] = function()
        except OSError as error:
            found[name] = error

    threads = [threading.Thread(target=call, args=named) for named in (("first", first), ("second", second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found["first"], found["second"]


@pytest.fixture
def pair():
    ends = socket.socketpair()
    for end in ends:
        end.settimeout(20)
    yield ends
    for end in ends:
        end.close()


def closing(sock, function):
    """As whoever fails does it, so that the other need not wait."""
    try:
        return function()
    except OSError:
        sock.close()
        raise


def test_both_ends_know_each_other_by_the_key(pair):
    opener, listener = pair
    assert both(lambda: open_gate(opener, KEY, 3), lambda: let_in(listener, KEY)) == (None, 3)


def test_with_another_key_neither_end_goes_on(pair):
    opener, listener = pair
    first, second = both(
        lambda: closing(opener, lambda: open_gate(opener, OTHER, 3)),
        lambda: closing(listener, lambda: let_in(listener, KEY)),
    )
    assert isinstance(first, Stranger) and isinstance(second, OSError)


@pytest.fixture
def made_pair():
    """Pairs of sockets that are closed at the end."""
    with ExitStack() as stack:

        def made():
            return tuple(map(stack.enter_context, socket.socketpair()))

        yield made


def test_what_was_heard_of_another_connection_opens_none(made_pair):
    """Who has read a whole exchange says it again: the listener's nonce is another."""
    opener, tap = made_pair()
    said = []

    def relay(listener):
        said.append(tap.recv(100))
        listener.sendall(said[0])
        tap.sendall(listener.recv(100))
        said.append(tap.recv(100))
        listener.sendall(said[1])

    ours, theirs = made_pair()
    relaying = threading.Thread(target=relay, args=(ours,))
    relaying.start()
    assert both(lambda: open_gate(opener, KEY, 1), lambda: let_in(theirs, KEY)) == (None, 1)
    relaying.join()
    again, listener = made_pair()
    again.sendall(said[0] + said[1])
    with pytest.raises(Stranger, match="who calls"):
        let_in(listener, KEY)


@pytest.fixture
def devices():
    made = [Connections(rank, HERE, KEY) for rank in (0, 1)]
    for one in made:
        one.addresses = {rank: (HERE, other.port) for rank, other in enumerate(made)}
    yield made
    for one in made:
        one.listener.close()


def test_two_devices_that_connect_to_each_other_at_once_exchange_messages(devices):
    first, second = devices
    assert both(lambda: first.open(1), lambda: second.open(0)) == (True, True)
    got = []
    header = FrameHeader(1, 4, (0, 0), 0.0, 0.0, "uint8", (4,), "x")
    first.sending[1].write(header, b"", memoryview(b"data"), lambda at_s: None)
    while not got:
        messages, _ = second.wait(0.1)
        got += messages
    assert (got[0].src, bytes(got[0].body)) == (0, b"data")


def test_a_stranger_is_no_peer_and_nothing_that_it_says_arrives(devices):
    first, second = devices
    with socket.create_connection((HERE, first.port)) as stranger, suppress(OSError):
        stranger.settimeout(20)
        stranger.sendall(HELLO.pack(1) + bytes(WARM_UP_BYTES))
        while stranger.recv(100):  # until it is hung up on
            continue
    assert first.gate.admitted.empty() and not first.receiving
    second.key = OTHER
    assert not second.open(0), "neither is one of another run"


def test_who_has_proved_to_be_one_device_cannot_greet_as_another(devices):
    first, _ = devices
    with socket.create_connection((HERE, first.port)) as liar:
        open_gate(liar, KEY, 1)
        liar.sendall(HELLO.pack(7) + bytes(WARM_UP_BYTES))
        closed = []
        while not closed:
            _, ended = first.wait(0.1)
            closed += ended
    assert closed == [1], "it is known by its proof"
