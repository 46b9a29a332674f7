"""Presets have sources and plausible numbers; shapes have the links that their names promise."""

from __future__ import annotations

from collections import Counter

import pytest

import topologies
from engine.domain.cluster import DeviceSpec, LinkSpec
from engine.domain.errors import SpecError
from topologies import shapes

PATTERN = LinkSpec(a="x", b="y", bit_per_s=5e6, reverse_bit_per_s=1e6, delay_s=0.25, loss_frac=0.5)


def boards(number: int) -> tuple[DeviceSpec, ...]:
    return shapes.copies(topologies.preset("raspberry-pi-3"), number)


@pytest.mark.parametrize("preset", topologies.presets(), ids=lambda preset: preset.name)
def test_every_preset_says_where_its_numbers_are_from(preset: DeviceSpec) -> None:
    assert preset.title
    assert len(preset.source) > 40


def test_the_presets_people_ask_for_exist() -> None:
    expected = {
        "jetson-orin-nano",
        "jetson-nano",
        "jetson-xavier-nx",
        "raspberry-pi-4",
        "raspberry-pi-5",
        "laptop-core",
        "smartphone",
        "mcu",
        "voltage-vm",
        "terminal",
    }
    assert expected <= {preset.name for preset in topologies.presets()}


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(SpecError, match=r"no device preset cray: there are .*mcu"):
        topologies.preset("cray")


def test_voltage_machines_reproduce_the_fitted_time_of_one_layer() -> None:
    """BERT-Large, 200 positions, 24 layers on one machine take 0.729 s: the fit in the source."""
    machine = topologies.preset("voltage-vm")
    assert machine.compute_model == "flops"
    layer_macs = 2_598_502_400
    assert 24 * 2 * layer_macs / machine.flop_per_s == pytest.approx(0.729, rel=0.01)


def test_lab_devices_are_slow_enough_for_a_laptop_to_stand_in_for_all_of_them() -> None:
    """Two 2.5 GHz cores emulate them without dilation: a third of the GEMM rate, one core's bandwidth."""
    core = topologies.preset("laptop-core")
    for name in ("lab-3", "lab-4"):
        workers = topologies.load(name).devices
        assert sum(device.flop_per_s for device in workers) < 2 * core.flop_per_s / 3
        assert sum(device.memory_byte_per_s for device in workers) < core.memory_byte_per_s


def test_a_star_has_one_link_per_device_to_its_switch() -> None:
    cluster = shapes.star(boards(4), PATTERN)
    assert [switch.name for switch in cluster.switches] == ["hub"]
    assert [(link.a, link.b) for link in cluster.links] == [(d.name, "hub") for d in cluster.devices]


def test_a_ring_gives_every_device_two_neighbours() -> None:
    degrees = Counter(end for link in shapes.ring(boards(5), PATTERN).links for end in (link.a, link.b))
    assert set(degrees.values()) == {2} and len(degrees) == 5


def test_a_mesh_links_every_pair() -> None:
    cluster = shapes.mesh(boards(5), PATTERN)
    assert len({frozenset((link.a, link.b)) for link in cluster.links}) == 10
    assert all(len(cluster.path(a, b)) == 1 for a in range(5) for b in range(5) if a != b)


def test_a_tree_has_one_link_less_than_devices_and_binary_branches() -> None:
    cluster = shapes.tree(boards(7), PATTERN)
    parents = Counter(link.b for link in cluster.links)
    assert len(cluster.links) == 6
    assert parents == {"device-1": 2, "device-2": 2, "device-3": 2}


@pytest.mark.parametrize("name", shapes.SHAPES)
@pytest.mark.parametrize("number", [1, 2, 3, 9])
def test_every_shape_of_every_size_is_a_cluster_with_the_patterns_links(name: str, number: int) -> None:
    cluster = shapes.shape(name)(boards(number), PATTERN)
    assert len(cluster.devices) == number
    for link in cluster.links:
        assert link.model_copy(update={"a": "x", "b": "y"}) == PATTERN
    assert topologies.parse_toml(topologies.dump_toml(cluster), name) == cluster


def test_an_unknown_shape_and_an_empty_one_are_refused() -> None:
    with pytest.raises(SpecError, match="no shape blob: there are star, ring, mesh, tree"):
        shapes.shape("blob")
    with pytest.raises(SpecError, match="needs at least one device"):
        shapes.star((), PATTERN)
