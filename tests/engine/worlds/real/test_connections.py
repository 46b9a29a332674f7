"""Connections over loopback: messages, pings, peers that close, and time-outs of TCP in virtual time."""

import socket

import pytest

from engine.program.frames import FRAME_HEADER_BYTES, FrameHeader
from engine.worlds.real.connections import (
    HELLO,
    SEND_BUFFER_BYTES,
    USER_TIMEOUT_S,
    WARM_UP_BYTES,
    Connections,
    SendConnection,
)

WAIT_S = 0.5
"""Of one look at what the kernel does at once; who waits for something looks again until it is there."""


@pytest.fixture
def pair():
    """Device 0 and device 1; each has the other's address."""
    ends = [Connections(rank, "127.0.0.1") for rank in (0, 1)]
    ends[0].addresses = {1: ("127.0.0.1", ends[1].port)}
    ends[1].addresses = {0: ("127.0.0.1", ends[0].port)}
    yield ends
    for end in ends:
        end.listener.close()
        for peer in list(end.sending):
            end.close(peer)
        for connection in end.receiving:
            connection.sock.close()
        end._woken.close()
        end._waker.close()


def until(end, condition):
    """All that `wait` gives until `condition()` holds."""
    messages, closed = [], []
    while not condition():
        arrived, ended = end.wait(WAIT_S)
        messages += arrived
        closed += ended
    return messages, closed


def open_both_ways(pair):
    near, far = pair
    assert near.open(1)
    assert far.open(0)
    until(far, lambda: far.num_connected == 1)
    until(near, lambda: near.num_connected == 1)
    return near, far


def write(end, peer, payload, number=0):
    """Send `payload` as one message; the list gets an entry when the kernel has taken it."""
    header = FrameHeader(number, len(payload), (0, 0), 1.0, 2.0, "uint8", (len(payload),), "x")
    done = []
    end.sending[peer].write(header, b"", memoryview(payload), done.append)
    return done


def receive(end, count):
    got = []
    while len(got) < count:
        got += end.wait(WAIT_S)[0]
    return got


def test_a_message_arrives_whole_with_its_header_and_its_sender(pair):
    near, far = open_both_ways(pair)
    done = write(near, 1, b"abc", number=7)
    (message,) = receive(far, 1)
    assert (message.src, message.header.message, bytes(message.body)) == (0, 7, b"abc")
    assert (message.header.sent_s, message.header.due_s) == (1.0, 2.0)
    assert len(done) == 1


def test_messages_of_one_peer_arrive_in_order(pair):
    near, far = open_both_ways(pair)
    for number in range(20):
        write(near, 1, bytes([number]) * number, number)
    assert [message.header.message for message in receive(far, 20)] == list(range(20))


def test_messages_of_any_size_arrive_whole_whether_the_kernel_is_asked_or_polled(pair):
    """Sizes around what is read at once: several messages, or a part of one, in a single read."""
    near, far = open_both_ways(pair)
    sizes = [0, 1, 65_424, 3, 65_536, 65_535, 200_000, 0, 5]
    for number, size in enumerate(sizes):
        write(near, 1, bytes([number]) * size, number)
    got = []
    while len(got) < len(sizes):
        near.wait(0.0)
        got += far.poll()[0]
    assert [bytes(message.body) for message in got] == [bytes([n]) * size for n, size in enumerate(sizes)]
    assert [message.header.message for message in got] == list(range(len(sizes)))


def test_a_large_message_on_its_way_is_seen_at_both_ends_and_a_small_one_at_none(pair):
    near, far = open_both_ways(pair)
    write(near, 1, bytes(1000))
    receive(far, 1)
    assert not near.is_moving_much and not far.is_moving_much
    write(near, 1, bytes(30_000_000))
    assert near.is_moving_much
    while not far.is_moving_much:
        far.poll()


def test_polling_names_a_peer_that_closes(pair):
    near, far = open_both_ways(pair)
    far.close(0)
    closed = []
    while not closed:
        closed = near.poll()[1]
    assert closed == [1] and not near.receiving


def test_what_the_kernel_does_not_take_waits_and_the_writer_does_not(pair):
    near, far = open_both_ways(pair)
    large = bytes(30_000_000)  # more than the buffers of a connection hold
    done = write(near, 1, large)
    assert not done
    assert near.sending[1].backlog
    messages = []
    while not messages:
        near.wait(0.0)
        messages += far.wait(0.0)[0]
    assert len(messages[0].body) == len(large)
    assert len(done) == 1


class SlowSocket:
    """A socket that takes `most` bytes at once, and none while it is `full`."""

    def __init__(self, sock, most):
        self.sock, self.most, self.full = sock, most, True

    def sendmsg(self, pieces):
        return self.send(b"".join(pieces))

    def send(self, data):
        if self.full:
            raise BlockingIOError
        self.sock.sendall(data[: self.most])
        return len(data[: self.most])

    def __getattr__(self, name):
        return getattr(self.sock, name)


