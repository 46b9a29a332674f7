"""The rooms in rooms.toml as values: which folders and files belong to which, and what each may import.

part   a top-level folder such as `engine`, or the file `loom`
room   a folder or a few files inside a part
floor  0 for a room that imports no other room of its part, else one more than the highest that it imports
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("rooms.toml")


class Room(NamedTuple):
    """`paths` are folders and files, relative to the part's folder."""

    name: str
    text: str
    imports: tuple[str, ...]
    paths: tuple[str, ...]


class Part(NamedTuple):
    """`folder` is relative to the checkout. `doors` maps a file to one more part that it may import."""

    name: str
    title: str
    text: str
    folder: str
    imports: tuple[str, ...]
    doors: Mapping[str, str]
    rooms: tuple[Room, ...]


def read_parts(text: str | None = None) -> tuple[Part, ...]:
    """The parts of rooms.toml, or of `text`. Raises `ValueError` where they contradict themselves."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8") if text is None else text)["part"]
    parts = tuple(_part(row) for row in rows)
    _check_order("parts", parts)
    for part in parts:
        _check_order(part.name, part.rooms)
    return parts


def floors(rooms: Sequence[Room | Part]) -> dict[str, int]:
    """The floor of every room. The rooms must stand in an order in which each imports only earlier ones."""
    found: dict[str, int] = {}
    for room in rooms:
        found[room.name] = max((found[name] + 1 for name in room.imports), default=0)
    return found


def room_of(part: Part, path: str) -> str | None:
    """The room of a file; `path` is relative to the part's folder. None if no room has it."""
    for room in part.rooms:
        if any(path == own or path.startswith(own + "/") for own in room.paths):
            return room.name
    return None


def _part(row: Mapping[str, Any]) -> Part:
    return Part(
        name=row["name"],
        title=row["title"],
        text=row["text"],
        folder=row["folder"],
        imports=tuple(row["imports"]),
        doors=row.get("doors", {}),
        rooms=_rooms(row),
    )


def _rooms(row: Mapping[str, Any]) -> tuple[Room, ...]:
    if "rooms_file" not in row:
        return tuple(_room(room) for room in row.get("room", ()))
    listed = json.loads((ROOT / row["folder"] / row["rooms_file"]).read_text(encoding="utf-8"))["rooms"]
    return _by_folder(listed, row["folders"])


def _by_folder(listed: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> tuple[Room, ...]:
    """One room for all rooms of a list that lie in one folder: run/data and run/feed become run."""

    def folder(name: str) -> str:
        return name.partition("/")[0] or "main"

    about = {folder(room["name"]): room["about"] for room in listed} | dict(texts)
    imports: dict[str, dict[str, None]] = {name: {} for name in about}
    for room in listed:
        own = folder(room["name"])
        imports[own] |= {folder(name): None for name in room["imports"] if folder(name) != own}
    return tuple(Room(name, about[name], tuple(targets), (name,)) for name, targets in imports.items())


def _room(row: Mapping[str, Any]) -> Room:
    paths = tuple(row.get("paths", (row["name"],)))
    return Room(row["name"], row["text"], tuple(row["imports"]), paths)


def _check_order(where: str, rooms: Sequence[Room | Part]) -> None:
    earlier: set[str] = set()
    for room in rooms:
        unknown = set(room.imports) - earlier
        if unknown:
            raise ValueError(
                f"rooms.toml, {where}: {room.name} imports {', '.join(sorted(unknown))}, which does not "
                "stand before it: a room imports only earlier rooms."
            )
        earlier.add(room.name)
