"""When a silent peer is pinged and when it is suspected, by a clock that the tests move."""

import pytest

from engine.worlds.real.watchdog import CHECK_PERIOD_S, PeerWatchdog, SilenceLimits, silence_limits


class Peers:
    """The state of a device's peers, and the actions of its watchdog. Peer 1 is awaited since 10.0 s."""

    def __init__(self, limits=SilenceLimits(ping_after_s=2.0, suspect_after_s=6.0)):  # noqa: B008
        self.awaited = {1: 10.0}
        self.last_byte_s = {}
        self.asked, self.reported = [], []
        self.watchdog = PeerWatchdog(
            limits,
            lambda: self.awaited,
            lambda peer: self.last_byte_s.get(peer, 0.0),
            self.asked.append,
            lambda peer, last_byte_s: self.reported.append((peer, last_byte_s)),
        )


@pytest.mark.parametrize(
    ("silence_s", "dilation", "expected"),
    [
        (2.0, 1.0, (0.3, 2.0)),
        (2.0, 4.0, (1.2, 8.0)),  # virtual limits, so they grow with the dilation
        (0.6, 5.0, (1.0, 3.0)),  # the limit holds three waits
        (0.1, 2.0, (1 / 3, 1.0)),  # a busy process may be silent for one wall second
    ],
)
def test_limits_are_virtual_but_never_below_a_wall_second(silence_s, dilation, expected):
    assert silence_limits(silence_s, dilation) == pytest.approx(expected)


def test_a_peer_is_pinged_after_the_first_limit():
    peers = Peers()
    peers.watchdog.check(11.9)
    assert peers.asked == []
    peers.watchdog.check(12.1)
    assert (peers.asked, peers.reported) == ([1], [])


def test_it_is_pinged_again_when_as_much_time_has_passed():
    peers = Peers()
    for now_s in (12.1, 13.0, 14.0, 14.2):
        peers.watchdog.check(now_s)
    assert peers.asked == [1, 1]


def test_a_peer_that_does_not_answer_is_reported_once():
    peers = Peers()
    for now_s in (12.1, 14.2, 15.9, 16.1, 17.0, 18.0):
        peers.watchdog.check(now_s)
    assert peers.reported == [(1, 0.0)]


def test_a_device_that_got_no_processor_for_a_while_pings_before_it_suspects():
    """Its peer may have been silent only because nobody asked it."""
    peers = Peers()
    for now_s in (1000.0, 1000.2, 1002.1):
        peers.watchdog.check(now_s)
    assert (peers.asked, peers.reported) == ([1, 1], [])
    peers.watchdog.check(1002.3)
    assert peers.reported == [(1, 0.0)]


def test_pings_of_an_earlier_silence_do_not_count():
    peers = Peers()
    for now_s in (12.1, 14.2):
        peers.watchdog.check(now_s)
    peers.last_byte_s[1] = 15.0
    peers.watchdog.check(1000.0)
    assert (peers.asked, peers.reported) == ([1, 1, 1], [])


def test_any_byte_is_an_answer():
    peers = Peers()
    peers.last_byte_s[1] = 15.0
    peers.watchdog.check(16.9)
    assert (peers.asked, peers.reported) == ([], [])
    peers.watchdog.check(17.1)
    assert peers.asked == [1]
    peers.watchdog.check(19.2)
    peers.watchdog.check(21.1)
    assert peers.reported == [(1, 15.0)]


def test_silence_counts_from_when_a_program_began_to_wait():
    peers = Peers()
    peers.last_byte_s[1] = 1.0
    peers.watchdog.check(11.0)
    assert (peers.asked, peers.reported) == ([], [])


def test_a_peer_that_no_program_waits_for_may_be_silent():
    peers = Peers()
    peers.awaited = {}
    peers.watchdog.check(1000.0)
    assert (peers.asked, peers.reported) == ([], [])


def test_between_two_checks_there_is_a_pause():
    peers = Peers()
    peers.watchdog.check(11.99)
    peers.watchdog.check(11.99 + CHECK_PERIOD_S * 0.9)  # over the limit, but too soon to look
    assert peers.asked == []
    peers.watchdog.check(11.99 + CHECK_PERIOD_S * 1.1)
    assert peers.asked == [1]


def test_a_closed_connection_is_reported_at_once_and_only_once():
    peers = Peers()
    peers.watchdog.suspect(2)
    peers.watchdog.suspect(2)
    assert peers.reported == [(2, None)]


def test_a_peer_that_joined_again_may_be_suspected_again():
    peers = Peers()
    peers.watchdog.suspect(2)
    peers.watchdog.trust(2, 10.0)
    peers.watchdog.suspect(2)
    assert peers.reported == [(2, None)] * 2
    peers.watchdog.trust(3, 10.0)


def test_the_silence_of_a_peer_that_is_known_to_run_counts_from_then_on():
    peers = Peers()
    for now_s in (12.1, 14.2, 16.1):
        peers.watchdog.check(now_s)
    peers.watchdog.trust(1, 16.2)
    for now_s in (18.1, 18.3, 20.4, 22.1):
        peers.watchdog.check(now_s)
    assert peers.reported == [(1, 0.0)]
    peers.watchdog.check(22.3)
    assert peers.reported == [(1, 0.0)] * 2


def test_limits_may_change_when_the_clock_of_the_run_is_known():
    peers = Peers()
    peers.watchdog.limits = SilenceLimits(20.0, 60.0)
    peers.watchdog.check(25.0)
    assert (peers.asked, peers.reported) == ([], [])
