"""Results in a folder, as JSON lines by digest, shared by any number of experiments and processes.

A result is one line, written with one call to a file opened for appending, so that lines of several processes
do not mix. A process that dies while writing leaves at most a torn last line, which reading passes over and
the next writer ends. Of several results with one digest and world the last one counts.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path

from engine.domain.errors import HostError, SpecError
from engine.experiments.results.rows import Key, Result

FOLDER = "points"
DIGITS = 2
"""Leading digits of the digest that name the file of a result."""


class Store:
    """The results below `folder`, which is made when the first one is written."""

    def __init__(self, folder: Path):
        self.folder = folder / FOLDER

    def add(self, result: Result) -> None:
        """Store a result: it is on disk when this returns. Raises `HostError` if it cannot be written."""
        line = (result.model_dump_json(exclude_defaults=True) + "\n").encode()
        path = self.folder / f"{result.digest[:DIGITS]}.jsonl"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write((b"" if _ends_with_a_line(file.fileno()) else b"\n") + line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise HostError(f"{path}: cannot write a result: {error.strerror}.") from error

    def read(self, digests: Iterable[str]) -> dict[Key, Result]:
        """The last result of every digest, by digest and world."""
        wanted = set(digests)
        found: dict[Key, Result] = {}
        for name in sorted({digest[:DIGITS] for digest in wanted if digest}):
            path = self.folder / f"{name}.jsonl"
            if path.is_file():
                for result in _results_in(path):
                    if result.digest in wanted:
                        found[result.key] = result
        return found


def _ends_with_a_line(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"


def _results_in(path: Path) -> list[Result]:
    """Every complete line; what is no result (a torn line, one of a newer version) is passed over."""
    found = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise HostError(f"{path}: cannot read results: {error.strerror}.") from error
    for line in lines:
        try:
            found.append(Result.parse(json.loads(line), path.name))
        except (ValueError, SpecError):
            continue
    return found
