"""TOML of other people: what `tomllib` would not refuse in time is refused."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.toml_text import MAX_KEY_PARTS, read_toml

LONG = ".".join(["a"] * (MAX_KEY_PARTS + 1))
QUOTED = ".".join(['"a b"', "'c#'"] * MAX_KEY_PARTS)


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG} = 1",
        f"[{LONG}]",
        f"x = {{ {LONG} = 1 }}",
        f'x = "text" # comment\n{LONG.replace(".", " . ")} = 1',
        f"{QUOTED} = 1",
        'x = """\nunended " text\n"""\n' + f"{LONG} = 1",
        "a" + ".a" * 450_000 + " = 1",
    ],
)
def test_a_key_of_very_many_parts_is_refused(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="has more than 30 parts"):
        read_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        f'x = "{LONG}"',
        f"x = '{LONG}'",
        f'x = """\n{LONG}\n"""',
        f"x = '''\n{LONG}\n'''",
        f'x = "\\"{LONG}"',
        f"# it's {LONG}\nx = 1",
        "x = [" + "1.5, " * 100 + "]",
        f"{'.'.join(['a'] * MAX_KEY_PARTS)} = 1",
    ],
)
def test_texts_comments_and_numbers_with_points_are_no_keys(text: str) -> None:
    assert read_toml(text) == tomllib.loads(text)


def test_a_number_that_python_does_not_read_is_refused() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="a number has more than 4300 digits"):
        read_toml("x = " + "9" * 4301)


@given(st.text(st.sampled_from(list("a.='\"\\#[]{}\n 1")), max_size=40))
def test_short_texts_are_read_as_tomllib_reads_them(text: str) -> None:
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(tomllib.TOMLDecodeError):
            read_toml(text)
    else:
        assert read_toml(text) == expected
