"""One factor that the form offers."""

from __future__ import annotations

from typing import Any, Literal

from ninja import Schema
from pydantic import Field, field_validator

from engine.domain.quantity import Coordinate

Kind = Literal["number", "whole", "choice"]


class Choice(Schema):
    value: Coordinate
    label: str


class FactorOption(Schema):
    """One idea: `path` with `[*]` for all of `targets`, which it may be restricted to by name."""

    path: str
    name: str
    title: str
    group: str
    unit: str
    kind: Kind
    targets: list[str] = Field(default_factory=list)
    choices: list[Choice] = Field(default_factory=list)
    current: Coordinate | None = Field(description="What the base has; null if it has several or none.")
    low: float | None = None
    high: float | None = None

    @field_validator("current", mode="before")
    @classmethod
    def _one_value(cls, given: Any) -> Any:
        """A list or an object, which a base of any JSON may have there, is no value of a factor."""
        return None if isinstance(given, list | dict) else given
