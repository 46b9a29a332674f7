"""What the kernel, a relay, nft and the receiver are each asked to do for a link, without a network."""

import pytest

from emulator.network import impairments
from emulator.network.impairments import Impairments
from emulator.network.layout import network_layout
from emulator.network.relays import Impairment
from emulator.network.shaping import Shape
from engine.domain.errors import HostError
from engine.domain.scenario import SetDelay, SetLoss, SetRate
from tests.support.small_clusters import cluster, link

PIDS = {"d0": 10, "d1": 11, "d2": 12}


def wanted(*able: str, dilation: float = 1.0, **first: float) -> Impairments:
    """Links a--b (with `first`'s figures) and b--c, on a machine that has `able`."""
    drawn = cluster("a b c", "", link("a", "b", 8e6, **first), link("b", "c", 2e6))
    made = Impairments(drawn, network_layout(drawn), dilation, able.__contains__, ())
    made.pids = PIDS
    return made


def end(made: Impairments, index: int, forward: bool):
    return made.layout.sender(index, forward)


def test_a_rate_is_divided_and_a_delay_multiplied_by_the_dilation() -> None:
    made = wanted("netem", dilation=4.0, delay_s=0.01, reverse_delay_s=0.02, loss_frac=0.1, jitter_s=0.001)
    assert made.shape(end(made, 0, True)) == Shape(2e6, True, 0.04, 0.004, 0.1)
    assert made.shape(end(made, 0, False)) == Shape(2e6, True, 0.08, 0.004, 0.1)
    assert made.shape(end(made, 0, True), plain=True) == Shape(2e6, True)
    assert made.shape(end(made, 1, True)) == Shape(0.5e6, True)


def test_without_netem_the_kernel_only_shapes_the_rate() -> None:
    made = wanted("nft", delay_s=0.01)
    assert made.shape(end(made, 0, True)) == Shape(8e6)
    assert made.is_held(0) and made.is_held(1)


def test_with_netem_no_receiver_waits_even_for_a_delay_to_come() -> None:
    assert not wanted("netem").is_held(0)


def test_a_relayed_link_is_not_the_receivers_and_gets_wall_time_figures(monkeypatch) -> None:
    made = wanted("tun", dilation=2.0, delay_s=0.01, jitter_s=0.002)
    assert not made.is_held(0) and made.is_held(1)
    sent = {}

    class FakeRelays:
        def set(self, figures):
            sent.update(figures)

    made._relays = FakeRelays()  # type: ignore[assignment]
    monkeypatch.setattr(impairments, "drop_at_random", lambda losses: None)
    made.apply([(0, True), (0, False), (1, True)])
    assert sent == {(0, True): Impairment(0.02, 0.004, 0.0), (0, False): Impairment(0.02, 0.004, 0.0)}
    made.apply([(0, True)], off=True)
    assert sent[0, True] == Impairment()


def test_nft_drops_at_the_receiving_end_all_that_its_node_loses(monkeypatch) -> None:
    made, asked = wanted("nft", loss_frac=0.1, reverse_loss_frac=0.0), []
    monkeypatch.setattr(impairments, "drop_at_random", asked.append)
    made.apply([(0, True), (0, False), (1, True), (1, False)])
    (losses,) = asked
    assert {(port.pid, port.interface): loss for port, loss in losses.items()} == {
        (11, "d1-eth0"): 0.1,
        (11, "d1-eth1"): 0.0,
    }
    made.set(SetLoss(at_s=0, link="a--b", loss_frac=0.0))
    made.apply([(0, True)])  # the rule that is there must go
    assert set(asked[1].values()) == {0.0}
    assert {port.pid for port in asked[1]} == {11}


def test_a_port_names_its_direction_by_the_devices() -> None:
    made = wanted()
    assert made.port(end(made, 0, True)) == (10, "d0-eth0", "a→b")
    assert made.port(end(made, 0, False)) == (11, "d1-eth0", "b→a")


def test_a_live_delay_turns_netem_on_where_the_kernel_has_it() -> None:
    made = wanted("netem")
    assert not made.shape(end(made, 0, True)).netem
    made.set(SetDelay(at_s=0, link="a--b", delay_s=0.5, direction="forward"))
    assert made.shape(end(made, 0, True)) == Shape(8e6, True, 0.5)
    assert made.shape(end(made, 0, False)) == Shape(8e6, True)


def test_a_refused_change_leaves_what_was_wanted_before() -> None:
    made = wanted()
    with pytest.raises(HostError, match="cannot lose packets while the run goes on"):
        made.set(SetLoss(at_s=0, link="a--b", loss_frac=0.5))
    assert made.links[0].loss(True) == 0.0
    made.set(SetRate(at_s=0, link="b--a", bit_per_s=1e6))
    assert made.shape(end(made, 0, True)) == Shape(1e6)
