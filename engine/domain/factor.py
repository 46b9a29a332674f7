"""Factor: what an experiment varies, with its levels."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from engine.domain.quantity import Coordinate
from engine.domain.values import Value

FactorName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
RESERVED = ("world", "seed", "and", "or", "not", "in", "true", "false")
"""Names that no factor may have: coordinates that every row has, and words of conditions."""


class Level(Value):
    """One value of a factor. `value` goes to the factor's paths, and every path in `set` gets its value.

    The coordinate is `value` where it is a number, a text or a boolean, else `label`. `label` is what figures
    and tables show. In a file a level may be a plain value.
    """

    label: str = ""
    value: Any = None
    set: dict[str, Any] = Field(default_factory=dict)

    @property
    def coordinate(self) -> Coordinate:
        return self.value if isinstance(self.value, str | int | float | bool) else self.label

    @property
    def title(self) -> str:
        return self.label or str(self.coordinate)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        is_level = isinstance(data, Level | dict) and (
            not isinstance(data, dict) or (bool(data) and data.keys() <= {"label", "value", "set"})
        )
        return data if is_level else {"value": data}

    @model_validator(mode="after")
    def _has_a_coordinate(self) -> Level:
        if self.value is None and not self.set:
            raise ValueError("a level has neither value nor set: give one of them")
        if self.coordinate == "":
            raise ValueError("a level that is no number, text or boolean needs a label")
        return self


class Factor(Value):
    """What is varied: `path` or `paths` into the run name what each level's value replaces there.

    `unit` is that of the values, in SI as everywhere ("bit/s", "s", "B", "" for names and counts).
    """

    name: FactorName
    title: str = ""
    unit: str = ""
    paths: tuple[str, ...] = ()
    values: tuple[Level, ...] = Field(min_length=1)

    @property
    def label(self) -> str:
        """How axes and tables call it, without its unit."""
        return self.title or self.name.replace("_", " ")

    def level(self, coordinate: Coordinate) -> Level | None:
        """The level with this coordinate or, if none has it, with this label."""
        for level in self.values:
            if same_coordinate(level.coordinate, coordinate):
                return level
        return next((level for level in self.values if level.label and level.label == coordinate), None)

    @model_validator(mode="before")
    @classmethod
    def _one_path(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "path" not in data:
            return data
        if "paths" in data:
            raise ValueError("has path and paths: give one of them")
        return {**{key: item for key, item in data.items() if key != "path"}, "paths": [data["path"]]}

    @model_validator(mode="after")
    def _consistent(self) -> Factor:
        if self.name in RESERVED:
            raise ValueError(f"a factor cannot be called {self.name}: the word is taken")
        if not self.paths and not any(level.set for level in self.values):
            raise ValueError(f"{self.name} changes nothing: give a path, or values with set")
        seen: set[tuple[bool, Coordinate]] = set()
        for index, level in enumerate(self.values):
            missing = [path for path in self.paths if level.value is None and path not in level.set]
            if missing:
                raise ValueError(f"values[{index}] has no value for the path {missing[0]}")
            key = (isinstance(level.coordinate, bool), level.coordinate)
            if key in seen:
                raise ValueError(f"values[{index}] has the coordinate {level.coordinate!r} of an earlier one")
            seen.add(key)
        return self


def same_coordinate(one: Coordinate, other: Coordinate) -> bool:
    """Whether two coordinates are equal, and both or neither booleans or texts: in Python `1 == True`; 1 and
    1.0 are the same.
    """
    return one == other and isinstance(one, bool) == isinstance(other, bool)
