"""The network that stands is the one that was drawn."""

import pytest

from emulator.session.calls import call
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import HostError
from engine.worlds.common.paths import PathTimes
from tests.support import network_bodies as bodies
from tests.support.small_clusters import chain, link, loop_of_switches, mesh, ring, star
from tests.support.small_clusters import cluster as make

pytestmark = pytest.mark.root


def plain(cluster: ClusterSpec) -> dict[str, object]:
    return cluster.model_dump(mode="json")


@pytest.mark.parametrize("dilation", [1.0, 4.0])
def test_every_direction_has_a_token_bucket_with_the_rate_of_the_spec(dilation: float) -> None:
    cluster = chain()
    found = call(bodies.shapes, plain(cluster), dilation)
    assert len(found) == 2 * len(cluster.links)
    for index, forward, kind, frame_bit_per_s in found:
        asked = cluster.links[index].rate(forward) / dilation
        assert kind == "tbf"
        assert frame_bit_per_s * 1448 / 1514 == pytest.approx(asked, rel=1e-3)


def test_a_device_has_no_more_files_open_however_many_there_are() -> None:
    assert call(bodies.files_of_devices, plain(star(12))) == call(bodies.files_of_devices, plain(star(2)))


@pytest.mark.alone
def test_a_network_that_is_dilated_later_is_as_one_that_was_built_so() -> None:
    cluster = star(2, 80e6)
    shapes, timer_s, measured = call(bodies.dilated, plain(cluster), 4.0)
    assert shapes == call(bodies.shapes, plain(cluster), 4.0)
    assert timer_s == pytest.approx(0.8, abs=0.1)
    for _, _, asked, achieved, _ in measured:
        assert asked == 80e6 and achieved == pytest.approx(80e6, rel=bodies.NEAR)


@pytest.mark.parametrize(
    "cluster", [star(4), ring(5), mesh(4), loop_of_switches(), chain()], ids=lambda c: f"{len(c.links)}-links"
)
def test_all_pairs_reach_each_other_over_exactly_the_path_of_the_spec(cluster: ClusterSpec) -> None:
    crossed = call(bodies.crossed_links, plain(cluster), 20_000)
    for pair, links in crossed.items():
        src, dst = (int(word) for word in pair.split())
        expected = {(hop.link, hop.forward) for hop in cluster.path(src, dst)}
        assert {(index, forward) for index, forward in links} == expected, pair
    devices = len(cluster.devices)
    assert len(crossed) == devices * (devices - 1)


@pytest.mark.alone
def test_measured_rates_are_within_five_percent_of_the_asked_ones_each_in_its_direction() -> None:
    there, back = {"a": 10e6, "b": 20e6, "c": 100e6}, {"a": 10e6, "b": 60e6, "c": 30e6}
    links = (link(name, "hub", there[name], reverse_bit_per_s=back[name]) for name in there)
    rows = call(bodies.measured, plain(make("a b c", "hub", *links)))
    assert [asked for _, forward, asked, _ in sorted(rows) if forward] == list(there.values())
    assert [asked for _, forward, asked, _ in sorted(rows) if not forward] == list(back.values())
    for *_, asked, achieved in rows:
        assert achieved == pytest.approx(asked, rel=bodies.NEAR)


@pytest.mark.alone
def test_a_dilated_network_reports_virtual_rates() -> None:
    for _, _, asked, achieved in call(bodies.measured, plain(star(2, 80e6)), 4.0):
        assert asked == 80e6
        assert achieved == pytest.approx(80e6, rel=bodies.NEAR)


def test_every_node_keeps_its_windows_after_a_pause() -> None:
    assert set(call(bodies.sysctls, plain(star(3)))) == {"0"}


def test_the_end_of_a_message_of_two_segments_is_not_passed_by_later_messages() -> None:
    # each segment takes 0.12 s or less of a link whose pieces are single frames, as those of a large dilation
    assert call(bodies.order_of_ends, plain(star(5, 1e5)), [2032, 2032, 1400, 2032]) == [0, 1, 2, 3]


def test_loss_is_real() -> None:
    lossy = star(2, loss_frac=0.2)
    lost = call(bodies.lost_packets, plain(lossy), 1000)
    assert 250 < lost < 470  # two hops of 20 %: 36 % expected
    assert call(bodies.lost_packets, plain(star(2)), 200) == 0


def test_delay_without_netem_is_the_receivers() -> None:
    from emulator.network.mininet_network import MininetNetwork
    from emulator.network.probe import probe

    cluster = make("a b c", "", link("a", "b", delay_s=0.002), link("b", "c", delay_s=0.003))
    found = probe()
    without = found._replace(
        items=tuple(item._replace(ok=False) if item.name == "netem" else item for item in found.items)
    )
    network = MininetNetwork(cluster, 3.0, without)
    assert network.backend == "tbf+delay-line"
    assert network.holds_delay(0)
    assert network.holds_delay(1)
    held = frozenset(link for link in (0, 1) if network.holds_delay(link))
    assert PathTimes(cluster, 2, held).held_s(0) == pytest.approx(0.005)
    assert PathTimes(cluster, 2, frozenset({1})).held_s(0) == pytest.approx(0.003)


@pytest.mark.alone
def test_it_works_beside_another_mininet_with_the_same_names() -> None:
    for ratio in call(bodies.beside_another_mininet, plain(star(2))):
        assert ratio == pytest.approx(1.0, rel=bodies.NEAR)


def test_leaving_a_network_leaves_nothing() -> None:
    found = call(bodies.left_behind, plain(star(3)))
    assert found["interfaces"] == []
    assert len(found["during"]) > len(found["after"])
    assert len(found["after"]) == 1  # the session itself


def test_a_rate_that_the_kernel_cannot_do_is_refused_with_the_link() -> None:
    with pytest.raises(HostError, match=r"link n0→hub: 1e-09 bit/s is slower than the kernel can shape"):
        call(bodies.shapes, plain(star(2, 1e-3)), 1e6)


@pytest.mark.alone
@pytest.mark.parametrize("dilation", [1.0, 4.0])
def test_the_retransmission_timer_of_a_connection_is_virtual_time(dilation: float) -> None:
    # Linux adds the smoothed round trip and counts in ticks of at most 10 ms
    timer_s, tick_s = 0.2 * dilation, 0.02
    found_s = call(bodies.timer_s, plain(star(2)), dilation, timer_s + tick_s)
    assert found_s == pytest.approx(timer_s, abs=tick_s)


def test_lossy_links_lose_single_frames_never_whole_pieces() -> None:
    assert min(call(bodies.piece_frames, plain(star(2, 500e6)), 1.0)) > 1
    assert call(bodies.piece_frames, plain(star(2, 500e6, loss_frac=0.01)), 1.0) == [1, 1, 1, 1]


def test_a_loss_set_by_hand_makes_open_connections_hand_over_single_frames() -> None:
    before, after = call(bodies.packet_bytes_around_loss, plain(star(2, 500e6)), "n0--hub")
    assert before > 2 * 1514
    assert after <= 1514
