"""Device presets: rows of `devices.toml`, with the rates per format in `format_rates.toml`, and of packs.

A preset is a `DeviceSpec` whose name is the preset's.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from engine.domain.cluster import DeviceSpec
from engine.domain.errors import SpecError
from engine.plugins.installed import Installed, Kind
from engine.plugins.packs import of_packs, tables

DevicePreset = DeviceSpec

FILE = Path(__file__).with_name("devices.toml")
FITTED = Path(__file__).with_name("format_rates.toml")


def presets() -> tuple[DevicePreset, ...]:
    """All presets: ours in the order of the file, then those of packs."""
    return (*_own(), *presets_of_packs().rows.values())


@cache
def presets_of_packs() -> Installed[DevicePreset]:
    return of_packs(Kind("device preset", "devices"), [device.name for device in _own()], _of_folder)


def _of_folder(folder: Path) -> dict[str, DevicePreset]:
    return _by_name(tables(folder, FILE.name, "device"), str(folder / FILE.name))


@cache
def same_chips() -> dict[str, str]:
    """Presets that have another one's rates per format, because its chip is theirs (`same_chip_as`)."""
    return {row["name"]: row["same_chip_as"] for row in _rows() if "same_chip_as" in row}


def _rows() -> list[dict[str, Any]]:
    return list(tomllib.loads(FILE.read_text(encoding="utf-8"))["device"])


@cache
def _own() -> tuple[DevicePreset, ...]:
    """Those of the file; raises `SpecError` if it is wrong."""
    rows = [{key: row[key] for key in row if key != "same_chip_as"} for row in _rows()]
    fitted = tomllib.loads(FITTED.read_text(encoding="utf-8")).get("rate", [])
    for rate in fitted:
        row = next((row for row in rows if row["name"] == rate["device"]), None)
        if row is None:
            raise SpecError(f"{FITTED.name}: there is no device {rate['device']} in {FILE.name}.")
        row.setdefault("format_rates", []).append({key: rate[key] for key in rate if key != "device"})
    by_name = {row["name"]: row for row in rows}
    for name, other in same_chips().items():
        by_name[name]["format_rates"] = by_name[other]["format_rates"]
    return tuple(_by_name(rows, FILE.name).values())


def _by_name(rows: list[dict[str, Any]], where: str) -> dict[str, DevicePreset]:
    found: dict[str, DevicePreset] = {}
    for index, row in enumerate(rows):
        device = DeviceSpec.parse(row, f"{where}, device[{index}]")
        if device.name in found:
            raise SpecError(f"{where}: the preset {device.name} is there twice: names must differ.")
        found[device.name] = device
    return found


def preset(name: str) -> DevicePreset:
    """The preset of a device. Raises `SpecError`, which names the known ones."""
    for device in presets():
        if device.name == name:
            return device
    known = ", ".join(device.name for device in presets())
    raise SpecError(f"no device preset {name}: there are {known}.", fields=[("preset", f"unknown: {name}")])
