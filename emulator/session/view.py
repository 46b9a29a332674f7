"""What a session sees of this machine's files: its program, its model, its cache, and no secrets.

Everything is read-only but the cache, which no other process loads code from. The server's state (database,
keys, passwords), homes and directories of temporary files, with the sockets in them, are covered, and only
what the session needs below is shown. Started as root, a session is nobody (`emulator/host/rights.py`): a
directory that others may not pass is covered, too.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from emulator.host.enter import MEMORY, Room, View
from emulator.host.rights import identity, rights
from engine.domain.cache_directory import cache_directory
from engine.domain.state_directory import default_state_directory

ROOT = Path(__file__).resolve().parents[2]
STATE_VARIABLE = "LOOM_STATE_DIR"
"""The variable that moves the directory where the server keeps its database and its keys."""

SESSION_CODE = ("edgeloom", "emulator", "engine", "topologies")
"""What a session imports of this checkout; `edgeloom` is what methods from outside import."""

OTHER_CODE = ("webapp", "tests")  # trials and tests have sessions of their own
CODE = tuple(ROOT / name for name in (*SESSION_CODE, *OTHER_CODE))
"""What is shown as the session's own: it may have been compiled for its owner only. Other files of a checkout
may hold secrets.
"""

PYTHON = (Path(sys.prefix), Path(sys.base_prefix))

SHARED = tuple(map(Path, ("/home", "/root", "/tmp", "/var/tmp", "/mnt", "/media")))
"""Where people and their programs keep files and sockets."""

OTHERS = stat.S_IROTH | stat.S_IXOTH


def session_cache() -> Path:
    """What sessions have instead of this user's cache directory, and may write."""
    cache, own = cache_directory() / "emulation" / "edgeloom", identity()
    cache.mkdir(parents=True, exist_ok=True)
    if own is not None:
        os.chown(cache, own, own)
    return cache


def room_of(
    cores: Iterable[int],
    group: Path | None,
    reads: Iterable[Path],
    writes: Iterable[Path],
    own_network: bool = True,
) -> Room:
    """The room of a session of this process: `reads` and `writes` are what it needs besides its program."""
    own_users = rights().kind == "own"
    own = identity() if own_users else None
    written = {path.resolve() for path in writes}
    python = {each for path in PYTHON for each in (path.absolute(), path.resolve())}
    models = {each for path in reads for each in with_targets(path)}
    needed = {path for path in {*CODE, *python, *models, *written, *imported_paths()} if path.exists()}
    covered = {*map(Path, MEMORY), *SHARED, *homes(), default_state_directory()}
    covered |= {Path(os.environ[STATE_VARIABLE])} if os.environ.get(STATE_VARIABLE) else set()
    if own is not None:
        covered |= {closed for path in needed if (closed := first_closed(path)) is not None}
    covered = {path.resolve() for path in covered if path.is_dir()}
    needed = {part for path in needed for part in (modules_in(path) if path in covered else (path,))}
    views: dict[Path, View] = {}
    for path in sorted(needed, key=lambda path: len(path.parts)):
        is_foreign = path in written | set(CODE) or (
            path in python | models and is_closed(path, path in models)
        )
        owner = owner_of(path) if own is not None and is_foreign else None
        if path in written or owner is not None or not is_seen(path, covered, views):
            views[path] = View(str(path), path in written, owner)
    return Room(
        os.getpid(),
        own,
        own_users,
        "" if group is None else str(group),
        tuple(sorted(cores)),
        tuple(map(str, sorted(covered))),
        tuple(views.values()),
        own_network,
    )


def homes() -> set[Path]:
    """The home directory of this user, by the environment and by the list of users: only if it is the user's
    own, as that of a system's user may be /usr/sbin, and never / itself.
    """
    named = [os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a user without a name, as in a container
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    found = {Path(home).resolve() for home in named if home and Path(home).is_dir()}
    return {home for home in found if home.stat().st_uid == os.getuid() and home != Path("/")}


def modules_in(directory: Path) -> list[Path]:
    """The Python modules in a directory that is covered itself: somebody keeps a method in his home."""
    return [path for path in directory.glob("*.py") if path.is_file()]


def is_seen(path: Path, covered: Iterable[Path], views: Iterable[Path]) -> bool:
    """Whether `path` can be seen without a view of its own."""
    above, shown = nearest(path, covered), nearest(path, views)
    return above is None or (shown is not None and above in shown.parents)


def imported_paths() -> set[Path]:
    """The directories that this process imports from, and loads libraries from."""
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    paths = [Path(path) for path in (*sys.path, *libraries) if path]
    return {each for path in paths for each in (path.absolute(), path.resolve())}


def with_targets(directory: Path) -> list[Path]:
    """A directory, and the files to which links in it lead: nothing else of where these are."""
    entries = directory.iterdir() if directory.is_dir() else ()
    targets = {entry.resolve() for entry in entries if entry.is_symlink() and entry.is_file()}
    return [directory.absolute(), directory.resolve(), *targets]


def nearest(path: Path, among: Iterable[Path]) -> Path | None:
    """The lowest of these paths that is a directory above `path`, or None."""
    return max(
        (each for each in among if each in path.parents), key=lambda each: len(each.parts), default=None
    )


def first_closed(path: Path) -> Path | None:
    """The first directory on the way to `path` that others may not pass, or None."""
    above = [*path.parents][-2::-1]
    return next((each for each in above if each.is_dir() and not each.stat().st_mode & stat.S_IXOTH), None)


def is_closed(path: Path, files: bool) -> bool:
    """Whether others may not read this file, or this directory, or (`files`) a file in it."""
    needed = OTHERS if path.is_dir() else stat.S_IROTH
    if path.stat().st_mode & needed != needed:
        return True
    inside = path.iterdir() if files and path.is_dir() else ()
    return any(entry.is_file() and not entry.stat().st_mode & stat.S_IROTH for entry in inside)


def owner_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid
