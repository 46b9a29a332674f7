"""Experiment files: TOML or JSON ⇄ `Experiment`.

A TOML file has the fields of `Experiment`, with the tables `[[factor]]`, `[[point]]`, `[[figure]]`,
`[[table]]`, `[[published]]` and `[[claim]]`; JSON has the fields as they are."""

from __future__ import annotations

import json
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from engine.domain.errors import SpecError, reworded
from engine.domain.experiment import Experiment
from engine.domain.factor import Level
from engine.domain.stored_experiment import upgrade_experiment
from engine.domain.toml_text import as_in_file, read_toml

TABLES = {"factor": "factors", "point": "points", "figure": "figures", "table": "tables", "claim": "claims"}
MAX_BYTES = 5_000_000


def load_file(path: Path) -> Experiment:
    """The experiment in a file; its ending tells the format. Raises `SpecError`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SpecError(f"{path}: has {path.stat().st_size:,} bytes, and the limit is {MAX_BYTES:,}.")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(f"{path}: cannot read the experiment: {reason}.") from error
    return parse_json(text, path.name) if path.suffix == ".json" else parse_toml(text, path.name)


def parse_json(text: str, where: str) -> Experiment:
    """The experiment in a JSON text; `where` names the text in errors (`SpecError`)."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise SpecError(f"{where}: no valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise SpecError(f"{where}: expected a JSON object with the fields of an experiment.")
    current = upgrade_experiment(data) if "schema" in data else data
    experiment: Experiment = Experiment.parse(
        {key: item for key, item in current.items() if key != "schema"}, where
    )
    return experiment


def parse_toml(text: str, where: str) -> Experiment:
    """The experiment in a TOML text; `where` names the text in errors (`SpecError`): `rates.toml,
    factor[1].path: …`.
    """
    try:
        data = read_toml(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SpecError(f"{where}: no valid TOML: {error}.", fields=[("toml", str(error))]) from error
    for table in TABLES:
        if table in data and not isinstance(data[table], list):
            raise SpecError(f"{where}, {table}: expected [[{table}]] tables.", [(table, "expected tables")])
    fields = {TABLES.get(key, key): value for key, value in data.items()}
    try:
        experiment: Experiment = Experiment.parse(fields, where)
    except SpecError as error:
        raise reworded(error, partial(as_in_file, TABLES)) from error
    return experiment


def dump_toml(experiment: Experiment) -> str:
    """Text that `parse_toml` reads back as an equal experiment. Fields with their default are left out, and
    those of a run that are null, which TOML has no word for: they mean the default, too.
    """
    data = experiment.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    singular = {field: table for table, field in TABLES.items()}
    if "factors" in data:
        data["factors"] = [
            {**row, "values": [_short(level) for level in factor.values]}
            for row, factor in zip(data["factors"], experiment.factors, strict=True)
        ]
    for claim, row in zip(experiment.claims, data.get("claims", []), strict=True):
        row["kind"] = claim.kind
    tables = {singular[key]: value for key, value in data.items() if key in singular}
    plain = {key: value for key, value in data.items() if key not in singular}
    return tomli_w.dumps(_without_null({**plain, **tables}))


def _without_null(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_null(value) for key, value in data.items() if value is not None}
    return [_without_null(value) for value in data] if isinstance(data, list | tuple) else data


def _short(level: Level) -> Any:
    """A level with nothing but a value as the value itself, where that is read back alike."""
    if level.label or level.set or isinstance(level.value, dict):
        return level.model_dump(mode="json", exclude_defaults=True)
    return level.value
