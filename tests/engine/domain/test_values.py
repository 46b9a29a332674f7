"""Values are frozen and strict; a wrong document is one sentence that names its field."""

import pytest
from pydantic import Field, ValidationError, field_validator

from engine.domain.complaints import field_path
from engine.domain.errors import SpecError
from engine.domain.values import Name, Positive, Value


class Wheel(Value):
    radius_m: Positive
    spokes: int = 0

    @field_validator("spokes")
    @classmethod
    def _even(cls, spokes: int) -> int:
        if spokes % 2:
            raise ValueError("spokes must be even")
        return spokes


class Cart(Value):
    name: Name
    wheels: tuple[Wheel, ...] = Field(min_length=2)


WHEEL = {"radius_m": 0.5}


def refusal(data) -> SpecError:
    with pytest.raises(SpecError) as caught:
        Cart.parse(data, "cart.toml")
    return caught.value


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"wheels": [WHEEL, WHEEL]}, "cart.toml, name: missing."),
        ({"name": "a", "wheels": [WHEEL, WHEEL], "colour": "red"}, "cart.toml, colour: unknown key."),
        (
            {"name": "a", "wheels": [WHEEL, {"radius_m": 0}]},
            "cart.toml, wheels[1].radius_m: expected more than 0, got 0.",
        ),
        (
            {"name": "a", "wheels": [{"radius_m": float("nan")}, WHEEL]},
            "cart.toml, wheels[0].radius_m: expected a finite number, got nan.",
        ),
        (
            {"name": "a", "wheels": [WHEEL | {"spokes": 3}, WHEEL]},
            "cart.toml, wheels[0].spokes: spokes must be even.",
        ),
        (
            {"name": "a", "wheels": []},
            "cart.toml, wheels: expected at least 2 values, got none.",
        ),
    ],
)
def test_a_refusal_says_where_and_why(data, sentence):
    assert str(refusal(data)) == sentence


def test_a_value_too_long_to_read_is_not_repeated():
    error = refusal({"name": "B" * 61, "wheels": [WHEEL, WHEEL]})
    assert "got" not in str(error) and "BBB" not in str(error)


def test_the_message_is_the_first_problem_and_all_are_kept_for_forms():
    error = refusal({"name": "a", "wheels": [{"radius_m": -1}, {"radius_m": "x"}]})
    assert [path for path, _ in error.fields] == ["wheels[0].radius_m", "wheels[1].radius_m"]
    assert str(error).endswith("(and 1 more).")


def test_what_is_no_object_is_refused_without_a_field():
    assert str(refusal(3)) == "cart.toml: expected an object, got 3."


def test_a_value_is_frozen_and_equal_by_content():
    wheel = Wheel(radius_m=1)
    assert wheel == Wheel(radius_m=1.0)
    assert len({wheel, Wheel(radius_m=1)}) == 1
    with pytest.raises(ValidationError, match="frozen"):
        wheel.radius_m = 2


def test_paths_of_fields_are_written_as_in_python():
    assert field_path(("links", 2, "bit_per_s")) == "links[2].bit_per_s"
    assert field_path((0, "a")) == "[0].a"
    assert field_path(()) == ""
