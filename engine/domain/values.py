"""The base of every frozen value that travels as JSON: specs, plans, reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NoReturn, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from engine.domain.complaints import field_path, problems
from engine.domain.errors import SpecError

LEAST, MOST = 1e-30, 1e30


def _of_size(number: float) -> float:
    """Refuses what no quantity in SI units is: products of such numbers are 0 or infinite."""
    if number and not LEAST <= number <= MOST:
        raise ValueError(f"expected {LEAST:g} to {MOST:g}, got {number:g}")
    return number


def _whole(given: Any) -> Any:
    """Refuses true and false, which Python takes for 1 and 0: their names are no numbers."""
    return str(given).lower() if isinstance(given, bool) else given


Positive = Annotated[float, Field(gt=0), AfterValidator(_of_size)]
"""A number above 0, from 1e-30 to 1e30; in the unit that the field's name ends with."""
NonNegative = Annotated[float, Field(ge=0), AfterValidator(_of_size)]
"""The same, or 0."""
Fraction = Annotated[float, Field(ge=0, le=1)]
"""A share, from 0 to 1."""
Count = Annotated[int, Field(ge=0)]
"""A whole number from 0 on; a rank, a layer, an amount."""
Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number that a request has, as that of a row in a database."""
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,30}$")]


class Value(BaseModel):
    """A frozen value: equal by content, no unknown keys, no NaN, JSON in and out."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def parse(cls, data: Any, where: str) -> Self:
        """Validate plain `data`, as JSON or TOML have it; raises `SpecError` whose sentence names the field.

        `where` names the source of the data in messages: a file name, "request body", …
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise_spec_error(error, where, data)


def raise_spec_error(error: ValidationError, where: str, data: Any) -> NoReturn:
    """Turn pydantic's problems with `data` into one sentence about the first, keeping all as paths."""
    fields = problems(error.errors(), data)
    path, message = fields[0]
    more = f" (and {len(fields) - 1} more)" if len(fields) > 1 else ""
    place = f"{where}, {path}" if path else where
    raise SpecError(f"{place}: {message}{more}.", fields=fields) from error


def same(one: Any, other: Any) -> bool:
    """Whether both are equal and both or neither are booleans (in Python, `1 == True`)."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def numbers_in(data: Any) -> Iterator[tuple[str, int | float]]:
    """Every number in plain data or values, with its path as `field_path` writes it."""
    rows: list[tuple[tuple[int | str, ...], Any]] = [((), data)]
    while rows:
        location, value = rows.pop()
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield field_path(location), value
        elif isinstance(value, BaseModel):
            rows += [((*location, name), part) for name, part in value]
        elif isinstance(value, dict):
            rows += [((*location, str(name)), part) for name, part in value.items()]
        elif isinstance(value, list | tuple):
            rows += [((*location, index), part) for index, part in enumerate(value)]
