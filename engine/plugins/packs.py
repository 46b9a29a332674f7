"""Packs of data: files that installed packages bring. No code of such a package is imported.

    devices.toml      device presets: [[device]] tables, as in a cluster file
    clusters/*.toml   clusters by the name of their file
    traces/*          rates of a link over time, in any format that `--scenario` reads
    models.toml       models: [[model]] tables with the `config` of a config.json

A package declares a pack by an entry point of the group `edgeloom.data`, whose value is the package or folder
of a package that has the files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from engine.domain.errors import SpecError
from engine.plugins.installed import (
    DATA,
    Installed,
    Kind,
    Unusable,
    check_free,
    installed,
    package_of,
    place_of,
)

T = TypeVar("T")


class Pack(NamedTuple):
    name: str
    package: str
    version: str
    folder: Path


@cache
def packs() -> Installed[Pack]:
    """The installed packs that are active, and what is wrong with the others of these."""
    return installed(DATA, (), _pack)


def installed_packs() -> tuple[str, ...]:
    """Package and version of every pack that this process uses."""
    return tuple(f"{pack.package} {pack.version}" for pack in packs().rows.values())


def _pack(point: EntryPoint, where: str) -> Pack:
    top, *below = point.module.split(".")
    place = place_of(top)
    if place is None or not (folder := place.joinpath(*below)).is_dir():
        raise SpecError(f"{where}: there is no folder {point.module}: name a package that has the files.")
    return Pack(point.name, *package_of(point), folder)


def of_packs(kind: Kind, taken: Collection[str], read: Callable[[Path], Mapping[str, T]]) -> Installed[T]:
    """What `read` finds in the folders of all packs, by name. A pack adds nothing of this kind if something
    is wrong with it (`SpecError`) or a name is taken.
    """
    rows: dict[str, T] = {}
    unusable = []
    for pack in packs().rows.values():
        try:
            found = read(pack.folder)
            for name in found:
                check_free(name, {*taken, *rows}, kind, f"{kind.name} {name}")
        except SpecError as error:
            reason = f"{DATA.name} {pack.name} of the package {pack.package}: {error}"
            unusable.append(Unusable(pack.name, pack.package, reason))
        else:
            rows |= found
    return Installed(rows, tuple(unusable))


def tables(folder: Path, file: str, key: str) -> list[dict[str, Any]]:
    """The tables `key` of a file of a pack, none where it has no such file. Raises `SpecError`."""
    path = folder / file
    if not path.exists():
        return []
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{path}: is no TOML that can be read: {error}.") from error
    rows = found.get(key)
    if set(found) != {key} or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SpecError(f"{path}: expected [[{key}]] tables and nothing else.")
    return rows
