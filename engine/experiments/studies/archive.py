"""A study as one ZIP file. One that is read may be anybody's: names, kinds and sizes are checked before
anything of it is unpacked, and digests while it is.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from engine.domain.errors import HostError, SpecError
from engine.domain.units import human
from engine.experiments.studies.study import MANIFEST, NAME, Study
from engine.models.weights.manifest import StoredFile

TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest of a ZIP file: the same study is the same bytes."""

BLOCK = 1 << 20
Take = Callable[[str, bytes], object]
"""Gets the name of a file and its next block."""


class Limits(NamedTuple):
    """How much an archive may hold."""

    files: int = 20_000
    bytes: int = 2_000_000_000
    """Of all files together, as they are unpacked."""
    manifest_bytes: int = 16_000_000


OF_A_PERSON = Limits()
"""For who opens a study on a machine of their own."""


def write_archive(files: Mapping[str, bytes], target: IO[bytes]) -> None:
    """Write the files of a study, in their order."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


def read_archive(source: IO[bytes], where: str, take: Take, limits: Limits = OF_A_PERSON) -> Study:
    """Give every file of an archive to `take`, block by block, and check it against `study.json`. Raises
    `SpecError`; what `take` has got by then counts for nothing.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            entries = _checked(archive.infolist(), where, limits)
            study = _manifest(archive, entries, where, limits)
            _check_names(study, set(entries), where)
            for name, stored in study.files.items():
                _check_content(archive, entries[name], stored, where, take)
            take(MANIFEST, archive.read(entries[MANIFEST]))
            return study
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise SpecError(f"{where}: is no study: it is no ZIP file that can be read ({error}).") from error


def unpack(path: Path, folder: Path) -> Study:
    """Unpack an archive into `folder`, which is new or empty, all of it or nothing. Raises `SpecError`,
    `HostError`.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpecError(f"{folder}: is there already, and not empty: name another folder.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source, TemporaryDirectory(dir=folder.parent, prefix=".study-") as draft:

            def keep(name: str, block: bytes) -> None:
                target = Path(draft) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("ab") as file:
                    file.write(block)

            study = read_archive(source, path.name, keep)
            folder.mkdir(exist_ok=True)
            for part in Path(draft).iterdir():
                shutil.move(part, folder / part.name)
    except OSError as error:
        raise HostError(f"{error.filename or path}: {error.strerror}.") from error
    return study


def parse_manifest(text: bytes, where: str) -> Study:
    """The study that `study.json` describes. Raises `SpecError`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{where}, {MANIFEST}: no valid JSON: {error}.") from error
    if isinstance(data, dict) and isinstance(data.get("version"), int) and data["version"] > 1:
        raise SpecError(
            f"{where}: is a study of version {data['version']}, and this EdgeLoom reads version 1: update it."
        )
    study: Study = Study.parse(data, f"{where}, {MANIFEST}")
    return study


def _checked(listed: list[zipfile.ZipInfo], where: str, limits: Limits) -> dict[str, zipfile.ZipInfo]:
    """The entries by name, all of which are plain files with plain names."""
    if len(listed) > limits.files:
        raise SpecError(f"{where}: has {len(listed):,} files, and the limit is {limits.files:,}.")
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in listed:
        name, kind = entry.filename, stat.S_IFMT(entry.external_attr >> 16)
        if not NAME.fullmatch(name) or name != entry.orig_filename:
            raise SpecError(f"{where}: has a file called {name[:80]!r}, which no study has: do not open it.")
        if name in found:
            raise SpecError(f"{where}: has two files called {name}: do not open it.")
        if kind not in (0, stat.S_IFREG) or entry.flag_bits & 1:
            raise SpecError(f"{where}: {name} is a link, a device, or encrypted: a study has plain files.")
        found[name] = entry
    total = sum(entry.file_size for entry in listed)
    if total > limits.bytes:
        raise SpecError(
            f"{where}: unpacks to {human(total, 'B')}, and the limit is {human(limits.bytes, 'B')}."
        )
    return found


def _manifest(
    archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], where: str, limits: Limits
) -> Study:
    entry = entries.get(MANIFEST)
    if entry is None:
        raise SpecError(f"{where}: is no study: it has no {MANIFEST}.")
    if entry.file_size > limits.manifest_bytes:
        raise SpecError(f"{where}: {MANIFEST} has {entry.file_size:,} bytes: that is no study's.")
    return parse_manifest(archive.read(entry), where)


def _check_names(study: Study, names: set[str], where: str) -> None:
    if added := sorted(names - {MANIFEST, *study.files}):
        raise SpecError(f"{where}: {added[0]} is not in {MANIFEST}: somebody has added it.")
    if missing := sorted(set(study.files) - names):
        raise SpecError(f"{where}: {missing[0]} is missing: ask for the study again.")


def _check_content(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, stored: StoredFile, where: str, take: Take
) -> None:
    """A stream gives no more bytes than its entry says, which the limit has counted."""
    found = hashlib.sha256()
    take(entry.filename, b"")  # an empty file is one, too
    with archive.open(entry) as stream:
        while block := stream.read(BLOCK):
            found.update(block)
            take(entry.filename, block)
    if entry.file_size != stored.bytes or found.hexdigest() != stored.sha256:
        raise SpecError(
            f"{where}: {entry.filename} is not what {MANIFEST} says: it was changed, or damaged on its way."
        )
