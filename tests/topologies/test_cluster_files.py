"""Cluster files: every field survives a round trip, and every mistake is named with file and field."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topologies
from engine.domain.cluster import ClusterSpec, DeviceSpec, FamilyRate, FormatRate, LinkSpec, SwitchSpec
from engine.domain.efficiency import Efficiency
from engine.domain.errors import SpecError
from engine.domain.values import LEAST

ONE_DEVICE = 'name = "one"\nsource = "a"\n[[device]]\nname = "a"\npreset = "raspberry-pi-4"\n'
TWO_DEVICES = ONE_DEVICE + '[[device]]\nname = "b"\npreset = "raspberry-pi-3"\n'

names = st.from_regex(r"[a-z][a-z0-9_-]{0,30}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
"""What databases store: no half of a surrogate pair, and no NUL."""
GRID = tuple(
    Efficiency(rows=rows, width=width, frac=0.5, basis="predicted") for rows in (1, 16) for width in (8, 64)
)
FORMATS = tuple(
    FormatRate(bits=bits, flop_per_s=2e9, memory_frac=0.5, half_rows=1.5, basis="data sheet", source="a")
    for bits in (16, 8, 4)
)
positive = st.floats(min_value=1e-9, max_value=1e18)
non_negative = st.just(0.0) | st.floats(min_value=LEAST, max_value=1e9)
fractions = st.floats(min_value=0, max_value=1)


def devices(name: str, role: st.SearchStrategy[str]) -> st.SearchStrategy[DeviceSpec]:
    return st.builds(
        DeviceSpec,
        name=st.just(name),
        title=texts,
        role=role,
        flop_per_s=positive,
        memory_bytes=positive,
        reserved_bytes=st.just(0.0) | st.floats(min_value=LEAST, max_value=1e-10),
        memory_byte_per_s=positive,
        disk_byte_per_s=positive,
        staging_byte_per_s=st.none() | positive,
        on_chip_weight_bytes=st.none() | positive,
        tile_memory_bytes=st.none() | positive,
        j_per_memory_byte=non_negative,
        j_per_disk_byte=non_negative,
        message_overhead_s=non_negative,
        receive_overhead_s=non_negative,
        byte_overhead_s=non_negative,
        dispatch_s=non_negative,
        token_s=non_negative,
        handover_s=non_negative,
        basis=st.sampled_from([None, "published measurement", "calibrated"]),
        op_overhead_s=non_negative,
        half_rows=non_negative,
        format_rates=st.just(()) | st.just(FORMATS),
        family_rates=st.lists(
            st.builds(FamilyRate, family=st.sampled_from(["bert", "gpt2"]), flop_per_s=positive), max_size=2
        ).map(tuple),
        efficiencies=st.just(()) | st.just(GRID),
        compute_model=st.sampled_from(["roofline", "serial", "measured", "flops"]),
        measured_scale=positive,
        watts=non_negative,
        price_usd=st.none() | non_negative,
        price_source=texts,
        source=texts,
        disk=st.just("") | names,
        node=st.just("") | names,
    )


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSpec:
    nodes = draw(st.lists(names, min_size=2, max_size=6, unique=True))
    number = draw(st.integers(1, len(nodes) - 1))
    workers, switches = nodes[:number], nodes[number:]
    roles = [st.just("worker"), *[st.sampled_from(["worker", "terminal"])] * (number - 1)]
    links = st.builds(
        LinkSpec,
        a=st.just("a"),
        b=st.just("b"),
        bit_per_s=positive,
        reverse_bit_per_s=st.none() | positive,
        delay_s=non_negative,
        jitter_s=non_negative,
        loss_frac=fractions,
        j_per_byte=non_negative,
        reverse_delay_s=st.none() | non_negative,
        reverse_loss_frac=st.none() | fractions,
        parallel=st.integers(1, 99),
    )
    hub = switches[0]
    return ClusterSpec(
        name=draw(names),
        title=draw(texts),
        description=draw(texts),
        source=draw(st.sampled_from(workers)),
        devices=tuple(draw(devices(name, role)) for name, role in zip(workers, roles, strict=True)),
        switches=tuple(SwitchSpec(name=name) for name in switches),
        links=tuple(draw(links).model_copy(update={"a": node, "b": hub}) for node in nodes if node != hub),
    )


@settings(max_examples=25)
@given(clusters())
def test_every_field_survives_a_round_trip(cluster: ClusterSpec) -> None:
    assert topologies.parse_toml(topologies.dump_toml(cluster), "dumped") == cluster


def test_the_round_trip_draws_every_field_that_exists() -> None:
    """A field that somebody adds to a device or link must be added to the test above."""
    drawn_of_a_device = {
        "name",
        "title",
        "node",
        "role",
        "flop_per_s",
        "memory_bytes",
        "reserved_bytes",
        "memory_byte_per_s",
        "disk_byte_per_s",
        "disk",
        "staging_byte_per_s",
        "message_overhead_s",
        "receive_overhead_s",
        "byte_overhead_s",
        "dispatch_s",
        "token_s",
        "handover_s",
        "basis",
        "assumed_efficiency",
        "op_overhead_s",
        "half_rows",
        "format_rates",
        "family_rates",
        "efficiencies",
        "compute_model",
        "measured_scale",
        "watts",
        "price_usd",
        "price_source",
        "source",
        "on_chip_weight_bytes",
        "tile_memory_bytes",
        "j_per_memory_byte",
        "j_per_disk_byte",
    }
    drawn_of_a_link = {
        "a",
        "b",
        "bit_per_s",
        "reverse_bit_per_s",
        "delay_s",
        "jitter_s",
        "loss_frac",
        "j_per_byte",
        "reverse_delay_s",
        "reverse_loss_frac",
        "parallel",
    }
    assert set(DeviceSpec.model_fields) == drawn_of_a_device
    assert set(LinkSpec.model_fields) == drawn_of_a_link
    assert set(ClusterSpec.model_fields) == {
        "name",
        "title",
        "description",
        "source",
        "devices",
        "switches",
        "links",
    }


@pytest.mark.parametrize("name", topologies.names())
def test_ready_clusters_load_and_survive_a_round_trip(name: str) -> None:
    cluster = topologies.load(name)
    assert cluster.name == name
    assert cluster.title and cluster.description
    assert topologies.parse_toml(topologies.dump_toml(cluster), name) == cluster


@pytest.mark.parametrize("name", topologies.paper_names())
def test_published_testbeds_load_by_name_and_say_what_is_published(name: str) -> None:
    cluster = topologies.load(name)
    assert name == f"papers/{cluster.name}"
    assert cluster.title and cluster.description
    assert all(len(device.source) > 40 for device in cluster.devices)
    assert topologies.parse_toml(topologies.dump_toml(cluster), name) == cluster


def test_the_list_of_clusters_has_no_published_testbed() -> None:
    assert len(topologies.paper_names()) == 15
    assert not any("/" in name for name in topologies.names())


def test_lime_s_settings_have_the_published_memory() -> None:
    """Section V-C: 160 GB, then 8 GB less, then 8 GB less again."""
    totals = [
        sum(device.memory_bytes for device in topologies.load(f"papers/lime-setting-{number}").devices) / 1e9
        for number in (1, 2, 3)
    ]
    assert totals == [160, 152, 144]


def test_lab_3_is_three_unequal_devices_on_one_switch_at_100_mbit() -> None:
    cluster = topologies.load("lab-3")
    assert len({device.flop_per_s for device in cluster.devices}) == len(cluster.devices) == 3
    assert len(cluster.switches) == 1
    assert [link.bit_per_s for link in cluster.links] == [100e6] * 3


def test_lab_4_is_four_unequal_devices_on_two_switches_with_unequal_links() -> None:
    cluster = topologies.load("lab-4")
    assert len({device.flop_per_s for device in cluster.devices}) == len(cluster.devices) == 4
    assert len(cluster.switches) == 2
    assert len({(link.rate(True), link.rate(False)) for link in cluster.links}) > 2


def test_voltage_6_is_six_equal_devices_and_a_terminal_at_500_mbit() -> None:
    cluster = topologies.load("voltage-6")
    workers = [cluster.devices[rank] for rank in cluster.workers]
    assert len(workers) == 6 and len(cluster.devices) == 7
    assert len({worker.model_copy(update={"name": "x"}) for worker in workers}) == 1
    assert cluster.devices[cluster.source_rank].role == "terminal"
    assert {link.bit_per_s for link in cluster.links} == {500e6}


def test_a_preset_override_keeps_the_rest() -> None:
    cluster = topologies.parse_toml(ONE_DEVICE + "memory_bytes = 123\n", "x.toml")
    expected = topologies.preset("raspberry-pi-4").model_copy(update={"name": "a", "memory_bytes": 123.0})
    assert cluster.devices == (expected,)


def test_a_device_needs_no_preset() -> None:
    text = (
        'name = "one"\nsource = "a"\n'
        '[[device]]\nname = "a"\nflop_per_s = 1e9\nmemory_bytes = 1e9\nmemory_byte_per_s = 1e9\n'
    )
    assert topologies.parse_toml(text, "x.toml").devices[0].flop_per_s == 1e9


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (ONE_DEVICE + "flop_per_s = -1\n", ["x.toml, device[0].flop_per_s", "-1"]),
        (ONE_DEVICE + "speed = 3\n", ["x.toml, device[0].speed", "unknown key"]),
        (ONE_DEVICE + 'memory_bytes = "4 GB"\n', ["x.toml, device[0].memory_bytes", "4 GB"]),
        (ONE_DEVICE + "flop_per_s = inf\n", ["x.toml, device[0].flop_per_s", "finite"]),
        (ONE_DEVICE + "flop_per_s = nan\n", ["x.toml, device[0].flop_per_s"]),
        ("colour = 1\n" + ONE_DEVICE, ["x.toml, colour", "unknown key"]),
        ("devices = []\n" + ONE_DEVICE, ["x.toml, devices", "unknown key", "[[device]]"]),
        ("link = 3\n" + ONE_DEVICE, ["x.toml, link", "[[link]]"]),
        ("device = 3\n", ["x.toml, device", "[[device]]"]),
        (ONE_DEVICE.replace("raspberry-pi-4", "cray"), ["x.toml, device[0].preset", "cray", "jetson-nano"]),
        ('[[device]]\npreset = "mcu"\n', ["x.toml, device[0].name", "missing"]),
        ('name = "x"\nsource = "a"\n', ["x.toml, device"]),
        (ONE_DEVICE.replace('"one"', '"Not A Name"'), ["x.toml, name", "Not A Name"]),
        (ONE_DEVICE.replace('source = "a"', 'source = "z"'), ["x.toml", "source is z"]),
        (TWO_DEVICES, ["x.toml", "b cannot reach a", "add a link"]),
        (TWO_DEVICES + '[[link]]\na = "a"\nb = "c"\nbit_per_s = 1\n', ["link[0] ends at c"]),
        (TWO_DEVICES + '[[link]]\na = "a"\nb = "a"\nbit_per_s = 1\n', ["link[0] connects a to itself"]),
        (TWO_DEVICES + '[[link]]\na = "a"\nb = "b"\nbit_per_s = 0\n', ["x.toml, link[0].bit_per_s", "0"]),
        (TWO_DEVICES + '[[link]]\na = "a"\nb = "b"\nbit_per_s = 1\nloss_frac = 2\n', ["link[0].loss_frac"]),
        (ONE_DEVICE.replace("[[device]]", '[[device]]\nrole = "terminal"'), ["every device is a terminal"]),
        (ONE_DEVICE + '[[device]]\nname = "a"\npreset = "mcu"\n', ["the name a is used twice"]),
        ("name = ", ["x.toml", "no valid TOML"]),
    ],
)
def test_a_mistake_is_named_with_file_and_field(text: str, parts: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        topologies.parse_toml(text, "x.toml")
    sentence = str(caught.value)
    assert all(part in sentence for part in parts), sentence
    assert "\n" not in sentence
    assert caught.value.fields


def test_a_second_link_between_two_nodes_is_refused() -> None:
    link = '[[link]]\na = "{}"\nb = "{}"\nbit_per_s = 1\n'
    with pytest.raises(SpecError, match=r"link\[1\] is a second link"):
        topologies.parse_toml(TWO_DEVICES + link.format("a", "b") + link.format("b", "a"), "x.toml")


def test_an_unknown_cluster_names_the_known_ones() -> None:
    with pytest.raises(SpecError, match=r"no-such\.toml: no such cluster.*lab-3"):
        topologies.load("no-such.toml")


def test_a_path_is_loaded_whatever_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(ONE_DEVICE, encoding="utf-8")
    assert topologies.load(tmp_path / "mine.toml").name == "one"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.toml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(SpecError, match=r"broken\.toml: cannot read"):
        topologies.load(path)


def test_switches_count_against_the_limit() -> None:
    switches = "".join(f'[[switch]]\nname = "s{i}"\n' for i in range(1200))
    with pytest.raises(SpecError, match=r"x: describes 1,201 devices and switches, and the limit is 1,200"):
        topologies.parse_toml(ONE_DEVICE + switches, "x")


@pytest.mark.parametrize("character", ["a", "\U0001f600"])
def test_a_file_may_have_a_million_characters_and_no_more(tmp_path: Path, character: str) -> None:
    path = tmp_path / "long.toml"
    most = 1_000_000 - len(ONE_DEVICE) - 1
    path.write_text(f"{ONE_DEVICE}#{character * most}", encoding="utf-8")
    assert topologies.load(path).name == "one"
    path.write_text(f"{ONE_DEVICE}#{character * (most + 1)}", encoding="utf-8")
    with pytest.raises(SpecError, match="has more than 1,000,000 characters"):
        topologies.load(path)


def test_a_file_that_never_ends_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with pytest.raises(SpecError, match="cannot read the cluster: it is not a regular file"):
        topologies.load(tmp_path / "zero.toml")
