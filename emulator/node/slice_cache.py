"""Slices of weights that servers have sent to this board, by their digest: kept within a limit of bytes.

What a transfer that was cut off has brought counts, and is gone on with. Who brings a slice has its part
locked. Every use checks the digest again.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from engine.domain.cache_directory import cache_directory
from engine.domain.errors import RunError
from engine.domain.units import human

Ask = Callable[[str, int], str]
"""The next bytes of the file of a digest from a position on, in base64."""

READ_BYTES = 1 << 20
MOST_CACHE_BYTES = 10_000_000_000
"""How many bytes of slices are kept, unless the node's owner says otherwise."""
LOOK_EVERY_S = 0.1
"""How often it looks whether another node has brought a slice."""


def why(error: OSError) -> str:
    """Why a file cannot be kept, in words."""
    return "its disk is full" if error.errno == errno.ENOSPC else str(error)


def folder() -> Path:
    return cache_directory() / "slices"


class SliceCache:
    """`meanwhile` is called again and again while files are read or another node brings them, which
    takes minutes for some.
    """

    def __init__(
        self, most_bytes: int, say: Callable[[str], None], meanwhile: Callable[[], None] = lambda: None
    ):
        self.most_bytes, self.say, self.meanwhile = most_bytes, say, meanwhile
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)

    def fetch(self, files: Sequence[tuple[str, int]], ask: Ask) -> list[Path]:
        """The files of these (digest, size): those that are not here come from the server. Raises
        `RunError`.
        """
        for _, size in files:
            if type(size) is not int or size < 0:
                raise RunError(f"The server says that a slice has {str(size)[:20]!r} bytes: no file has.")
        needed, kept = sum(size for _, size in files), {_path(digest) for digest, _ in files}
        if needed > self.most_bytes:
            raise RunError(
                f"The slices of this plan take {human(needed, 'B')}, and this board keeps at most "
                f"{human(self.most_bytes, 'B')}: --cache-gb allows more."
            )
        absent = [(digest, size) for digest, size in files if not self._is_whole(_path(digest), digest)]
        try:
            self._make_room(absent, kept)
            for number, (digest, size) in enumerate(absent, 1):
                of = f"slice {number} of {len(absent)}, {human(size, 'B')}"
                self.say(f"It fetches {of}; {len(files) - len(absent)} were here.")
                self._bring(digest, size, ask)
        except OSError as error:
            raise RunError(f"This board cannot keep the slices of the plan: {why(error)}.") from error
        for path in kept:
            path.touch()
        return [_path(digest) for digest, _ in files]

    def _bring(self, digest: str, size: int, ask: Ask) -> None:
        """Bring it, or wait until another node of this user has: who locks the part that is there does it."""
        path = _path(digest)
        part = _part(path)
        while True:
            with part.open("ab") as file:
                self._lock(file)
                is_there = _is_at(part, file)  # whoever had it locked may have brought or removed it
                if self._is_whole(path, digest):
                    if is_there:
                        part.unlink()
                    return
                if is_there:
                    self._append(file, digest, size, ask)
                    if not self._is_whole(part, digest):
                        part.unlink()
                        raise RunError(
                            f"The weights that came for the slice {digest[:12]} have another digest: they "
                            "were changed on their way or on the server; start the run again."
                        )
                    part.rename(path)
                    return

    def _lock(self, file: BinaryIO) -> None:
        """Lock it once no other node has it locked, which may take minutes."""
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.meanwhile()
                time.sleep(LOOK_EVERY_S)

    def _is_whole(self, path: Path, digest: str) -> bool:
        if not path.exists():
            return False
        found = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(READ_BYTES):
                found.update(piece)
                self.meanwhile()
        return found.hexdigest() == digest

    def _append(self, file: BinaryIO, digest: str, size: int, ask: Ask) -> None:
        at = file.seek(0, os.SEEK_END)
        while at < size:
            piece = base64.b64decode(ask(digest, at), validate=True)
            if not piece or at + len(piece) > size:
                break
            file.write(piece)
            at += len(piece)
        file.flush()

    def _make_room(self, absent: Sequence[tuple[str, int]], kept: set[Path]) -> None:
        """Remove what was not used for longest, but what another node is bringing."""
        there = {}
        for path in (*folder().glob("*.safetensors"), *folder().glob("*.part")):
            with suppress(FileNotFoundError):  # another node has removed it
                there[path] = path.stat()
        begun = {path: state.st_size for path, state in there.items()}
        coming = sum(max(0, size - begun.get(_part(_path(digest)), 0)) for digest, size in absent)
        total = sum(begun.values()) + coming
        for path in sorted(there, key=lambda path: there[path].st_mtime_ns):
            if total > self.most_bytes and path.with_suffix(".safetensors") not in kept and _is_removed(path):
                total -= begun[path]


def _path(digest: str) -> Path:
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise RunError(f"{digest[:20]!r} is no digest of a slice.")
    return folder() / f"{digest}.safetensors"


def _part(path: Path) -> Path:
    return path.with_suffix(".part")


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether an open file is the one that the path leads to."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    return False


def _is_removed(path: Path) -> bool:
    """Remove a file unless somebody has it locked; False if so."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if _is_at(path, file):
            path.unlink()
    return True
