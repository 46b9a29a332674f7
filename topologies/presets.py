"""Device presets: rows of `devices.toml`, with the rates per format in `format_rates.toml`.

A preset is a `DeviceSpec` whose name is the preset's.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from engine.domain.cluster import DeviceSpec
from engine.domain.errors import SpecError

DevicePreset = DeviceSpec

FILE = Path(__file__).with_name("devices.toml")
FITTED = Path(__file__).with_name("format_rates.toml")


@cache
def presets() -> tuple[DevicePreset, ...]:
    """All presets in the order of the file; raises `SpecError` if the file is wrong."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["device"]
    fitted = tomllib.loads(FITTED.read_text(encoding="utf-8")).get("rate", [])
    for rate in fitted:
        row = next((row for row in rows if row["name"] == rate["device"]), None)
        if row is None:
            raise SpecError(f"{FITTED.name}: there is no device {rate['device']} in {FILE.name}.")
        row.setdefault("format_rates", []).append({key: rate[key] for key in rate if key != "device"})
    devices = tuple(DeviceSpec.parse(row, f"{FILE.name}, device[{index}]") for index, row in enumerate(rows))
    names = [device.name for device in devices]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"{FILE.name}: the preset {name} is there twice: names must differ.")
    return devices


def preset(name: str) -> DevicePreset:
    """The preset of a device. Raises `SpecError`, which names the known ones."""
    for device in presets():
        if device.name == name:
            return device
    known = ", ".join(device.name for device in presets())
    raise SpecError(f"no device preset {name}: there are {known}.", fields=[("preset", f"unknown: {name}")])
