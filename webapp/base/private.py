"""Keeps what the server stores from other users of the machine. It needs nothing but Python, for `./loom up`.

Whoever reads the database acts as anybody whose session or password hash stands in it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.domain.errors import HostError

OTHERS = 0o077
"""The rights of the group and of everybody else."""

PROBE_BYTES = 2**20
"""What `check_writable` writes: less is no state directory."""


def close(directory: Path) -> None:
    """Make `directory`, its files and its logs readable for their owner only, and what this process makes.

    Says on standard error if others could read it until now. Raises `HostError` if it is no directory of
    this user's.
    """
    with _usable(directory):
        _close(directory)


def check_writable(directory: Path) -> None:
    """Check that the directory takes files: its file system may be read-only or full. Raises `HostError`."""
    with _usable(directory), tempfile.TemporaryFile(dir=directory) as probe:
        probe.write(bytes(PROBE_BYTES))


@contextmanager
def _usable(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostError(
            f"{directory} cannot be the state directory: {error.strerror or error}. It must be a directory "
            f"that this user can write, with more than {PROBE_BYTES >> 20} MB free: make room, or set "
            "LOOM_STATE_DIR to another one."
        ) from error


def _close(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory.stat().st_uid != os.geteuid():
        return  # its owner has closed it: the root worker of docker-compose.yml leaves files for the others
    os.umask(OTHERS)
    if _is_open(directory) and any(directory.iterdir()):
        sys.stderr.write(
            f"{directory} was open to other users of this machine, who may have read password hashes and "
            "sessions there: it is closed now, so change the passwords.\n"
        )
    for path in (directory, *directory.iterdir(), *directory.glob("logs/*")):
        if _is_open(path):
            path.chmod(path.stat().st_mode & ~OTHERS)


@contextmanager
def not_for_secrets() -> Iterator[None]:
    """Others may read what this process makes meanwhile: emulations that root starts run without its rights,
    with the packages that are installed here.
    """
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def _is_open(path: Path) -> bool:
    """Whether others may read a file; False also for one that another process has just removed, and for a
    link.
    """
    return not path.is_symlink() and path.exists() and bool(path.stat().st_mode & OTHERS)
