"""How a cluster is drawn, as keys of a cluster file.

A device or switch may have `at = [x, y]`, a link `bends = [[x, y], …]`, and each of them `enabled = false`:
it is drawn but takes no part in a run. Tables `[[group]]` have a `name`, `members` and perhaps `collapsed`.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError, reworded
from engine.domain.links import link_name
from engine.domain.values import Value, raise_spec_error
from topologies.layout import MAX_BENDS, CanvasLayout

Row = dict[str, Any]
Tables = dict[str, list[Row]]
TABLE = "group"
Parsed = TypeVar("Parsed", bound=Value)


class Drawn(NamedTuple):
    """A cluster with everything that is drawn, what is switched off included, and how it is drawn."""

    spec: ClusterSpec
    layout: CanvasLayout


def without_drawing(tables: Tables, groups: list[Row], where: str) -> tuple[Tables, CanvasLayout]:
    """The rows of `tables` (`device`, `switch`, `link`) without the keys of a drawing, and the layout that
    these keys mean. Raises `SpecError` for a wrong value.
    """
    positions: dict[str, Row] = {}
    bends: dict[str, list[Row]] = {}
    disabled: list[str] = []
    plain: Tables = {}
    for table, rows in tables.items():
        plain[table] = []
        for index, row in enumerate(rows):
            place = f"{table}[{index}]"
            name = _name_of(table, row)
            if "at" in row and table != "link":
                positions[name] = _point(row["at"], f"{where}, {place}.at")
            if "bends" in row and table == "link":
                bends[name] = _points(row["bends"], f"{where}, {place}.bends")
            if not _boolean(row.get("enabled", True), f"{where}, {place}.enabled"):
                disabled.append(name)
            own = ("bends", "enabled") if table == "link" else ("at", "enabled")
            plain[table].append({key: value for key, value in row.items() if key not in own})
    data = {"positions": positions, "disabled": disabled, "bends": bends, "groups": groups}
    try:
        layout = parse_strictly(CanvasLayout, data, where)
    except SpecError as error:
        raise reworded(error, _as_in_file) from error
    nodes = {str(row.get("name")) for table in ("device", "switch") for row in plain.get(table, [])}
    _check_members(layout, nodes, where)
    return plain, layout


def parse_strictly(kind: type[Parsed], data: Row, where: str) -> Parsed:
    """`Value.parse` in which a truth value or a quoted number is no number. JSON's lists are its tuples."""
    try:
        return kind.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise_spec_error(error, where, data)


def _as_in_file(text: str) -> str:
    """`groups[0].members` → `group[0].members`: what a file calls them."""
    return text.replace("groups", "group")


def with_drawing(tables: Tables, layout: CanvasLayout) -> Tables:
    """The rows of `tables` with the keys of a drawing, and the table of its groups."""
    off = set(layout.disabled)
    drawn: Tables = {}
    for table, rows in tables.items():
        drawn[table] = []
        for row in rows:
            name = _name_of(table, row)
            own: Row = {}
            if table != "link" and name in layout.positions:
                at = layout.positions[name]
                own["at"] = [at.x, at.y]
            if table == "link" and layout.bends.get(name):
                own["bends"] = [[at.x, at.y] for at in layout.bends[name]]
            turned = _name_of(table, row | {"a": row["b"], "b": row["a"]}) if table == "link" else name
            if off & {name, turned}:
                own["enabled"] = False
            drawn[table].append(row | own)
    if layout.groups:
        drawn[TABLE] = [group.model_dump(mode="json", exclude_defaults=True) for group in layout.groups]
    return drawn


def refusal(where: str, sentence: str) -> SpecError:
    """An error about one place in a file."""
    return SpecError(f"{where}: {sentence}.", [(where, sentence)])


def _name_of(table: str, row: Row) -> str:
    """What a layout calls the device, switch or link of a row; rows may still be wrong."""
    if table != "link":
        return str(row.get("name", ""))
    number = row.get("parallel", 1)
    return link_name(str(row.get("a", "")), str(row.get("b", "")), number if isinstance(number, int) else 1)


def _point(value: Any, where: str) -> Row:
    numbers = isinstance(value, list) and all(
        isinstance(part, int | float) and not isinstance(part, bool) and math.isfinite(part) for part in value
    )
    if not numbers or len(value) != 2:
        raise refusal(where, f"expected [x, y], two finite numbers, got {str(value)[:40]}")
    return {"x": value[0], "y": value[1]}


def _points(value: Any, where: str) -> list[Row]:
    if not isinstance(value, list):
        raise refusal(where, "expected a list of [x, y]")
    if len(value) > MAX_BENDS:
        raise refusal(where, f"has {len(value)} bends, and the limit is {MAX_BENDS}")
    return [_point(part, f"{where}[{index}]") for index, part in enumerate(value)]


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise refusal(where, f"expected true or false, got {str(value)[:40]}")
    return value


def _check_members(layout: CanvasLayout, nodes: set[str], where: str) -> None:
    for index, group in enumerate(layout.groups):
        for member in group.members:
            if member not in nodes:
                raise refusal(
                    f"{where}, group[{index}].members",
                    f"{member} is neither device nor switch: name one that is",
                )
