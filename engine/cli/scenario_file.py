"""Read scenario files: timed changes as TOML or JSON, those in the report of an earlier run, or a trace of
rates as CSV.

    [[change]]                           at_s,link,bit_per_s
    at_s = 0.5                           0,hub--laptop,20000000
    kind = "set_rate"                    0.5,hub--laptop,18500000
    link = "hub--laptop"
    bit_per_s = 20e6
"""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.scenario import Scenario


def read_scenario(path: Path) -> Scenario:
    """The scenario in `path`; raises `SpecError` with the file and the field."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpecError(f"{path}: cannot read the scenario: {reason}.") from error
    if path.suffix == ".csv":
        return parse_trace(text, str(path))
    return parse_scenario(text, str(path), is_json=path.suffix == ".json")


def parse_trace(text: str, where: str) -> Scenario:
    """A trace of rates: columns at_s, link, bit_per_s and, if not both, direction; in any order of time."""
    rows = csv.DictReader(text.splitlines())
    have, need = set(rows.fieldnames or ()), {"at_s", "link", "bit_per_s"}
    if not need <= have <= need | {"direction"}:
        raise SpecError(f"{where}: columns are {sorted(have)}, expected at_s, link, bit_per_s and direction.")
    changes = [{"kind": "set_rate", **{key: value for key, value in row.items() if value}} for row in rows]
    return _in_order({"changes": changes}, where)


def parse_scenario(text: str, where: str, is_json: bool = False) -> Scenario:
    try:
        data = json.loads(text) if is_json else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{where}: no valid {'JSON' if is_json else 'TOML'}: {error}.") from error
    except RecursionError:
        raise SpecError(f"{where}: is nested too deeply: expected a list of [[change]] tables.") from None
    return _in_order({"changes": _changes(data, where)}, where)


def _in_order(data: dict[str, Any], where: str) -> Scenario:
    scenario: Scenario = Scenario.parse(data, where)
    return scenario.model_copy(update={"changes": tuple(sorted(scenario.changes, key=lambda c: c.at_s))})


def _changes(data: Any, where: str) -> Any:
    """The list of changes in a scenario file, a dumped `Scenario` or a `RunReport`."""
    if isinstance(data, dict) and isinstance(data.get("scenario"), dict):
        data = data["scenario"]
    if isinstance(data, dict):
        keys = set(data) & {"change", "changes"}
        if len(keys) == 1 and set(data) == keys:
            return data[keys.pop()]
        if not data:
            return []
    raise SpecError(f"{where}: expected a list of [[change]] tables and nothing else.")
