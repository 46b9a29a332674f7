"""Delay, jitter and loss without netem: relays where TCP must feel them, receivers and nft where not."""

import statistics

import pytest

from emulator.session.calls import call
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import HostError
from engine.domain.scenario import SetDelay
from engine.worlds.common.paths import PathTimes
from tests.support import impairment_bodies as bodies
from tests.support.small_clusters import cluster, link

pytestmark = pytest.mark.root
SLACK_S = 1e-3
"""By which the least delay of datagrams may differ from what was drawn."""


def pair(**more) -> dict[str, object]:
    made: ClusterSpec = cluster("a b", "", link("a", "b", more.pop("bit_per_s", 20e6), **more))
    return made.model_dump(mode="json")


@pytest.mark.alone
def test_a_relay_delays_each_direction_by_what_was_drawn() -> None:
    spec = pair(delay_s=0.01, reverse_delay_s=0.004, loss_frac=1e-6)
    found = call(bodies.delays, spec, 2.0, (0.02 + SLACK_S, 0.008 + SLACK_S))
    assert found["backend"] == "tbf+relay"
    assert found["there"] == pytest.approx(0.02, abs=SLACK_S)
    assert found["back"] == pytest.approx(0.008, abs=SLACK_S)
    assert not found["held"]
    for ratio in found["rates"]:  # measured without the delay
        assert ratio == pytest.approx(1.0, rel=0.05)
    assert found["after"] == pytest.approx(0.02, abs=SLACK_S)  # which is there again


@pytest.mark.alone
def test_jitter_spreads_around_the_delay_within_its_bounds() -> None:
    """Delays are uniform from 5 to 15 ms. Their quartiles are compared, because one pause of the host makes
    single delays long: 100 uniform delays have their quartiles within 2 ms of 7.5, 10 and 12.5 ms but for one
    time in 10,000.
    """
    quartiles, slack_s = [0.0075, 0.01, 0.0125], 2e-3
    enough_s = [quartile + slack_s for quartile in quartiles]
    found = call(bodies.spreads, pair(delay_s=0.01, jitter_s=0.005), 100, enough_s)
    assert found["backend"] == "tbf+relay"
    for delays in found["delays"]:
        assert min(delays) >= 0.005 - 1e-4  # which a relay may be early, to spare sleeps
    spread = found["delays"][-1]
    assert statistics.quantiles(spread, n=20)[-3] <= 0.016
    assert statistics.quantiles(spread, n=4) == pytest.approx(quartiles, abs=slack_s)


@pytest.mark.alone
def test_a_message_over_a_relay_takes_size_over_rate_plus_delay() -> None:
    size = 256 * 1024
    expected_s = size * 8 / 20e6 + 0.02
    found = call(bodies.message_s, pair(delay_s=0.02, jitter_s=1e-6), size, 1.05 * expected_s)
    assert found["backend"] == "tbf+relay"
    assert found["message_s"] == pytest.approx(expected_s, rel=0.05)


@pytest.mark.alone
@pytest.mark.parametrize("size", [64 << 10, 1 << 20])
def test_the_first_long_message_of_a_connection_waits_for_no_window_and_no_pacing(size: int) -> None:
    expected_s = size * 8 / 100e6 + 0.02
    spec = pair(bit_per_s=100e6, delay_s=0.02, jitter_s=1e-6)
    took_s = call(bodies.first_message_s, spec, size, 1.1 * expected_s)
    assert took_s == pytest.approx(expected_s, rel=0.1)


def test_no_connection_begins_with_what_this_host_prefers() -> None:
    assert set(call(bodies.begins_with, pair())) == {"reno"}


def test_a_relay_carries_whole_pieces_where_nothing_is_lost_and_single_frames_where_something_is() -> None:
    spec = {"bit_per_s": 200e6, "delay_s": 0.005, "jitter_s": 1e-6}
    assert call(bodies.largest_frame_bytes, pair(**spec), 256 << 10) == 14 + 20 + 32 + 4 * 1448
    assert call(bodies.largest_frame_bytes, pair(loss_frac=0.001, **spec), 256 << 10) == 1514


