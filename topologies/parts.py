"""Presets of links and disks: rows of `links.toml` and `disks.toml`, each with its source.

A link's rates are what TCP gets, from the device to the switch, access point or network (a→b) and back.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import Field, model_validator

from engine.domain.errors import SpecError
from engine.domain.links import LinkSpec
from engine.domain.values import Fraction, Name, NonNegative, Positive, Value

LINKS = Path(__file__).with_name("links.toml")
DISKS = Path(__file__).with_name("disks.toml")

Row = TypeVar("Row", "LinkPreset", "DiskPreset")


class LinkPreset(Value):
    """A kind of link with measured rates. `nominal_bit_per_s` is what its name promises."""

    name: Name
    title: str = Field(min_length=1)
    nominal_bit_per_s: Positive
    bit_per_s: Positive = Field(description="Rate from the device, bit/s.")
    reverse_bit_per_s: Positive | None = Field(
        default=None, description="Rate to the device, bit/s; empty: the same."
    )
    delay_s: NonNegative = Field(description="One-way delay of this link, s.")
    jitter_s: NonNegative = 0.0
    loss_frac: Fraction = 0.0
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _below_nominal(self) -> LinkPreset:
        fastest = max(self.bit_per_s, self.reverse_bit_per_s or 0.0)
        if fastest >= self.nominal_bit_per_s:
            raise ValueError(
                f"the rate {fastest:g} bit/s is not below the nominal {self.nominal_bit_per_s:g} bit/s: "
                "give what TCP gets through it"
            )
        return self

    def between(self, a: str, b: str) -> LinkSpec:
        """The link from node `a`, the device, to node `b`."""
        return LinkSpec(a=a, b=b, **self.model_dump(exclude={"name", "title", "nominal_bit_per_s", "source"}))


class DiskPreset(Value):
    """A kind of disk with the rate of reading a large file. `nominal_byte_per_s` is that of its bus."""

    name: Name
    title: str = Field(min_length=1)
    nominal_byte_per_s: Positive
    byte_per_s: Positive
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _below_nominal(self) -> DiskPreset:
        if self.byte_per_s >= self.nominal_byte_per_s:
            raise ValueError(
                f"the rate {self.byte_per_s:g} B/s is not below the {self.nominal_byte_per_s:g} B/s of its "
                "bus: give what is read"
            )
        return self


@cache
def link_presets() -> tuple[LinkPreset, ...]:
    """All kinds of links in the order of the file; raises `SpecError` if the file is wrong."""
    return _read(LINKS, "link", LinkPreset)


@cache
def disk_presets() -> tuple[DiskPreset, ...]:
    """All kinds of disks in the order of the file; raises `SpecError` if the file is wrong."""
    return _read(DISKS, "disk", DiskPreset)


def link_preset(name: str) -> LinkPreset:
    """The preset of a kind of link. Raises `SpecError`, which names the known ones."""
    for link in link_presets():
        if link.name == name:
            return link
    known = ", ".join(link.name for link in link_presets())
    raise SpecError(f"no link preset {name}: there are {known}.", fields=[("preset", f"unknown: {name}")])


def _read(file: Path, key: str, row: type[Row]) -> tuple[Row, ...]:
    tables = tomllib.loads(file.read_text(encoding="utf-8"))[key]
    found = tuple(row.parse(table, f"{file.name}, {key}[{index}]") for index, table in enumerate(tables))
    for name, count in Counter(each.name for each in found).items():
        if count > 1:
            raise SpecError(f"{file.name}: the preset {name} is there twice: names must differ.")
    return found