def test_a_program_that_goes_on_within_a_write_sends_no_byte_twice(pair):
    """The kernel takes all of one message and a part of the next, and whoever waits for the first writes."""
    near, far = open_both_ways(pair)
    connection = near.sending[1]
    connection.sock = SlowSocket(connection.sock, FRAME_HEADER_BYTES + 160)

    def send(number, done=lambda at_s: None):
        header = FrameHeader(number, 150, (0, 0), 1.0, 2.0, "uint8", (150,), "x")
        connection.write(header, b"", memoryview(bytes([number]) * 150), done)

    send(0, lambda at_s: send(3))
    send(1)
    send(2)
    connection.sock.full = False
    while connection.backlog:
        connection.flush()
    arrived = [(message.header.message, bytes(message.body)) for message in receive(far, 4)]
    assert arrived == [(number, bytes([number]) * 150) for number in range(4)]


def test_a_question_is_answered_and_neither_is_a_message(pair):
    near, far = open_both_ways(pair)
    near.receiving[0].last_byte_s = 0.0
    near.ping(1)
    assert until(far, lambda: far.receiving[0].last_byte_s > 0)[0] == []
    far.wait(0.1)  # the question itself, if its first bytes came before
    assert until(near, lambda: near.last_byte_s(1) > 0)[0] == []


def test_no_ping_is_sent_while_messages_wait_to_be_sent(pair):
    near, _ = open_both_ways(pair)
    write(near, 1, bytes(30_000_000))
    before = len(near.sending[1].backlog)
    near.ping(1)
    assert len(near.sending[1].backlog) == before


def test_a_peer_that_closes_is_named(pair):
    near, far = open_both_ways(pair)
    far.close(0)
    closed = []
    while not closed:
        closed += near.wait(WAIT_S)[1]
    assert closed == [1]
    assert near.receiving == []


def test_closing_a_failed_peer_counts_its_messages_as_sent(pair):
    near, _ = open_both_ways(pair)
    done = write(near, 1, bytes(30_000_000))
    assert not done
    near.close(1)
    assert len(done) == 1
    assert near.sending == {}


def test_nothing_was_heard_from_a_peer_without_a_connection(pair):
    assert pair[0].last_byte_s(1) == 0.0


def test_another_thread_can_end_a_wait(pair):
    near, _ = pair
    near.wake()
    assert near.wait(WAIT_S) == ([], [])


def test_a_peer_counts_as_connected_after_its_warm_up_bytes(pair):
    near, _ = pair
    with socket.create_connection(("127.0.0.1", near.port)) as peer:
        peer.sendall(HELLO.pack(5) + bytes(WARM_UP_BYTES - 1))
        near.wait(WAIT_S)
        near.wait(WAIT_S)
        assert near.num_connected == 0
        peer.sendall(b"\0")
        until(near, lambda: near.num_connected == 1)
    assert near.receiving[0].src == 5


def user_timeout_s(connection: SendConnection) -> float:
    return connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1e3


def test_a_connection_that_is_open_when_the_clock_starts_gets_a_virtual_timeout(pair):
    near, _ = pair
    assert near.open(1)
    near.dilate(4.0)
    assert user_timeout_s(near.sending[1]) == pytest.approx(4 * USER_TIMEOUT_S)


def test_a_connection_that_is_opened_later_gets_it_too(pair):
    near, _ = pair
    near.dilate(2.5)
    assert near.open(1)
    assert user_timeout_s(near.sending[1]) == pytest.approx(2.5 * USER_TIMEOUT_S)


def test_before_the_clock_starts_tcp_keeps_the_kernels_timeout(pair):
    near, _ = pair
    assert near.open(1)
    assert user_timeout_s(near.sending[1]) == 0


def test_a_peer_that_does_not_listen_cannot_be_opened(pair):
    near, far = pair
    far.listener.close()
    assert not near.open(1)
    assert not near.sending


def test_a_program_that_goes_on_when_a_message_has_left_may_look_at_the_connections_itself(pair):
    """What it finds is its own; the look from within which it goes on takes what comes after."""
    near, far = open_both_ways(pair)
    found = []
    payload = bytes(4 * SEND_BUFFER_BYTES)
    while not near.is_writing:  # until the kernel takes no more
        header = FrameHeader(0, len(payload), (0, 0), 1.0, 2.0, "uint8", (len(payload),), "x")
        near.sending[1].write(header, b"", memoryview(payload), lambda at_s: found.append(near.wait(0.0)))
    write(far, 0, b"abc", number=7)
    got = []
    while near.is_writing or not (got or any(messages for messages, _ in found)):
        far.wait(0.0)
        near.wake()
        got += near.wait(0.0)[0]
    inner = [message for messages, _ in found for message in messages]
    assert [bytes(message.body) for message in inner + got] == [b"abc"]
