"""`copies` in a cluster file: many devices and their links in two tables."""

from __future__ import annotations

import pytest

import topologies
from engine.domain.errors import SpecError

TEXT = """
name = "rack"
source = "board-1"
[[device]]
name = "board"
preset = "raspberry-pi-4"
copies = {copies}
[[switch]]
name = "s1"
[[link]]
a = "{end}"
b = "s1"
bit_per_s = 1e8
"""


def test_copies_are_numbered_from_one_and_each_has_the_link() -> None:
    cluster = topologies.parse_toml(TEXT.format(copies=3, end="board-*"), "x.toml")
    assert [device.name for device in cluster.devices] == ["board-1", "board-2", "board-3"]
    assert [link.name for link in cluster.links] == ["board-1--s1", "board-2--s1", "board-3--s1"]
    assert len({device.model_copy(update={"name": "x"}).model_dump_json() for device in cluster.devices}) == 1
    assert topologies.parse_toml(topologies.dump_toml(cluster), "dumped") == cluster


@pytest.mark.parametrize("copies", ["0", "1.5", '"many"'])
def test_a_wrong_number_of_copies_is_refused_with_its_place(copies: str) -> None:
    with pytest.raises(SpecError, match=r"x.toml, device\[0\].copies: expected a whole number of at least 1"):
        topologies.parse_toml(TEXT.format(copies=copies, end="board-*"), "x.toml")


def test_a_link_of_each_copy_of_a_device_without_copies_is_refused() -> None:
    with pytest.raises(SpecError, match=r"x.toml, link\[0\].a: .*, got 'shelf-\*'"):
        topologies.parse_toml(TEXT.format(copies=2, end="shelf-*"), "x.toml")


@pytest.mark.parametrize("number", [8, 64])
def test_the_microcontroller_clusters_have_their_chips_and_a_host(number: int) -> None:
    cluster = topologies.load(f"mcu-{number}")
    assert len(cluster.workers) == number and cluster.source == "host"
    path = cluster.path(cluster.workers[0], cluster.workers[-1])
    assert sum(cluster.links[hop.link].j_per_byte for hop in path) == pytest.approx(100e-12 / 4)
