"""Values of one family that are told apart by `kind`: each method's layout, each method's report.

A family is a direct subclass of `Kinded`. Every member gives `kind` a `Literal` type with one value, its
default. JSON carries the kind; reading finds the member by it, so its module must have been imported.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import ValidationInfo

from engine.domain.values import Value


class Kinded(Value):
    """The base of a family. `members` has the family's classes by kind."""

    kind: str

    members: ClassVar[dict[str, type[Kinded]]] = {}
    family: ClassVar[str] = ""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Record the subclass under its kind. Bases that several members share have no kind of their own."""
        super().__pydantic_init_subclass__(**kwargs)
        if Kinded in cls.__bases__:
            cls.members = {}
            return
        kind = cls.model_fields["kind"].default
        if not isinstance(kind, str):
            return
        known = cls.members.setdefault(kind, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"{cls.family} kind {kind!r} belongs to {known.__name__}: rename that of {cls.__name__}."
            )
        cls.members[kind] = cls

    @classmethod
    def of_kind(cls, value: Any, info: ValidationInfo) -> Any:
        """Read a member from JSON as the type that its kind names; a value that is one already stays.

        For a field's `BeforeValidator`. Raises `ValueError` with the known kinds.
        """
        if not isinstance(value, dict):
            return value
        kind = value.get("kind")
        if kind not in cls.members:
            raise ValueError(
                f"{cls.family} kind {kind!r} is unknown: known are {', '.join(sorted(cls.members))}"
            )
        extra = (info.context or {}).get("extra")  # what to do with unknown keys, as in pydantic
        return cls.members[kind].model_validate(value, extra=extra)
