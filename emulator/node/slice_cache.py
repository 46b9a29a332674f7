"""Slices of weights that servers have sent to this board, by their digest: kept within a limit of bytes.

What a transfer that was cut off has brought is gone on with. Every use checks the digest again.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.domain.cache_directory import cache_directory
from engine.domain.errors import RunError
from engine.domain.units import human

Ask = Callable[[str, int], str]
"""The next bytes of the file of a digest from a position on, in base64."""

READ_BYTES = 1 << 20


def folder() -> Path:
    return cache_directory() / "slices"


class SliceCache:
    def __init__(self, most_bytes: int, say: Callable[[str], None]):
        self.most_bytes, self.say = most_bytes, say
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)

    def fetch(self, files: Sequence[tuple[str, int]], ask: Ask) -> list[Path]:
        """The files of these (digest, size): those that are not here come from the server. Raises
        `RunError`.
        """
        needed, kept = sum(size for _, size in files), {_path(digest) for digest, _ in files}
        if needed > self.most_bytes:
            raise RunError(
                f"The slices of this plan take {human(needed, 'B')}, and this board keeps at most "
                f"{human(self.most_bytes, 'B')}: --cache-gb allows more."
            )
        absent = [(digest, size) for digest, size in files if not _is_whole(_path(digest), digest)]
        coming = sum(size for _, size in absent)
        self._make_room(coming, kept)
        try:
            for number, (digest, size) in enumerate(absent, 1):
                of = f"slice {number} of {len(absent)}, {human(size, 'B')}"
                self.say(f"It fetches {of}; {len(files) - len(absent)} were here.")
                self._bring(digest, size, ask)
        except OSError as error:
            full = error.errno == errno.ENOSPC
            why = "its disk is full" if full else str(error)
            raise RunError(f"This board cannot keep the slices of the plan: {why}.") from error
        for path in kept:
            path.touch()
        return [_path(digest) for digest, _ in files]

    def _bring(self, digest: str, size: int, ask: Ask) -> None:
        path = _path(digest)
        part = path.with_suffix(".part")
        with part.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another node of this user may fetch it, too
            if _is_whole(path, digest):
                return
            at = min(file.tell(), part.stat().st_size)
            while at < size:
                piece = base64.b64decode(ask(digest, at), validate=True)
                if not piece or at + len(piece) > size:
                    break
                file.write(piece)
                at += len(piece)
            file.flush()
            if not _is_whole(part, digest):
                part.unlink()
                raise RunError(
                    f"The weights that came for the slice {digest[:12]} have another digest: they were "
                    "changed on their way or on the server; start the run again."
                )
            part.rename(path)

    def _make_room(self, coming: int, kept: set[Path]) -> None:
        """Remove what was not used for longest."""
        files = sorted(folder().glob("*.safetensors"), key=lambda path: path.stat().st_mtime_ns)
        total = sum(path.stat().st_size for path in files) + coming
        for path in files:
            if total > self.most_bytes and path not in kept:
                total -= path.stat().st_size
                path.unlink()


def _path(digest: str) -> Path:
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise RunError(f"{digest[:20]!r} is no digest of a slice.")
    return folder() / f"{digest}.safetensors"


def _is_whole(path: Path, digest: str) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest
