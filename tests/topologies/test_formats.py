"""Cluster files in TOML, JSON and YAML: one document, and a sentence for every text that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

import topologies
from engine.domain.errors import SpecError
from tests.topologies.test_cluster_files import texts
from tests.topologies.test_drawn_files import TEXT as TOML
from topologies.formats import MAX_DEPTH, Format, format_of, read_text, write_text
from topologies.layout import CanvasLayout, Group, Position

JSON = """
{
  "name": "two",
  "source": "a",
  "device": [
    {"name": "a", "preset": "raspberry-pi-4", "at": [0, 20.5]},
    {"name": "b", "preset": "raspberry-pi-3", "enabled": false}
  ],
  "link": [{"a": "a", "b": "b", "bit_per_s": 1e8, "bends": [[10, 20]]}],
  "group": [{"name": "Rack", "members": ["a", "b"]}]
}
"""

YAML = """
# a comment
name: two
source: a
device:
  - name: a
    preset: raspberry-pi-4
    at: [0, 20.5]
  - {name: b, preset: raspberry-pi-3, enabled: false}
link:
  - a: a
    b: b
    bit_per_s: 1e8
    bends:
      - - 10
        - 20
group:
  - name: Rack
    members: [a, b]
"""
TEXTS: dict[Format, str] = {"toml": TOML, "json": JSON, "yaml": YAML}
LAYOUT = CanvasLayout(
    positions={"a": Position(x=0, y=20.5)},
    disabled=("b",),
    bends={"a--b": (Position(x=10, y=20),)},
    groups=(Group(name="Rack", members=("a", "b")),),
)


@pytest.mark.parametrize("form", topologies.FORMATS)
def test_every_format_says_the_same(form: Format) -> None:
    drawn = topologies.parse_drawing(TEXTS[form], "two", form)
    assert drawn.layout == LAYOUT
    assert [device.memory_bytes for device in drawn.spec.devices] == [4e9, 1e9]
    assert drawn.spec.links[0].bit_per_s == 100_000_000.0
    assert drawn == topologies.parse_drawing(TOML, "two")


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.toml", "toml"), ("a.JSON", "json"), ("a.yaml", "yaml"), ("a.b.yml", "yaml"), ("a.txt", None)],
)
def test_the_end_of_a_name_says_the_format(name: str, form: Format | None) -> None:
    assert format_of(name) == form


@pytest.mark.parametrize("end", ["toml", "json", "yaml", "yml"])
def test_a_drawing_is_written_and_read_by_the_name_of_its_file(tmp_path: Path, end: str) -> None:
    drawn = topologies.parse_drawing(TOML, "two")
    file = tmp_path / f"two.{end}"
    topologies.write_drawing(drawn, file)
    assert topologies.load_drawing(file) == drawn
    assert [device.name for device in topologies.load(file).devices] == ["a"]  # b is switched off
    first = file.read_text("utf-8").splitlines()[0]
    assert first == {"toml": 'name = "two"', "json": "{"}.get(end, "name: two")


def test_a_file_of_no_known_format_is_not_written(tmp_path: Path) -> None:
    drawn = topologies.parse_drawing(TOML, "two")
    with pytest.raises(SpecError, match=r"two\.xml: expected a name that ends with \.toml, \.json, \.yaml"):
        topologies.write_drawing(drawn, tmp_path / "two.xml")
    with pytest.raises(SpecError, match=r"two\.json: cannot write the cluster: No such file or directory"):
        topologies.write_drawing(drawn, tmp_path / "nowhere" / "two.json")


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1e8", 1e8),  # YAML 1.1: a text
        ("1E+8", 1e8),
        ("-.5", -0.5),
        ("2.", 2.0),
        ("007", 7),  # YAML 1.1: octal
        ("0o17", 15),
        ("0xff", 255),
        ("no", "no"),  # YAML 1.1: false
        ("on", "on"),
        ("True", True),
        ("1:30", "1:30"),  # YAML 1.1: 90
        ("1_000", "1_000"),  # YAML 1.1: 1000
        ("2026-11-23", "2026-11-23"),  # YAML 1.1: a date
        ("~", None),
        ("", None),
        ('"1e8"', "1e8"),
        ("'true'", "true"),
        ("|\n  1e8", "1e8\n"),
        ("1e8e", "1e8e"),
    ],
)
def test_a_plain_scalar_of_yaml_means_what_version_1_2_says(scalar: str, value: Any) -> None:
    found = read_text(f"a: {scalar}\n", "yaml", "x")["a"]
    assert (found, type(found)) == (value, type(value))


plain = st.recursive(
    st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
).filter(lambda value: _depth(value) < MAX_DEPTH)


def _depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(_depth, parts), default=0)


@given(st.dictionaries(texts, plain, max_size=4))
@example({"a": "1e8", "b": "no", "c": "007", "d": "0o7", "e": "1_0", "f": "<<", "g": "", "h": "~"})
@example({"a": "x\ny\n", "b": " x ", "c": "- x", "d": "a: b", "e": "\x85\u2028\ufeff", "f": "%TAG"})
def test_every_document_survives_yaml(document: dict[str, Any]) -> None:
    assert read_text(write_text(document, "yaml"), "yaml", "x") == document


@pytest.mark.parametrize("character", list("\r\x85\u2028\u2029\ufeff"))
def test_what_a_reader_may_take_for_an_end_of_line_or_drop_is_written_as_an_escape(character: str) -> None:
    document = {"a": f"x{character}y"}
    written = write_text(document, "yaml")
    assert character not in written
    assert read_text(written, "yaml", "x") == document


@pytest.mark.parametrize(
    ("text", "value"),
    [('a: "50\n%\n% of it"', "50 % % of it"), ("%YAML 1.2\n---\na: 'x\n%TAG y'", "x %TAG y")],
)
def test_a_line_of_a_quoted_text_may_begin_with_a_percent_sign(text: str, value: str) -> None:
    assert read_text(text, "yaml", "x") == {"a": value}


@pytest.mark.parametrize(("form", "text"), [("toml", "a = 1"), ("json", '{"a": 1}'), ("yaml", "a: 1")])
def test_a_byte_order_mark_may_precede_a_text_of_every_format(form: Format, text: str) -> None:
    assert read_text(f"\ufeff{text}", form, "x") == {"a": 1}


@given(st.dictionaries(texts, texts, max_size=4))
@example({"a": "1e8", "b": "no", "c": "007", "d": "0o7", "e": "1_0", "f": "1:30", "g": "2026-11-23"})
def test_readers_of_yaml_1_1_take_our_texts_for_texts_too(document: dict[str, str]) -> None:
    assert yaml.safe_load(write_text(document, "yaml")) == document


def test_points_stand_on_one_line_and_other_lists_do_not() -> None:
    text = topologies.dump_drawing(topologies.parse_drawing(TOML, "two"), "yaml")
    assert "  at: [0.0, 20.5]\n" in text
    assert "link:\n- a: a\n  b: b\n  bit_per_s: 100000000.0\n  bends:\n  - [10.0, 20.0]\n" in text


ALIASES = "\n".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 10)}]" for i in range(10))


@pytest.mark.parametrize(
    ("form", "text", "sentence"),
    [
        ("yaml", "a: &x [1]\nb: *x", "x: no valid YAML: the alias *x is not read: write out what it stands"),
        ("yaml", "a0: &a0 [lol]\n" + ALIASES, "the alias *a0 is not read"),
        ("yaml", "%TAG ! t:x\n---\na: 1", "the directive %TAG ! t:x is not read (at line 1)"),
        ("yaml", "a: 1\nb: !!python/object:os.system x", "python/object:os.system is not read: write a"),
        ("yaml", "a: 1\n%TAG ! t:x\n" * 2, "the directive %TAG ! t:x is not read (at line 2)"),
        ("yaml", 'a: "\n%"\n...\n%TAG ! t:x\n', "the directive %TAG ! t:x is not read (at line 4)"),
        ("yaml", f'a: "\n%"\nb: {"[" * 11}{"]" * 11}\n%TAG ! t:x', "x: is nested too deeply"),
        ("yaml", "%X\n---\na: 1", "found unknown directive name (at line 1"),
        ("yaml", "a: b: c", "mapping values are not allowed in this context (at line 1, column 5)"),
        ("yaml", "a:\n\tb: 1", "a tab cannot indent: write spaces (at line 2, column 1)"),
        ("yaml", "a:\r\n\tb: 1", "a tab cannot indent: write spaces (at line 2, column 1)"),
        ("yaml", "a: [1\n", "while parsing a flow sequence, did not find expected ',' or ']' (at line 2"),
        ("yaml", "\n\na: 'x", "found unexpected end of stream (at line 3"),
        ("yaml", 'a: "\\ud800"', "found invalid Unicode character escape code (at line 1"),
        ("yaml", "a: 1\nb: \x01", "the character U+0001 (at line 2)"),
        ("yaml", 'a: "\\0"', "x: a text has the character U+0000"),
        ("yaml", "a: 1\n---\nb: 2", "a second document begins, and a file has one (at line 2)"),
        ("yaml", "a: 1\nb: 2\na: 3", "the key a stands twice in one table (at line 3)"),
        ("yaml", "? [a]\n: b", "a list or table stands where a key is expected (at line 1)"),
        ("yaml", "", "x: expected keys such as name, source and device, got nothing."),
        ("yaml", "- a", "x: expected keys such as name, source and device, got a list."),
        ("yaml", "just words", "x: expected keys such as name, source and device, got a text."),
        ("yaml", "a: 9223372036854775808", "a whole number is beyond 64 bits"),
        ("yaml", "a: " + "[" * 100_000, "x: is nested too deeply"),
        ("yaml", "- " * 100_000, "x: is nested too deeply"),
        ("yaml", "a: -9223372036854775809", "a whole number is beyond 64 bits"),
        ("json", '{"a": 1,\n "b"}', "x: no valid JSON: Expecting ':' delimiter (at line 2, column 5)."),
        ("json", '{"a": 1, "a": 2}', "x: no valid JSON: the key a stands twice in one object."),
        ("json", '{"a": NaN}', "x: no valid JSON: NaN is no number of JSON."),
        ("json", '{"a": -Infinity}', "-Infinity is no number of JSON"),
        ("json", '{"a": "\\ud800"}', "x: a text has the character U+D800"),
        ("json", '{"\\u0000": 1}', "x: a text has the character U+0000"),
        ("json", '{"a": ' + "9" * 5000 + "}", "a whole number is beyond 64 bits"),
        ("json", '{"a": ' + "[" * 100_000, "x: is nested too deeply"),
        ("json", '{"a": ' + "[" * 10 + "]" * 10 + "}", "x: is nested too deeply"),
        ("json", "3", "x: expected keys such as name, source and device, got a number."),
        ("toml", "a = 0x" + "f" * 9000, "a whole number is beyond 64 bits"),
        ("toml", "a = " + "9" * 5000, "x: no valid TOML: a number has more than 4300 digits."),
        ("toml", "a" + ".a" * 20 + " = 1", "x: is nested too deeply"),
        ("toml", "a = 1\na = 2\n", "x: no valid TOML: Cannot overwrite a value (at line 2"),
    ],
)
def test_a_text_that_is_none_is_refused_with_a_sentence(form: Format, text: str, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_text(text, form, "x")
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("form", "text", "sentence"),
    [
        ("json", JSON.replace('"enabled": false', '"enabled": null'), r"device\[1\]\.enabled: expected true"),
        ("yaml", YAML.replace("enabled: false", "enabled: no"), r"enabled: expected true or false, got no"),
        ("json", JSON.replace("20.5", "1e400"), r"two, device\[0\]\.at: expected \[x, y\], two finite"),
        ("yaml", YAML.replace("1e8", ".inf"), r"two, link\[0\]\.bit_per_s: expected a finite number"),
        ("json", '{"device": {}}', r"two, device: expected a list of tables"),
        *(
            (
                form,
                TEXTS[form].replace("1e8", new),
                r"two, link\[0\]\.bit_per_s: expected a number, got",
            )
            for form in topologies.FORMATS
            for new in ("true", '"8e6"')
        ),
        (
            "yaml",
            YAML.replace("members: [a, b]", "members: ab"),
            r"two, group\[0\]\.members: expected a list, got 'ab'",
        ),
        ("toml", TOML.replace('"two"', "2026-11-23"), "two: 2026-11-23 is a date or time"),
        ("yaml", "devices: []", r"two, devices: unknown key: expected name, .*, device, switch, link, group"),
        ("yaml", YAML.replace("two", "<<"), r"two, name: "),
    ],
)
def test_a_wrong_value_is_named_as_in_toml(form: Format, text: str, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        topologies.parse_drawing(text, "two", form)


def test_json_is_what_other_programs_read() -> None:
    document = json.loads(topologies.dump_drawing(topologies.parse_drawing(TOML, "two"), "json"))
    assert document["device"][0]["at"] == [0.0, 20.5]
    assert document["group"] == [{"name": "Rack", "members": ["a", "b"]}]


PAGE = (Path(topologies.__file__).parents[1] / "docs" / "guides" / "drawing.md").read_text("utf-8")


def _example(language: str) -> str:
    return PAGE.split(f"```{language}\n")[1].split("```")[0]


def test_the_examples_of_the_documentation_are_one_cluster() -> None:
    drawn = topologies.parse_drawing(_example("toml"), "drawing.md")
    assert [link.name for link in drawn.spec.links] == ["desk--shelf", "desk--shelf--2"]
    assert drawn.layout.disabled == ("desk--shelf--2",)
    for form in topologies.FORMATS:
        assert topologies.parse_drawing(_example(form), "drawing.md", form) == drawn


def test_the_python_of_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = (
        '<graph edgedefault="undirected"><node id="a"/><node id="b"/><edge source="a" target="b"/></graph>'
    )
    Path("net.graphml").write_text(
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{graph}</graphml>', "utf-8"
    )
    exec(_example("python"), {})
    assert topologies.load_drawing("net.yaml") == topologies.load_drawing("net.graphml")
