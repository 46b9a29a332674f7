"""Names, addresses and routes follow from the cluster alone."""

import pytest

from emulator.network.layout import network_layout
from tests.support.small_clusters import chain, link, loop_of_switches, mesh, star
from tests.support.small_clusters import cluster as small


def routes(batch: tuple[str, ...]) -> dict[str, str]:
    """Goal address → interface."""
    words = [line.split() for line in batch if line.startswith("route")]
    return {word[2].removesuffix("/32"): word[4] for word in words}


def test_names_addresses_and_hardware_addresses_differ() -> None:
    layout = network_layout(star(257))  # more than the last number of an address can tell apart
    interfaces = [end for pair in layout.ends for end in pair]
    assert len({node.address for node in layout.nodes}) == 258
    assert len({end.mac for end in interfaces}) == 514
    assert len({end.name for end in interfaces}) == 514
    assert all(len(end.name) <= 15 for end in interfaces)  # the kernel's limit


def test_routes_follow_the_paths_of_the_cluster() -> None:
    for cluster in (chain(), mesh(4), loop_of_switches()):
        layout = network_layout(cluster)
        address = {node.spec_name: node.address for node in layout.nodes}
        for node in layout.nodes:
            known = {
                goal: interface
                for end in node.interfaces
                for goal, interface in routes(layout.batches[end.name]).items()
            }
            for device in cluster.devices:
                if device.name == node.spec_name:
                    continue
                _, hop = cluster.next_hop(node.spec_name, device.name)
                assert known[address[device.name]] == layout.sender(hop.link, hop.forward).name


def test_a_route_leads_to_the_hardware_address_at_the_other_end() -> None:
    layout = network_layout(chain())
    for pair in layout.ends:
        for here, there in (pair, pair[::-1]):
            neighbours = [line for line in layout.batches[here.name] if line.startswith("neigh")]
            assert neighbours
            assert all(f"lladdr {there.mac} dev {here.name}" in line for line in neighbours)


def test_of_parallel_links_only_the_fastest_has_routes() -> None:
    slow = link("a", "hub", 1e6)
    layout = network_layout(small("a b", "hub", slow, link("a", "hub", 9e6, parallel=2), link("b", "hub")))
    assert routes(layout.batches["d0-eth0"]) == {}
    assert len(routes(layout.batches["d0-eth1"])) == 2  # b, and the switch
    hub = layout.node("s0")
    assert [len(routes(layout.batches[end.name])) for end in hub.interfaces] == [0, 1, 1]


def test_neighbours_of_a_switch_reach_the_switch() -> None:
    layout = network_layout(star(2))
    hub = next(node for node in layout.nodes if node.spec_name == "hub")
    assert routes(layout.batches["d0-eth0"])[hub.address] == "d0-eth0"
    assert not any(hub.address in routes(layout.batches[end.name]) for end in hub.interfaces)


@pytest.mark.parametrize(("dilation", "timer"), [(1.0, "200ms"), (4.0, "800ms"), (0.25, "50ms")])
def test_every_route_dilates_the_retransmission_timer(dilation: float, timer: str) -> None:
    for batch in network_layout(chain(), dilation).batches.values():
        lines = [line for line in batch if line.startswith("route")]
        assert lines
        assert all(f" rto_min {timer}" in line for line in lines)


def test_where_packets_are_lost_everything_is_acknowledged_at_once() -> None:
    for lossy in (False, True):
        batches = network_layout(chain(), 1.0, lossy).batches.values()
        lines = [line for batch in batches for line in batch if line.startswith("route")]
        assert all((" quickack 1" in line) == lossy for line in lines)