def test_loss_meets_delay_in_a_relay_and_both_can_be_changed_while_it_runs() -> None:
    spec = pair(delay_s=0.002, loss_frac=0.2)
    steps = call(
        bodies.lost,
        spec,
        ["netem"],
        500,
        [
            {"kind": "set_loss", "link": "a--b", "loss_frac": 0.0},
            {"kind": "set_loss", "link": "a--b", "loss_frac": 0.5, "direction": "backward"},
            {"kind": "set_loss", "link": "a--b", "loss_frac": 0.5, "direction": "forward"},
        ],
    )
    assert {backend for _, backend in steps} == {"tbf+relay"}
    counts = [count for count, _ in steps]
    assert 60 < counts[0] < 140
    assert counts[1] == counts[2] == 0
    assert 200 < counts[3] < 300


def test_loss_alone_is_nfts_and_changes_while_it_runs() -> None:
    steps = call(
        bodies.lost,
        pair(),
        ["netem", "tun"],
        500,
        [
            {"kind": "set_loss", "link": "a--b", "loss_frac": 0.3},
            {"kind": "set_loss", "link": "a--b", "loss_frac": 0.0, "direction": "forward"},
        ],
    )
    assert [backend for _, backend in steps] == ["tbf", "tbf+nft", "tbf+nft"]
    counts = [count for count, _ in steps]
    assert counts[0] == counts[2] == 0
    assert 100 < counts[1] < 200


def test_without_nft_a_relay_loses_packets() -> None:
    ((count, backend),) = call(bodies.lost, pair(loss_frac=0.3), ["netem", "nft"], 500, [])
    assert backend == "tbf+relay"
    assert 100 < count < 200


@pytest.mark.alone
def test_delay_changes_while_it_runs_in_the_relay_or_at_the_receiver() -> None:
    change = {"kind": "set_delay", "link": "a--b", "delay_s": 0.015, "direction": "forward"}
    steps = ((None, (0.004, 0.004)), (change, (0.015, 0.004)))
    relayed = [(given, [way_s + SLACK_S for way_s in ways_s]) for given, ways_s in steps]
    found = call(bodies.changed_delay, pair(delay_s=0.004, jitter_s=1e-6), relayed)
    for ways, (_, ways_s) in zip(found, steps, strict=True):
        assert ways == pytest.approx((*ways_s, False), abs=SLACK_S)
    held = [(given, (SLACK_S, SLACK_S)) for given, _ in steps]
    for ways in call(bodies.changed_delay, pair(delay_s=0.004), held):
        assert ways == pytest.approx((0.0, 0.0, True), abs=SLACK_S)


def test_a_receiver_holds_messages_for_the_delay_as_it_is_now() -> None:
    drawn = cluster("a b c", "", link("a", "b", delay_s=0.004, reverse_delay_s=0.001), link("b", "c"))
    paths = PathTimes(drawn, 1, frozenset({0, 1}))
    assert (paths.held_s(0), paths.held_s(2)) == (0.004, 0.0)
    paths.change(SetDelay(at_s=1, link="a--b", delay_s=0.02, direction="forward"), 0.0)
    paths.change(SetDelay(at_s=1, link="b--c", delay_s=0.03), 0.0)
    assert (paths.held_s(0), paths.held_s(2)) == (0.02, 0.03)


def test_what_only_a_relay_could_do_is_refused_on_a_link_that_has_none() -> None:
    change = {"kind": "set_loss", "link": "a--b", "loss_frac": 0.1}
    with pytest.raises(HostError, match=r"link a--b cannot get this .* delay and loss together"):
        call(bodies.refused, pair(delay_s=0.01), change)


def test_leaving_a_relayed_network_leaves_no_file_open() -> None:
    assert call(bodies.beside, pair(delay_s=0.01, jitter_s=0.001)) == 0
