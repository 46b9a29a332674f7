"""A step of set-up: a command, and the files that decide whether it must run again."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TextIO

from webapp.ops.places import ROOT, SETUP_DIR, OpsError, echo, shown

PROGRESS_EVERY_S = 10.0

Progress = Callable[[str], str]
"""Gives a few words on what a command does now, from its log so far; empty if nothing can be said."""


def no_words(log: str) -> str:
    return ""


@dataclass(frozen=True)
class Step:
    """A step of the set-up, done when `outputs` exist and `stamp` holds the fingerprint of the inputs and the
    command.

    The stamp is written last: a step that was interrupted runs again. `expects` says before it begins how
    much it will be: what is fetched, and how long that takes two quiet cores.
    """

    title: str
    command: tuple[str, ...]
    stamp: Path
    inputs: tuple[Path, ...] = ()
    outputs: tuple[Path, ...] = ()
    directory: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict)
    expects: str = ""
    progress: Progress = no_words

    @property
    def log(self) -> Path:
        return log_of(self.title)

    def fingerprint(self) -> str:
        return fingerprint_of(files_of(self.inputs), self.command)

    def is_done(self) -> bool:
        if not self.stamp.exists() or not all(path.exists() for path in self.outputs):
            return False
        return self.stamp.read_text() == self.fingerprint()

    def do(self) -> None:
        """Run the command, then stamp; raises `OpsError` naming the log."""
        run_logged(
            self.title, self.command, self.log, self.directory, self.environment, self.expects, self.progress
        )
        missing = [shown(path) for path in self.outputs if not path.exists()]
        if missing:
            raise OpsError(f"{self.title} ended well but left no {missing[0]}: read {shown(self.log)}.")
        self.stamp.parent.mkdir(parents=True, exist_ok=True)
        draft = self.stamp.with_name(f"{self.stamp.name}.new")
        draft.write_text(self.fingerprint())
        draft.replace(self.stamp)  # whole or not at all


def log_of(title: str) -> Path:
    return SETUP_DIR / "logs" / f"{title.lower().replace(' ', '-')}.log"


def fingerprint_of(files: Iterable[Path], words: Iterable[str] = ()) -> str:
    """A hash of the words, and of the names and contents of the files."""
    digest = hashlib.sha256("\0".join(words).encode())
    for path in files:
        digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def files_of(inputs: Iterable[Path]) -> list[Path]:
    """The files among the inputs and below the folders among them, in a stable order."""
    found: set[Path] = set()
    for path in inputs:
        found.update(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else found.add(path)
    return sorted(found)


def run_steps(steps: Iterable[Step]) -> bool:
    """Do the steps that are not done, in order; returns whether there was any."""
    worked = False
    for step in steps:
        if not step.is_done():
            step.do()
            worked = True
    return worked


class _Commands:
    """The commands that run now, in whichever thread, so that all of them can be ended at once."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen[bytes]] = set()
        self.ended = False
        self.inherited: tuple[int, ...] = ()
        self._changing = threading.Lock()

    def start(
        self, command: tuple[str, ...], directory: Path, environment: Mapping[str, str], output: BinaryIO
    ) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own: the terminal's Ctrl-C does not reach it, and all that it
        starts ends with it. It inherits the lock of the set-up: should this process be killed, the next one
        waits for it.
        """
        with self._changing:
            if self.ended:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                command,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
                pass_fds=self.inherited,
            )
            self.running.add(process)
            return process

    def end(self) -> None:
        """Tell all of them to end, and start no other."""
        with self._changing:
            self.ended = True
            for process in self.running:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)


COMMANDS = _Commands()


def open_lock(path: Path) -> TextIO:
    """A file to lock. Raises `OpsError` if it cannot be one."""
    try:
        return path.open("a+")
    except OSError as error:
        raise OpsError(
            f"{path} cannot be locked: {error.strerror}. It must be a file that this user can write: "
            "remove it."
        ) from error


@contextmanager
def only_one_set_up() -> Iterator[None]:
    """Hold the lock of this checkout's set-up."""
    SETUP_DIR.mkdir(parents=True, exist_ok=True)
    with open_lock(SETUP_DIR / "setup.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            echo("Waiting for another set-up of this checkout to end …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        COMMANDS.ended, COMMANDS.inherited = False, (lock.fileno(),)
        try:
            yield
        finally:
            COMMANDS.inherited = ()


def run_logged(
    title: str,
    command: tuple[str, ...],
    log: Path,
    directory: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    expects: str = "",
    progress: Progress = no_words,
) -> None:
    """Run a command with its output in `log`, and print now and then what it does."""
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    echo(f"{title}: {expects} …" if expects else f"{title} …")
    with log.open("wb") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            process = COMMANDS.start(command, directory, environment or {}, output)
        except OSError as error:
            raise OpsError(f"{title}: {command[0]} cannot be started: {error.strerror}.") from error
        try:
            status = _wait(process, title, log, begin, progress)
        finally:
            COMMANDS.running.discard(process)
    if COMMANDS.ended:
        raise KeyboardInterrupt
    if status:
        raise OpsError(
            f"{title} failed ({command[0]} ended with status {status}): the last line is "
            f"{last_line(log)!r}; read {shown(log)}, then run the same command again: it goes on from here."
        )
    echo(f"{title}: done in {time.monotonic() - begin:.0f} s.")


def _wait(process: subprocess.Popen[bytes], title: str, log: Path, begin: float, progress: Progress) -> int:
    while True:
        try:
            return process.wait(timeout=PROGRESS_EVERY_S)
        except subprocess.TimeoutExpired:
            words = progress(log.read_text(errors="replace"))
            echo(f"{title} … {time.monotonic() - begin:.0f} s{words and ': '}{words}")
        except BaseException:
            COMMANDS.end()
            process.wait()
            raise


def last_line(log: Path) -> str:
    """The last line of a log that is not empty."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "(nothing)"
