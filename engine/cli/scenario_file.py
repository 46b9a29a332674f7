"""Scenario files: timed changes as TOML, as JSON, or taken from the report of an earlier run.

    [[change]]
    at_s = 0.5
    kind = "set_rate"
    link = "hub--laptop"
    bit_per_s = 20e6
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from engine.errors import SpecError
from engine.scenario import Scenario


def read_scenario(path: Path) -> Scenario:
    """The scenario in `path`; raises `SpecError` with the file and the field."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpecError(f"{path}: cannot read the scenario: {reason}.") from error
    return parse_scenario(text, str(path), is_json=path.suffix == ".json")


def parse_scenario(text: str, where: str, is_json: bool = False) -> Scenario:
    try:
        data = json.loads(text) if is_json else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{where}: no valid {'JSON' if is_json else 'TOML'}: {error}.") from error
    scenario: Scenario = Scenario.parse({"changes": _changes(data, where)}, where)
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
