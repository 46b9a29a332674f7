"""Cluster files hold the drawing: positions, bends, groups and what is switched off."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topologies
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from tests.topologies.test_cluster_files import clusters, texts
from topologies import Drawn
from topologies.layout import CanvasLayout, Group, Position, enabled

TEXT = """
name = "two"
source = "a"

[[device]]
name = "a"
preset = "raspberry-pi-4"
at = [0, 20.5]

[[device]]
name = "b"
preset = "raspberry-pi-3"
enabled = false

[[link]]
a = "a"
b = "b"
bit_per_s = 1e8
bends = [[10, 20]]

[[group]]
name = "Rack"
members = ["a", "b"]
"""

coordinates = st.floats(min_value=-1e6, max_value=1e6)
places = st.builds(Position, x=coordinates, y=coordinates)


@st.composite
def drawings(draw: st.DrawFn) -> Drawn:
    spec: ClusterSpec = draw(clusters())
    nodes = [part.name for part in (*spec.devices, *spec.switches)]
    links = [link.name for link in spec.links]
    some = st.lists(st.sampled_from(nodes), unique=True).map(tuple)
    groups = st.builds(Group, name=texts.filter(bool), members=some, collapsed=st.booleans())
    bends = st.lists(places, min_size=1, max_size=3)
    return Drawn(
        spec,
        CanvasLayout(
            positions=draw(st.dictionaries(st.sampled_from(nodes), places)),
            disabled=tuple(name for name in (*nodes, *links) if draw(st.booleans())),
            bends={name: tuple(draw(bends)) for name in links if draw(st.booleans())},
            groups=draw(st.lists(groups, max_size=2).map(tuple)),
        ),
    )


@settings(max_examples=25)
@given(drawings())
def test_a_drawing_survives_a_cluster_file_of_every_format_and_the_store(drawn: Drawn) -> None:
    for form in topologies.FORMATS:
        assert topologies.parse_drawing(topologies.dump_drawing(drawn, form), "dumped", form) == drawn
    document = json.loads(json.dumps(drawn.layout.model_dump(mode="json")))
    assert CanvasLayout.parse(document, "stored") == drawn.layout


def test_every_key_of_a_drawing_is_read() -> None:
    spec, layout = topologies.parse_drawing(TEXT, "two.toml")
    assert [device.name for device in spec.devices] == ["a", "b"]
    assert layout == CanvasLayout(
        positions={"a": Position(x=0, y=20.5)},
        disabled=("b",),
        bends={"a--b": (Position(x=10, y=20),)},
        groups=(Group(name="Rack", members=("a", "b")),),
    )


def test_what_is_switched_off_takes_no_part_on_the_command_line_either() -> None:
    cluster = topologies.parse_toml(TEXT, "two.toml")
    assert [device.name for device in cluster.devices] == ["a"]
    assert cluster.links == ()
    assert cluster == enabled(*topologies.parse_drawing(TEXT, "two.toml"))


def test_a_cluster_that_falls_apart_without_what_is_off_is_refused() -> None:
    text = TEXT.replace("enabled = false\n", "")
    off = text.replace("bends = [[10, 20]]", "enabled = false")
    with pytest.raises(SpecError, match=r"without a--b: b cannot reach a.*switch something on again"):
        topologies.parse_toml(off, "two.toml")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("at = [0, 20.5]", "at = [0]", r"device\[0\]\.at: expected \[x, y\]"),
        ("at = [0, 20.5]", 'at = ["left", 1]', r"device\[0\]\.at: expected \[x, y\]"),
        ("at = [0, 20.5]", "copies = 2\nat = [0, 1]", "the device a has both copies and at"),
        ("enabled = false", 'enabled = "no"', r"device\[1\]\.enabled: expected true or false"),
        ("bends = [[10, 20]]", "bends = 3", r"link\[0\]\.bends: expected a list"),
        (
            "bends = [[10, 20]]",
            "bends = [[1, 1]" + ", [1, 1]" * 20 + "]",
            r"link\[0\]\.bends: has 21 bends",
        ),
        ('["a", "b"]', '["a", "c"]', r"group\[0\]\.members: c is neither device nor switch"),
        ("bit_per_s = 1e8", "bit_per_s = 1e8\nat = [1, 2]", r"link\[0\]\.at: unknown key"),
        ('name = "two"', 'name = "two"\nx = ' + "[" * 3000 + "]" * 3000, "nested too deeply"),
    ],
)
def test_a_wrong_key_of_a_drawing_is_named(old: str, new: str, sentence: str) -> None:
    assert old in TEXT
    with pytest.raises(SpecError, match=sentence):
        topologies.parse_drawing(TEXT.replace(old, new), "two.toml")
