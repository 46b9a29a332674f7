"""Live changes reach the kernel, drop no frame, and are acknowledged with the rates read back."""

import pytest

from emulator.session.calls import call
from engine.domain.cluster import ClusterSpec
from tests.support import network_change_bodies as bodies
from tests.support.small_clusters import chain, star

pytestmark = pytest.mark.root


def plain(cluster: ClusterSpec) -> dict[str, object]:
    return cluster.model_dump(mode="json")


@pytest.mark.alone
@pytest.mark.parametrize("rate", [10e6, 100e6])
def test_a_running_stream_follows_a_new_rate_and_no_frame_is_dropped(rate: float) -> None:
    expected = min(rate, 50e6)  # from n0 to n1 the second hop still has its 50 Mbit/s
    found = call(bodies.rate_change, plain(star(2)), "n0--hub", "both", rate, expected)
    assert found["bit_per_s"] == pytest.approx(expected, rel=bodies.NEAR)
    assert found["drops"] == 0
    for entry in found["facts"]["in_force"]:
        assert entry["bit_per_s"] == pytest.approx(rate, rel=1e-3)


def test_one_direction_changes_alone() -> None:
    found = call(bodies.rate_change, plain(star(2)), "n0--hub", "forward", 20e6, 20e6)
    assert [entry["forward"] for entry in found["facts"]["in_force"]] == [True]
    assert found["kernel"]["true"] * 1448 / 1514 == pytest.approx(20e6, rel=1e-3)
    assert found["kernel"]["false"] * 1448 / 1514 == pytest.approx(50e6, rel=1e-3)


@pytest.mark.alone
def test_the_measured_rate_follows_while_the_link_is_in_use() -> None:
    found = call(bodies.live_measurement, plain(star(2)), 0, 20e6)
    assert found["before"] is None  # the old measurement holds no longer
    assert found["forward"] == pytest.approx(20e6, rel=bodies.NEAR)
    assert found["backward"] == pytest.approx(20e6, rel=bodies.NEAR)


def test_what_an_open_connection_sends_after_a_change_of_routes_is_not_cut_into_tiny_segments() -> None:
    # 2000 bytes are one segment of 1448 and a second; in segments of 36 they take three times as long
    assert call(bodies.segments_around, plain(star(2)), 1e-6) == [2, 2, 2]


def test_a_cut_link_is_silent_and_a_restored_one_carries_the_old_connection() -> None:
    found = call(bodies.cut_and_restored, plain(star(2)), "n1--hub")
    assert found["down"] == {"links": ["n1--hub"], "up": False}
    assert found["again"] == found["down"]
    assert found["during"] == 0
    assert found["shown"] == [False, False]
    assert found["up"] == {"links": ["n1--hub"], "up": True}
    assert found["shape"] == ["tbf", "tbf"]


def test_a_dropped_device_takes_all_its_links_down_and_no_others() -> None:
    # links: a-b, b-s, s-t, t-c
    assert call(bodies.dropped_device, plain(chain()), "b") == [False, False, True, True]


@pytest.mark.alone
def test_a_device_that_joins_gets_its_links_back_as_they_are_by_then_and_no_others() -> None:
    # links: a-b, b-s, s-t, t-c
    found = call(bodies.dropped_and_joined, plain(chain()), "b", "a--b", "b--s", 10e6)
    assert found["up"] == [
        [False, True, True, True],
        [False, False, True, True],
        [False, False, True, True],
        [False, True, True, True],  # a--b was taken down by somebody else
    ]
    assert found["facts"][1] == {"links": ["a--b", "b--s"], "up": False}
    assert found["facts"][3] == {"links": ["a--b", "b--s"], "up": False}
    assert found["rates"] == pytest.approx(10e6, rel=bodies.NEAR)
