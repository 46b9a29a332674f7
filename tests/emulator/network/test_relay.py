"""When a relay forwards a frame, in which order, and which frames it loses: on a clock of the test's own."""

import fcntl
import json
import os
import random
import resource
import socket
import statistics
import threading
from types import SimpleNamespace

import pytest

from emulator.network import relay
from emulator.network.relay import EARLY_S, Relay, RelayedDirection


def direction(source: int = 0, target: int = 0, seed: str = "0 True", **settings: float) -> RelayedDirection:
    made = RelayedDirection(source, target, seed)
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def test_a_frame_is_due_after_the_delay() -> None:
    assert direction(delay_s=0.25).due_s(4.0) == 4.25
    assert direction().due_s(4.0) == 4.0


def test_jitter_is_uniform_around_the_delay() -> None:
    made = direction(delay_s=0.02, jitter_s=0.01)
    delays = []
    for number in range(4000):
        due_s = made.due_s(float(number))  # a second apart, so that no frame waits for the one before
        assert due_s is not None
        delays.append(due_s - number)
    assert 0.01 <= min(delays) < 0.0101 and 0.0299 < max(delays) <= 0.03
    assert statistics.fmean(delays) == pytest.approx(0.02, abs=5e-4)
    assert statistics.stdev(delays) == pytest.approx(0.02 / 12**0.5, abs=3e-4)  # of a width of 0.02


def test_jitter_never_lets_a_frame_overtake_another_nor_leave_before_it_came() -> None:
    made = direction(delay_s=0.001, jitter_s=0.5)
    due = [made.due_s(number * 1e-4) for number in range(200)]
    known = [time_s for time_s in due if time_s is not None]
    assert known == sorted(known)
    assert all(time_s >= number * 1e-4 for number, time_s in enumerate(known))


def test_the_asked_fraction_is_lost_at_random_and_the_seed_repeats_it() -> None:
    def lost(seed: str) -> list[bool]:
        made = direction(seed=seed, loss_frac=0.2)
        return [made.due_s(0.0) is None for _ in range(5000)]

    assert statistics.fmean(lost("a")) == pytest.approx(0.2, abs=0.02)
    assert lost("a") == lost("a") != lost("b")
    numbers = random.Random("a")
    assert lost("a")[:20] == [numbers.random() < 0.2 for _ in range(20)]


class Bench:
    """A relay between two pairs of sockets that keep frames apart, with a clock that only the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: float):
        self.now_s = 100.0
        self.asked_s: list[float | None] = []
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
        (self.input, source), (target, self.output) = pairs
        for end in (source, self.output):
            end.setblocking(False)
        self.open = [end for pair in pairs for end in pair]
        self.ours, theirs = socket.socketpair()
        self.open += [self.ours, theirs]
        self.direction = direction(source.fileno(), target.fileno(), **settings)
        self.relay = Relay(theirs, [self.direction])
        monkeypatch.setattr(relay, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        monkeypatch.setattr(relay, "select", SimpleNamespace(select=self.select))

    def select(self, watched: list[object], _: object, __: object, timeout_s: float | None) -> tuple[object]:
        """Time passes until the next frame is due; when none waits, the control socket closes."""
        self.asked_s.append(timeout_s)
        assert len(self.asked_s) < 100, "the relay never sends what is due"
        if timeout_s is None:
            self.ours.close()
            return ([self.relay.watching],)
        self.now_s += timeout_s
        return ([],)

    def arrive(self, *frames: bytes) -> None:
        for frame in frames:
            self.input.send(frame)
        self.relay._forward(self.direction)

    def left(self) -> list[bytes]:
        """Frames that have gone on since the last call."""
        frames = []
        while True:
            try:
                frames.append(self.output.recv(100))
            except BlockingIOError:
                return frames

    def close(self) -> None:
        for end in self.open:
            end.close()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch):
    made = Bench(monkeypatch)
    yield made
    made.close()


def test_without_delay_frames_go_on_at_once_and_in_order(bench: Bench) -> None:
    bench.arrive(b"one", b"two")
    assert bench.left() == [b"one", b"two"]
    assert bench.relay.heap == []


def test_delayed_frames_wait_until_just_before_they_are_due(bench: Bench) -> None:
    bench.direction.delay_s = 0.5
    bench.arrive(b"one")
    bench.now_s = 100.25
    bench.arrive(b"two")
    assert bench.left() == []
    bench.relay.run()
    assert bench.left() == [b"one", b"two"]
    first_s, second_s, last = bench.asked_s
    assert first_s == pytest.approx(0.25 - EARLY_S)
    assert second_s == pytest.approx(0.25)  # from EARLY_S before 100.5 until EARLY_S before 100.75
    assert last is None


def test_descriptors_may_have_any_number() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or hard > 2000
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2001), hard))
    ours, theirs = socket.socketpair()
    (sending, source), (target, receiving) = (
        socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)
    )
    source.setblocking(False)
    receiving.settimeout(60)
    high = fcntl.fcntl(source.fileno(), fcntl.F_DUPFD_CLOEXEC, 1500)
    try:
        running = Relay(theirs, [direction(high, target.fileno())])
        sending.send(b"one")
        thread = threading.Thread(target=running.run)
        thread.start()
        assert receiving.recv(100) == b"one"
        ours.close()
        thread.join()
    finally:
        os.close(high)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for end in (ours, theirs, sending, source, target, receiving):
            end.close()


def test_frames_due_within_two_wake_up_margins_share_one_sleep(bench: Bench) -> None:
    bench.direction.delay_s = 0.5
    bench.arrive(b"one")
    bench.now_s += EARLY_S / 2
    bench.arrive(b"two")
    bench.relay.run()
    assert bench.left() == [b"one", b"two"]
    assert len(bench.asked_s) == 2


def test_a_lost_frame_is_neither_sent_nor_kept(bench: Bench) -> None:
    bench.direction.loss_frac = 1.0
    bench.arrive(b"one")
    assert bench.left() == []
    assert bench.relay.heap == []


def test_settings_are_in_force_when_they_are_acknowledged(bench: Bench) -> None:
    line = json.dumps([0, 0.5, 0.25, 0.125]) + "\n"
    bench.ours.sendall(line[:5].encode())
    assert bench.relay._handle_control()
    assert bench.direction.delay_s == 0.0
    bench.ours.sendall(line[5:].encode())
    assert bench.relay._handle_control()
    found = bench.direction
    assert (found.delay_s, found.jitter_s, found.loss_frac) == (0.5, 0.25, 0.125)
    assert bench.ours.recv(100) == line.encode()


def test_a_frame_for_an_interface_that_is_down_is_lost_without_an_error(bench: Bench) -> None:
    bench.output.close()
    bench.arrive(b"one")
    bench.arrive(b"two")
