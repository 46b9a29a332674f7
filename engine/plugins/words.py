"""What code from outside raises, in words with its own file and line."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.domain.command_name import IS_CHECKOUT
from engine.domain.errors import EdgeLoomError

OURS = ("engine", "emulator", "edgeloom", "webapp") if IS_CHECKOUT else ("edgeloom",)
"""Top-level packages of EdgeLoom: a checkout has several, the wheel has one."""

INSTALLED_IN = {"site-packages", "dist-packages"}

LIMITS = {
    "MemoryError": "it needs more memory than its process may have",
    "SoftTimeLimitExceeded": "it takes longer than it may",
}
"""What errors mean that a process gets from its limits; the second is Celery's."""


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS


@contextmanager
def told(where: str, place: Path | None, kind: type[EdgeLoomError]) -> Iterator[None]:
    """Inside the block, what the code of `place` raises becomes a sentence of `kind` that begins with
    `where`; errors that are sentences stay.
    """
    try:
        yield
    except EdgeLoomError:
        raise
    except (Exception, SystemExit) as error:
        raise kind(f"{where}: {words_of(error, place)}.") from error


def words_of(error: BaseException, place: Path | None = None) -> str:
    """An exception in words: its type, what it says, and the line that raised it, of the code in `place` (or
    of any that is not EdgeLoom's).
    """
    said = LIMITS.get(type(error).__name__) or " ".join(str(error).split()).rstrip(".")
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    foreign = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith("<frozen")
        and not is_ours(str(frame.f_globals.get("__name__")))
    ]
    own = [(file, line) for file, line in foreign if place is not None and _is_of(Path(file), place)]
    last = (own or foreign)[-1:]
    return f"{text} ({last[0][0]}, line {last[0][1]})" if last else text


def _is_of(file: Path, place: Path) -> bool:
    """Whether it is code of `place`, and none that is installed below it, as in a folder that has its own
    environment.
    """
    return file.is_relative_to(place) and INSTALLED_IN.isdisjoint(file.relative_to(place).parts)
