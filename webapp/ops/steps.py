"""A step of set-up: a command, and the files that decide whether it must run again."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webapp.ops.places import ROOT, SETUP_DIR, OpsError, echo, shown

PROGRESS_EVERY_S = 15.0


@dataclass(frozen=True)
class Step:
    """Done when `outputs` exist and `stamp` holds the fingerprint of the inputs and the command.

    The stamp is written last: a step that was interrupted runs again.
    """

    title: str
    command: tuple[str, ...]
    stamp: Path
    inputs: tuple[Path, ...] = ()
    outputs: tuple[Path, ...] = ()
    directory: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return SETUP_DIR / "logs" / f"{self.title.lower().replace(' ', '-')}.log"

    def fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.command).encode())
        for path in files_of(self.inputs):
            digest.update(str(path).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()

    def is_done(self) -> bool:
        if not self.stamp.exists() or not all(path.exists() for path in self.outputs):
            return False
        return self.stamp.read_text() == self.fingerprint()

    def do(self) -> None:
        """Run the command, then stamp; raises `OpsError` naming the log."""
        run_logged(self.title, self.command, self.log, self.directory, self.environment)
        missing = [shown(path) for path in self.outputs if not path.exists()]
        if missing:
            raise OpsError(f"{self.title} ended well but left no {missing[0]}: read {shown(self.log)}.")
        self.stamp.parent.mkdir(parents=True, exist_ok=True)
        self.stamp.write_text(self.fingerprint())


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


def run_logged(
    title: str,
    command: tuple[str, ...],
    log: Path,
    directory: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a command with its output in `log`, and print now and then that it is still running."""
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    echo(f"{title} …")
    with log.open("wb") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            process = subprocess.Popen(
                command,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
            )
        except OSError as error:
            raise OpsError(f"{title}: {command[0]} cannot be started: {error.strerror}.") from error
        try:
            status = _wait(process, title, log, begin)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if status:
        raise OpsError(
            f"{title} failed ({command[0]} ended with status {status}): the last line is "
            f"{last_line(log)!r}; read {shown(log)}, then run the same command again: it goes on from here."
        )
    echo(f"{title}: done in {time.monotonic() - begin:.0f} s.")


def _wait(process: subprocess.Popen[bytes], title: str, log: Path, begin: float) -> int:
    while True:
        try:
            return process.wait(timeout=PROGRESS_EVERY_S)
        except subprocess.TimeoutExpired:
            echo(f"{title} … {time.monotonic() - begin:.0f} s: {last_line(log)[:90]}")


def last_line(log: Path) -> str:
    """The last line of a log that is not empty."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "(nothing)"
