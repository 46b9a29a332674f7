"""The formats of a cluster file: TOML, JSON and YAML hold the same tables, lists and plain values.

YAML is read as version 1.2 says (`topologies.yaml_text`). Every reader refuses what another could not write:
a key twice in one table, whole numbers beyond 64 bits, and text that no database stores.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from datetime import date, time
from typing import Any, Literal, NoReturn

import tomli_w

from engine.domain.errors import SpecError
from engine.domain.toml_text import read_toml
from topologies.yaml_text import NotYaml, read_yaml, write_yaml

Format = Literal["toml", "json", "yaml"]
FORMATS: tuple[Format, ...] = ("toml", "json", "yaml")
TITLES: dict[Format, str] = {"toml": "TOML", "json": "JSON", "yaml": "YAML"}
MEDIA_TYPES: dict[Format, str] = {
    "toml": "application/toml",
    "json": "application/json",
    "yaml": "application/yaml",  # RFC 9512
}
_SUFFIXES: dict[str, Format] = {".toml": "toml", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}

MAX_DEPTH = 10
"""The deepest place of a value: a rate of a device's list of rates lies five tables and lists deep."""
MAX_INTEGER = 2**63 - 1
"""What TOML and databases hold."""
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


class _Refused(ValueError):
    """What the JSON reader's hooks refuse."""


def format_of(filename: str) -> Format | None:
    """The format that the end of a file's name says; None for any other."""
    return next((form for end, form in _SUFFIXES.items() if filename.lower().endswith(end)), None)


def read_text(text: str, form: Format, where: str) -> dict[str, Any]:
    """The keys of a document. Raises `SpecError`, which calls the text `where`."""
    try:
        data = _READERS[form](text)
    except (_Refused, NotYaml) as error:
        _refuse(where, form, str(error))
    except tomllib.TOMLDecodeError as error:
        _refuse(where, form, str(error))
    except json.JSONDecodeError as error:
        _refuse(where, form, f"{error.msg} (at line {error.lineno}, column {error.colno})")
    except RecursionError:
        raise _too_deep(where) from None
    if not isinstance(data, dict):
        shown = "nothing" if data is None else f"a {_kind_of(data)}"
        raise SpecError(f"{where}: expected keys such as name, source and device, got {shown}.")
    _check_values(data, where)
    return data


def write_text(document: dict[str, Any], form: Format) -> str:
    """Text that `read_text` reads back as an equal document, which has no null."""
    return _WRITERS[form](document)


def _read_json(text: str) -> Any:
    return json.loads(
        text.removeprefix("\ufeff"), object_pairs_hook=_once, parse_constant=_no_number, parse_int=_whole
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise _Refused(f"the key {key[:40]} stands twice in one object")
        table[key] = value
    return table


def _no_number(text: str) -> NoReturn:
    raise _Refused(f"{text} is no number of JSON")


def _whole(digits: str) -> int:
    return int(digits) if len(digits) < 30 else MAX_INTEGER + 1  # which `_check_values` refuses


def _write_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


_READERS: dict[Format, Callable[[str], Any]] = {
    "toml": read_toml,
    "json": _read_json,
    "yaml": lambda text: read_yaml(text, MAX_DEPTH),
}
_WRITERS: dict[Format, Callable[[dict[str, Any]], str]] = {
    "toml": tomli_w.dumps,
    "json": _write_json,
    "yaml": write_yaml,
}


def _refuse(where: str, form: Format, reason: str) -> NoReturn:
    raise SpecError(f"{where}: no valid {TITLES[form]}: {reason}.", [(form, reason)]) from None


def _too_deep(where: str) -> SpecError:
    sentence = "is nested too deeply: a cluster file has tables of plain values"
    return SpecError(f"{where}: {sentence}.", [(where, sentence)])


def _kind_of(value: object) -> str:
    return {list: "list", str: "text", bool: "truth value"}.get(type(value), "number")


def _check_values(document: dict[str, Any], where: str) -> None:
    """Check that every part behind can handle the nesting, text and whole numbers; raises `SpecError`."""
    rows: list[tuple[Any, int]] = [(document, 1)]
    while rows:
        value, depth = rows.pop()
        if isinstance(value, dict | list) and depth > MAX_DEPTH:
            raise _too_deep(where)
        if isinstance(value, dict):
            rows += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            rows += [(part, depth + 1) for part in value]
        elif isinstance(value, str) and (found := _NO_TEXT.search(value)):
            code = f"U+{ord(found.group()):04X}"
            raise SpecError(f"{where}: a text has the character {code}: leave it out, no database stores it.")
        elif isinstance(value, date | time):
            raise SpecError(f"{where}: {value} is a date or time: quote it to make it a text.")
        elif isinstance(value, int) and abs(value) > MAX_INTEGER:
            sentence = "a whole number is beyond 64 bits: write a large rate with an exponent, such as 1e20"
            raise SpecError(f"{where}: {sentence}.")
