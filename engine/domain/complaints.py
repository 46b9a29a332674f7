"""What is wrong with plain data: the problems that pydantic found, by the paths of fields, in our words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

Location = tuple[int | str, ...]

EXPECTED = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "none_required": "null",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} values",
    "too_long": "at most {max_length} values",
    "union_tag_invalid": "{discriminator} to be one of {expected_tags}",
    "union_tag_not_found": "an object with {discriminator}",
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("string_type", "string_unicode"), "a text"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "dataclass_type"), "an object"),
}
"""What was expected where pydantic finds a problem of this type, with the values that it names."""

NAMES = re.compile(r"\^\[a-z\]\[a-z0-9(?P<marks>[_-]+)\]\{0,(?P<more>\d+)\}\$")
"""The patterns that names have here."""
TYPES = frozenset({"bool", "bytes", "date", "dict", "float", "int", "list", "none", "str", "tuple"})
FIELD = re.compile(r"[a-z_][a-z0-9_]*")
SHOWN_CHARS = 60


def problems(items: Sequence[Any], data: Any) -> list[tuple[str, str]]:
    """The path and the words of all `items`, which pydantic found wrong with `data`: one for each place.

    Where values of several kinds may stand, pydantic says of each kind why it is not that one.
    """
    found: dict[Location, list[Any]] = {}
    places = [_place(item["loc"], data) for item in items]
    for item, place in zip(items, places, strict=True):
        # It also calls a list too short once it has removed wrong items, and an object no text.
        is_other_kind = item["type"] == "too_short" or len(place) < len(item["loc"])
        if not is_other_kind or not any(other[: len(place)] == place != other for other in places):
            found.setdefault(place, []).append(item)
    values = {place: ... if data is None else _at(data, place) for place in found}  # ...: nobody knows
    return [(field_path(place), _complaint(group, values[place])) for place, group in found.items()]


def field_path(location: Location) -> str:
    """`("links", 2, "bit_per_s")` → `links[2].bit_per_s`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


def _complaint(items: Sequence[Any], value: Any) -> str:
    """What was expected in one place, and what is there."""
    kinds = {item["type"] for item in items}
    if kinds == {"extra_forbidden"}:
        return "unknown key"
    if kinds == {"missing"}:
        return "missing"
    own = [item for item in items if item["type"] not in EXPECTED and not _form_of(item)]
    if own:
        return str(own[0]["msg"]).removeprefix("Value error, ")
    expected = ", or ".join(dict.fromkeys(_expected(item) for item in items))
    got = _got(items[0], items[0].get("input", value))
    return f"expected {expected}{got and f', got {got}'}"


def _expected(item: Any) -> str:
    about = {name: _plain(value) for name, value in item.get("ctx", {}).items()}
    text = _form_of(item) or EXPECTED[item["type"]].format(**about)
    return text.replace(" 1 values", " 1 value").replace(" 1 characters", " 1 character")


def _form_of(item: Any) -> str:
    """The form that a text must have; "" for a problem with anything else."""
    if item["type"] != "string_pattern_mismatch":
        return ""
    pattern = item["ctx"]["pattern"]
    if name := NAMES.fullmatch(pattern):
        marks = " or ".join(name["marks"])
        return f"a small letter, then at most {name['more']} small letters, digits, {marks}"
    return f"a text of the form {pattern}"


def _plain(value: Any) -> Any:
    """A bound as people write it: 0, not 0.0."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def _got(item: Any, value: Any) -> str:
    """What stands there, in a few characters; "" if that takes more."""
    if item["type"] == "union_tag_invalid":
        return repr(item["ctx"]["tag"])
    if item["type"] in ("too_short", "too_long"):
        return str(item["ctx"].get("actual_length") or "none")
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str | int | float) else ""
    return text if len(text) <= SHOWN_CHARS else ""


def _place(location: Location, data: Any) -> Location:
    """A location without what pydantic adds to it: the kinds of value that it tried."""
    place: list[int | str] = []
    for part in location:
        inside = _inside(data, part)
        if inside is not None or not _is_kind(part, data):
            place.append(part)
            data = inside and inside[0]
    return tuple(place)


def _is_kind(part: int | str, data: Any) -> bool:
    """Whether a part that `data` does not have is the name of a type, or the kind of a value that says it."""
    if isinstance(part, int):
        return False
    tags = data.values() if isinstance(data, dict) else ()
    return part in TYPES or not FIELD.fullmatch(part) or part in tags


def _inside(data: Any, part: int | str) -> tuple[Any] | None:
    if isinstance(data, dict):
        return (data[part],) if part in data else None
    if isinstance(part, int):
        return (data[part],) if isinstance(data, list | tuple) and 0 <= part < len(data) else None
    return (getattr(data, part),) if isinstance(data, BaseModel) and part in type(data).model_fields else None


def _at(data: Any, place: Location) -> Any:
    for part in place:
        inside = _inside(data, part)
        data = inside and inside[0]
    return data
