"""Problems are told in our words at the paths of the fields that were sent, whatever pydantic tried there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, TypeAdapter, ValidationError

from engine.domain.complaints import EXPECTED, problems
from engine.domain.factor import FactorName
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.values import Fraction, Name, Positive
from engine.domain.workload import Workload
from tests.support.foreign_words import FOREIGN


class Point(BaseModel):
    x: int
    tags: list[str] = []


class Line(BaseModel):
    kind: Literal["line"]
    length_m: float


class Dot(BaseModel):
    kind: Literal["dot"]


class Row(BaseModel):
    model_config = ConfigDict(from_attributes=True)


@dataclass
class Place:
    x: int


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


Shape = Annotated[Line | Dot, Field(discriminator="kind")]


def found(kind: Any, data: Any) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(dict[str, kind]).validate_python({"field": data})
    return problems(caught.value.errors(), {"field": data})


EXAMPLES: list[tuple[Any, Any, str, str]] = [
    (int, 1.5, "field", "expected a whole number, got 1.5"),
    (int, "9" * 5000, "field", "expected a whole number"),
    (float, None, "field", "expected a number, got null"),
    (bool, "maybe", "field", "expected true or false, got 'maybe'"),
    (str, True, "field", "expected a text, got true"),
    (list[int], {}, "field", "expected a list, got an object"),
    (Point, [], "field", "expected an object, got a list"),
    (Point, {"y": 1}, "field.x", "missing"),
    (Point, {"x": 1, "tags": ["a", 2]}, "field.tags[1]", "expected a text, got 2"),
    (Fraction, 2, "field", "expected at most 1, got 2"),
    (Annotated[list[int], Field(min_length=2)], [1], "field", "expected at least 2 values, got 1"),
    (Annotated[list[int], Field(max_length=1)], [1, 2], "field", "expected at most 1 value, got 2"),
    (Annotated[str, Field(max_length=3)], "four", "field", "expected at most 3 characters, got 'four'"),
    (Literal["a", "b"], "c", "field", "expected 'a' or 'b', got 'c'"),
    (
        Name,
        "Pi 4",
        "field",
        "expected a small letter, then at most 30 small letters, digits, _ or -, got 'Pi 4'",
    ),
    (
        FactorName,
        "a-b",
        "field",
        "expected a small letter, then at most 30 small letters, digits, _, got 'a-b'",
    ),
    (
        Positive | Literal["auto", "native"],
        -1,
        "field",
        "expected more than 0, or 'auto' or 'native', got -1",
    ),
    (Positive | Literal["auto"], 1e99, "field", "expected 1e-30 to 1e+30, got 1e+99"),
    (StrictInt | str, 1.5, "field", "expected a whole number, or a text, got 1.5"),
    (str | Point, 5, "field", "expected a text, or an object, got 5"),
    (str | Point, {"x": "a"}, "field.x", "expected a whole number, got 'a'"),
    (Shape, {"kind": "line", "length_m": "a"}, "field.length_m", "expected a number, got 'a'"),
    (Shape, {"kind": "line"}, "field.length_m", "missing"),
    (Shape, {"kind": "arc"}, "field", "expected 'kind' to be one of 'line', 'dot', got 'arc'"),
    (Shape, {}, "field", "expected an object with 'kind', got an object"),
    (dict[str, dict[str, int]], {"a": {"list": "x"}}, "field.a.list", "expected a whole number, got 'x'"),
    (Annotated[int, Field(gt=2)], 2, "field", "expected more than 2, got 2"),
    (Annotated[int, Field(ge=2)], 1, "field", "expected at least 2, got 1"),
    (Annotated[int, Field(lt=2)], 2, "field", "expected less than 2, got 2"),
    (Annotated[float, Field(allow_inf_nan=False)], inf, "field", "expected a finite number, got inf"),
    (Annotated[str, Field(min_length=2)], "a", "field", "expected at least 2 characters, got 'a'"),
    (Colour, "green", "field", "expected 'red' or 'blue', got 'green'"),
    (None, 1, "field", "expected null, got 1"),
    (float, "a", "field", "expected a number, got 'a'"),
    (str, b"\xff", "field", "expected a text"),
    (bool, [], "field", "expected true or false, got a list"),
    (tuple[int, ...], 5, "field", "expected a list, got 5"),
    (set[int], 5, "field", "expected a list, got 5"),
    (frozenset[int], 5, "field", "expected a list, got 5"),
    (dict[str, int], 5, "field", "expected an object, got 5"),
    (Row, 5, "field", "expected an object, got 5"),
    (Place, 5, "field", "expected an object, got 5"),
]


@pytest.mark.parametrize(("kind", "data", "path", "words"), EXAMPLES)
def test_a_problem_is_one_in_our_words_at_its_place(kind: Any, data: Any, path: str, words: str) -> None:
    assert found(kind, data) == [(path, words)]
    assert not FOREIGN.search(words)


def test_each_word_for_what_was_expected_has_an_example() -> None:
    seen: set[str] = set()
    for kind, data, _, _ in EXAMPLES:
        with pytest.raises(ValidationError) as caught:
            TypeAdapter(dict[str, kind]).validate_python({"field": data})  # type: ignore[valid-type]
        seen |= {problem["type"] for problem in caught.value.errors()}
    assert set(EXPECTED) <= seen


def test_a_value_s_own_sentence_stays_as_it_is() -> None:
    def _even(number: int) -> int:
        raise ValueError(f"{number} is odd: give an even number")

    assert found(Annotated[int, AfterValidator(_even)], 3) == [("field", "3 is odd: give an even number")]


def test_several_problems_keep_their_places() -> None:
    assert [path for path, _ in found(Point, {"x": "a", "tags": 3})] == ["field.x", "field.tags"]


@pytest.mark.parametrize(
    ("kind", "data", "path"),
    [
        (RunSpec, {"dilation": -1}, "dilation"),
        (Workload, {"pattern": "trace", "trace": [{"at_s": -1}]}, "trace[0].at_s"),
        (Workload, {"pattern": "trace", "trace": [{"at_s": 0, "prompt_tokens": 1}]}, "trace[0].new_tokens"),
        (Workload, {"pattern": "trace", "trace": 5}, "trace"),
        (Workload, {"pattern": "trace", "trace": "ab"}, "trace"),
        (
            Scenario,
            {"changes": [{"kind": "set_rate", "at_s": 1, "link": "a", "bit_per_s": 0}]},
            "changes[0].bit_per_s",
        ),
    ],
)
def test_the_path_is_that_of_the_field_that_was_sent(kind: Any, data: Any, path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(data)
    fields = dict(problems(caught.value.errors(), data))
    assert path in fields and "workload.at_s" not in fields
    assert not any(FOREIGN.search(f"{where} {words}") for where, words in fields.items())
