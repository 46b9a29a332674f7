"""Parameters of strategies as factors, read from their schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.domain.quantity import Coordinate
from engine.experiments.design.paths import unit_of
from engine.strategies.registry import STRATEGIES
from webapp.experiments.design.factor_option import Choice, FactorOption, Kind


def parameters(base: dict[str, Any]) -> Iterable[FactorOption]:
    """The parameters of the base's strategy, else of all, that are numbers, choices or switches."""
    chosen = base.get("strategy")
    given = base.get("params") if isinstance(base.get("params"), dict) else {}
    assert isinstance(given, dict)
    seen = set()
    for strategy in STRATEGIES:
        if chosen and strategy.name != chosen:
            continue
        schema = strategy.Params.model_json_schema()
        for name, field in schema.get("properties", {}).items():
            about = _kind_of(field, schema)
            if about is None or name in seen:
                continue
            seen.add(name)
            kind, choices = about
            yield FactorOption(
                path=f"params.{name}",
                name=name[:31],
                title=f"{strategy.title}: {name.replace('_', ' ')}",
                group="Strategy",
                unit=unit_of(f"params.{name}") or "",
                kind=kind,
                choices=[Choice(value=value, label=_shown(value)) for value in choices],
                current=given.get(name, field.get("default")) if _is_plain(field.get("default")) else None,
                low=field.get("minimum", field.get("exclusiveMinimum")),
                high=field.get("maximum", field.get("exclusiveMaximum")),
            )


def _kind_of(field: dict[str, Any], schema: dict[str, Any]) -> tuple[Kind, list[Coordinate]] | None:
    """Kind and choices of a parameter by its JSON schema; None for lists and objects."""
    for part in field.get("anyOf", [field]):
        if "$ref" in part:
            part = schema.get("$defs", {}).get(part["$ref"].rpartition("/")[2], {})
        if "enum" in part:
            return "choice", list(part["enum"])
        match part.get("type"):
            case "boolean":
                return "choice", [False, True]
            case "integer":
                return "whole", []
            case "number":
                return "number", []
    return None


def _shown(value: Coordinate) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
