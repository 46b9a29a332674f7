"""Presets of links and disks: measured rates below what their names promise, each with its source."""

import pytest

import topologies
from engine.domain.cluster import LinkSpec
from engine.domain.errors import SpecError
from topologies import parts
from topologies.parts import DiskPreset, LinkPreset, disk_presets, link_preset, link_presets

LINK = {"name": "a", "title": "A", "nominal_bit_per_s": 1e9, "bit_per_s": 9e8, "delay_s": 0, "source": "s"}
DISK = {"name": "a", "title": "A", "nominal_byte_per_s": 1e8, "byte_per_s": 9e7, "source": "s"}


@pytest.mark.parametrize("link", link_presets(), ids=lambda link: link.name)
def test_a_kind_of_link_has_a_source_and_values_that_such_a_link_can_have(link):
    assert link.source
    for rate in (link.bit_per_s, link.reverse_bit_per_s or link.bit_per_s):
        assert 1e6 <= rate < link.nominal_bit_per_s
    assert 1e-5 <= link.delay_s < 0.1
    assert link.jitter_s <= link.delay_s
    assert link.loss_frac <= 0.01


@pytest.mark.parametrize("link", link_presets(), ids=lambda link: link.name)
def test_a_link_of_a_kind_is_in_a_cluster_file_as_it_is(link):
    board = topologies.preset("raspberry-pi-5")
    cluster = topologies.shapes.star(topologies.shapes.copies(board, 2), link.between("board", "hub"))
    assert topologies.parse_toml(topologies.dump_toml(cluster), "file").links == cluster.links
    assert {each.rate(True) for each in cluster.links} == {link.bit_per_s}


@pytest.mark.parametrize("disk", disk_presets(), ids=lambda disk: disk.name)
def test_a_kind_of_disk_has_a_source_and_reads_less_than_its_bus_carries(disk):
    assert disk.source
    assert 1e6 <= disk.byte_per_s < disk.nominal_byte_per_s


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (LinkPreset, LINK | {"bit_per_s": 1e9}),
        (LinkPreset, LINK | {"reverse_bit_per_s": 2e9}),
        (DiskPreset, DISK | {"byte_per_s": 1e8}),
    ],
)
def test_a_rate_that_is_the_nominal_one_is_refused(row, wrong):
    with pytest.raises(SpecError, match="is not below the"):
        row.parse(wrong, "row")


@pytest.mark.parametrize(("row", "right"), [(LinkPreset, LINK), (DiskPreset, DISK)])
def test_a_row_without_a_source_is_refused(row, right):
    assert row.parse(right, "row").name == "a"
    with pytest.raises(SpecError, match="row, source"):
        row.parse(right | {"source": ""}, "row")


def test_a_name_that_is_there_twice_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "disks.toml"
    text = '[[disk]]\nname = "a"\ntitle = "A"\nnominal_byte_per_s = 2e6\nbyte_per_s = 1e6\nsource = "s"\n'
    file.write_text(text * 2, encoding="utf-8")
    monkeypatch.setattr(parts, "DISKS", file)
    with pytest.raises(SpecError, match=r"disks.toml: the preset a is there twice"):
        disk_presets.__wrapped__()


def test_a_link_of_a_kind_has_its_values_from_the_device_on():
    assert link_preset("lte").between("phone", "tower") == LinkSpec(
        a="phone",
        b="tower",
        bit_per_s=7.6e6,
        reverse_bit_per_s=29.5e6,
        delay_s=10e-3,
        jitter_s=5e-3,
        loss_frac=0.001,
    )
    with pytest.raises(SpecError, match="no link preset telegraph: there are gigabit-ethernet"):
        link_preset("telegraph")


def test_a_preset_that_names_its_disk_reads_at_the_rate_of_that_kind():
    kinds = {disk.name: disk for disk in disk_presets()}
    named = [device for device in topologies.presets() if device.disk]
    assert {device.name for device in named} >= {"raspberry-pi-3", "raspberry-pi-4", "raspberry-pi-5"}
    for device in named:
        assert device.disk_byte_per_s == kinds[device.disk].byte_per_s, device.name
