"""Device processes that tests play themselves: a socket pair each, no fork, and a clock that tests move."""

import contextlib
import json
import signal
import socket
from typing import NamedTuple

from engine.models import catalogue
from engine.runs.active_run import ActiveRun
from engine.runs.children import Child
from engine.runs.pool import DevicePool
from engine.runs.predict import prepare
from tests.support.small_cases import spec_of, star

MODEL, WEIGHTS = catalogue.resolve("tiny-gpt2", "random")


NO_PROCESS = 2**22 + 1
"""A process id above the highest that Linux gives; see proc(5), pid_max."""


def small_spec(devices=3, strategy="megatron", **more):
    spec = spec_of(strategy, MODEL, star((1e8,) * devices), new_tokens=3)
    return spec.model_copy(update={"weights": WEIGHTS, "dilation": 2.0, **more})


class FakeClock:
    """A wall clock that stands still until a test moves it."""

    def __init__(self, now_s=100.0):
        self.now_s = now_s

    def __call__(self):
        return self.now_s


class FakeDevice:
    """The other end of a device's socket."""

    def __init__(self, sock):
        self.sock = sock
        self.text = ""

    def report(self, **message):
        self.sock.sendall((json.dumps(message) + "\n").encode())

    def got(self):
        """The messages that have been sent to this device since the last call."""
        self.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self.text += self.sock.recv(1 << 20).decode()
        *lines, self.text = self.text.split("\n")
        return [json.loads(line) for line in lines]


class Signal(NamedTuple):
    rank: int
    number: signal.Signals


class FakePool(DevicePool):
    """A pool whose devices the test plays: `devices` are their ends, `signals` what they were sent; `stopped`
    are those whose process a signal has stopped.
    """

    def __init__(self, clock):
        super().__init__(self._fake_fork, lambda rank: f"10.0.0.{rank}", clock)
        self.devices, self.signals, self.plans = {}, [], {}
        self.closed_at_once = None
        self.stopped = set()

    def is_stopped(self, rank):
        return rank in self.stopped

    def _fake_fork(self, rank, plan, others):
        ours, theirs = socket.socketpair()
        self.devices[rank], self.plans[rank] = FakeDevice(theirs), plan
        child = Child(rank, f"d{rank}", NO_PROCESS, ours)
        child.last_message_s = child.last_ping_s = self._clock()
        return child

    def kill(self, rank):
        self.signal(rank, signal.SIGKILL)
        if rank in self.children:
            self.children[rank].killed = True

    def signal(self, rank, number):
        if rank in self.children:
            self.signals.append(Signal(rank, number))

    @property
    def killed(self):
        return [sent.rank for sent in self.signals if sent.number == signal.SIGKILL]

    def got(self, rank, kind=None):
        """The messages to device `rank` since the last call, of type `kind` if given."""
        return [m for m in self.devices[rank].got() if kind in (None, m["type"])]

    def close(self, at_once):
        self.closed_at_once = at_once
        for child in [*self.children.values(), *self._ended]:
            child.sock.close()
        for device in self.devices.values():
            device.sock.close()
        self._selector.close()


def active_run(clock, started=True, pairs=frozenset({(0, 1), (1, 0)}), **more):
    """A run of three devices whose events are in `.events`; it started at wall time 100 with dilation 2."""
    prepared = prepare(small_spec(**more))
    events = []
    run = ActiveRun(prepared.spec, prepared.plan, prepared.requests, 2.0, pairs, events.append, clock=clock)
    run.events = events
    run.start_wall_s = clock() if started else None
    return run


def running_pool(clock, run, ranks=(0, 1, 2)):
    """A pool whose devices all run their programs."""
    pool = FakePool(clock)
    for rank in ranks:
        pool.fork(rank, run.plan)
        pool.children[rank].state = "running"
    return pool
