"""The version of the code that results depend on: a hash of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ENGINE = Path(__file__).parents[2]
ROOMS = ("domain", "ops", "models", "program", "strategies", "worlds", "runs", "reports")
"""The rooms of the engine that make a run's numbers."""

ENDINGS = (".py", ".toml")
DIGITS = 12


@cache
def code_version() -> str:
    """Of what predictions depend on, 12 hexadecimal digits; of this process, so it is computed once."""
    return hash_of(ENGINE / room for room in ROOMS)


def hash_of(folders: Iterable[Path]) -> str:
    """Of the names and contents of all code and tables below `folders`."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS):
            found.update(f"{folder.name}/{path.relative_to(folder).as_posix()}\0".encode())
            found.update(path.read_bytes() + b"\0")
    return found.hexdigest()[:DIGITS]
