"""TOML of other people: what `tomllib` would not refuse in time is refused."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain.toml_text import MAX_KEY_PARTS, STRING_OR_COMMENT, read_toml

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


PIECES = ["\\", '"', "'", '"""', "'''", "#", "\n", "a"]


@given(st.sampled_from(['"""', "'''"]), st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
@example('"""', "\\")
def test_a_long_text_is_passed_in_one_step_whatever_follows_its_opening(opening: str, rest: str) -> None:
    """Were it not, each of n openings would scan to the end: time would grow with the square of n."""
    found = STRING_OR_COMMENT.match(opening + rest)
    assert found is not None
    ended = len(found.group()) >= 6 and found.group().endswith(opening)
    assert ended or found.end() == len(opening + rest)


@given(st.sampled_from(['"', "'", "#"]), st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_a_text_or_comment_of_one_line_is_passed_whatever_follows_its_opening(
    opening: str, rest: str
) -> None:
    found = STRING_OR_COMMENT.match(opening + rest)
    assert found is not None and found.end() >= 1


def test_many_openings_with_a_backslash_at_the_end_are_one_text() -> None:
    text = '"""\\' * 250_000
    assert len(STRING_OR_COMMENT.findall(text)) == 1
    with pytest.raises(tomllib.TOMLDecodeError):
        read_toml('name = "x"\n' + text)


def test_a_byte_order_mark_may_precede_the_text() -> None:
    assert read_toml("\ufeffa = 1") == {"a": 1}


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
