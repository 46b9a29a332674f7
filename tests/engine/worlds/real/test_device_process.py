"""How a device process opens its connections, with connections and a supervisor that the test plays."""

from types import SimpleNamespace

import pytest

from engine.worlds.real.device_process import _MessageHandler


class Connections:
    """`refusals` by peer: so often `open` fails before it succeeds. All peers have connected."""

    def __init__(self, refusals):
        self.refusals, self.opened, self.addresses = dict(refusals), [], {}
        self.num_connected = len(refusals)

    def open(self, peer):
        self.refusals[peer] -= 1
        if self.refusals[peer] >= 0:
            return False
        self.opened.append(peer)
        return True

    def wait(self, timeout_s):
        return [], []


def connected(kind, refusals, messages=()):
    """Whether all was opened, the peers opened, those suspected, and what the log says of the others."""
    connections, suspected, waiting, said = Connections(refusals), [], list(messages), []
    handler = object.__new__(_MessageHandler)
    handler.device = SimpleNamespace(
        connections=connections,
        watchdog=SimpleNamespace(suspect=suspected.append),
        warm_up=lambda: None,
        halt=lambda: None,
    )
    handler.control = SimpleNamespace(
        receive=lambda: waiting.pop(0) if waiting else None, say=said.append, send=lambda message: None
    )
    handler.trace = SimpleNamespace(finish=lambda: None)
    handler.assignment = SimpleNamespace(
        spec=SimpleNamespace(
            cluster=SimpleNamespace(devices=[SimpleNamespace(name=f"d{i}") for i in range(4)])
        )
    )
    handler.warm = handler.exited = False
    message = {"type": kind, "addresses": [], "peers": sorted(refusals), "expect": len(refusals)}
    done = handler._connect(message)
    return done, connections.opened, suspected, [line for line in said if "cannot reach" in line]


def test_before_a_run_starts_a_peer_that_is_slow_to_answer_is_tried_again_and_no_device_has_failed():
    assert connected("connect", {1: 0, 2: 3, 3: 1}) == (
        True,
        [1, 3, 2],
        [],
        ["It cannot reach d2, d3 yet, and tries again."],
    )


def test_a_device_that_cannot_connect_ends_when_the_supervisor_gives_up():
    assert connected("connect", {1: 10**9}, [{"type": "exit"}]) == (
        False,
        [],
        [],
        ["It cannot reach d1 yet, and tries again."],
    )


@pytest.mark.parametrize("refusals", [1, 5])
def test_under_a_new_plan_a_peer_that_cannot_be_reached_is_suspected_at_once(refusals):
    assert connected("resume", {1: 0, 2: refusals}) == (True, [1], [2], [])
