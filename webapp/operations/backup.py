"""One file with everything that a server keeps: database, models that people added, calibrated machines.

A backup is a compressed tar: `backup.json` (what it is), `data/APP.MODEL.jsonl` (one row a line, the same for
SQLite and PostgreSQL), `models/DIGEST/…`, `machines/…`. Sessions, wrong log-ins and the secret key are left
out: people log in again.
"""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.core import serializers
from django.core.management import call_command
from django.core.management.color import no_style
from django.core.serializers.base import DeserializationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError, connection, models, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from engine.domain.command_name import COMMAND
from engine.domain.errors import HostError, SpecError
from engine.models.weights.manifest import manifest_of
from webapp.base.redis import REDIS_ERRORS, client, why_away
from webapp.base.up_lock import holder
from webapp.clusters.models import StoredModel
from webapp.clusters.store import store
from webapp.jobs.announcement import announced
from webapp.jobs.models import Release
from webapp.jobs.release import code_version

FORMAT = 1
ABOUT = "backup.json"
LEFT_OUT = ("sessions", "admin", "axes", "contenttypes")
CHUNK_ROWS = 100
logger = logging.getLogger(__name__)

Model = type[models.Model]


def tables() -> list[Model]:
    """The models whose rows are kept, those that others refer to first."""
    configs = [config for config in apps.get_app_configs() if config.label not in LEFT_OUT]
    chosen = [(config, None) for config in configs]
    sortable: Any = serializers.sort_dependencies
    ordered: list[Model] = sortable(chosen, allow_cycles=True)
    kept = [model for model in ordered if model._meta.label != "auth.Permission" and model is not Release]
    return [model for model in kept if not model._meta.proxy and model._meta.managed]


# Backup -------------------------------------------------------------------------------------------
def backup(target: Path) -> dict[str, int]:
    """Write the file, which must not exist yet; returns rows per table. Raises `SpecError`, `HostError`."""
    if target.exists():
        raise SpecError(f"{target} exists: name a new file, so that no backup is overwritten by accident.")
    draft = target.with_name(f"{target.name}.part")
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            open(draft, "xb", opener=_private) as file,
            tarfile.open(fileobj=file, mode="w:gz", compresslevel=3) as archive,
        ):
            rows = _dump(Path(folder), archive)
            _add_models(archive)
            for path in sorted(settings.MACHINES_DIR.glob("*.json")):
                archive.add(path, f"machines/{path.name}")
        draft.rename(target)
    except OSError as error:
        raise HostError(f"{target} was not written: {error}.") from error
    finally:
        with suppress(OSError):  # there is no such directory
            draft.unlink(missing_ok=True)
    return rows


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


def _dump(folder: Path, archive: tarfile.TarFile) -> dict[str, int]:
    """All rows as they are at one moment: SQLite lets writers wait, PostgreSQL shows one state."""
    rows = {}
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for model in tables():
            path = folder / "rows.jsonl"
            with path.open("w", encoding="utf-8") as lines:
                rows[model._meta.label] = _write_rows(model, lines)
            archive.add(path, f"data/{model._meta.label_lower}.jsonl")
        about = {
            "format": FORMAT,
            "version": code_version(),
            "made": timezone.now().isoformat(),
            "migrations": applied(),
            "rows": rows,
        }
    _add_text(archive, ABOUT, json.dumps(about, indent=1))
    return rows


class ExactTimes(DjangoJSONEncoder):
    """Encodes times with their microseconds, which Django's encoder cuts."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if isinstance(o, datetime) else super().default(o)


def _write_rows(model: Model, lines: IO[str]) -> int:
    count = 0
    found = model._base_manager.order_by("pk").iterator(chunk_size=CHUNK_ROWS)
    for row in found:
        text = serializers.serialize("json", [row], cls=ExactTimes, use_natural_foreign_keys=True)
        lines.write(text[1:-1] + "\n")
        count += 1
    return count


def _add_models(archive: tarfile.TarFile) -> None:
    source = store()
    for digest in StoredModel.objects.values_list("digest", flat=True).distinct():
        manifest = source.manifest(digest)
        for name, facts in manifest.files.items():
            entry = tarfile.TarInfo(f"models/{digest}/{name}")
            entry.size = facts.bytes
            with source.fs.open(source.path(digest, name), "rb") as content:
                archive.addfile(entry, content)


def _add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(text.encode())
    archive.addfile(entry, io.BytesIO(text.encode()))


def applied() -> list[str]:
    """The migrations of this database."""
    done = MigrationRecorder(connection).applied_migrations()
    return sorted(f"{app}.{name}" for app, name in done)


# Restore ------------------------------------------------------------------------------------------
def restore(source: Path, replace: bool) -> dict[str, int]:
    """Fill an empty database, or with `replace` any, from a backup; returns rows per table.

    A backup of an earlier release gets the defaults of newer columns. Raises `SpecError` for a file that is
    no backup, or is of a newer release, and if there is data; `HostError` while workers run.
    """
    _refuse_while_workers_run()
    try:
        with tarfile.open(source, "r:gz") as archive, tempfile.TemporaryDirectory() as folder:
            _unpack(archive, Path(folder))
            return _restore(source, Path(folder), replace)
    except (tarfile.TarError, zlib.error, OSError, EOFError, DeserializationError, DatabaseError) as error:
        raise SpecError(f"{source} cannot be read as a backup: {error}.") from error


def _unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files of `archive` below `folder`; raises `TarError` for links, devices and places elsewhere.

    `extractall` has a filter for that from Python 3.11.4 on; Debian 12 has 3.11.2.
    """
    for entry in archive:
        if entry.isdir():
            continue
        place = PurePosixPath(entry.name)
        content = archive.extractfile(entry) if entry.isfile() else None
        if content is None or place.is_absolute() or ".." in place.parts:
            raise tarfile.TarError(f"{entry.name!r} is no file of a backup")
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, target.open("wb") as written:
            shutil.copyfileobj(content, written)


def _restore(source: Path, folder: Path, replace: bool) -> dict[str, int]:
    about = _about(source, folder)
    call_command("migrate", interactive=False, verbosity=0)
    unknown = sorted(set(about["migrations"]) - set(applied()))
    if unknown:
        raise SpecError(f"{source} is of a newer release: it has {unknown[0]}, unknown here: update first.")
    if User.objects.exists() and not replace:
        raise SpecError(
            f"The database has data already: {COMMAND} restore FILE --replace deletes all of it and "
            "restores the backup in its place."
        )
    if User.objects.exists() and (running := holder(settings.STATE_DIR)):  # its Redis only it can ask
        raise HostError(f"EdgeLoom runs here ({running}): stop it and every worker, then restore.")
    for place in sorted((folder / "models").glob("*")):
        if manifest_of(place).digest != place.name:
            raise SpecError(f"{source}: the model {place.name[:12]} is not what its digest says.")
        store().add(place)
    with transaction.atomic(), connection.constraint_checks_disabled():
        for model in reversed(tables()):
            model._base_manager.all().delete()
        rows = {model._meta.label: _read_rows(model, folder) for model in tables()}
        for table, count in rows.items():
            wanted = about["rows"].get(table, 0)  # none of a table that the backup's release did not have
            if count != wanted:
                raise SpecError(f"{source} is damaged: it has {count} rows of {table}, expected {wanted}.")
        connection.check_constraints()
    _reset_sequences()
    _forget_events_in_redis()
    settings.MACHINES_DIR.mkdir(parents=True, exist_ok=True)
    for path in (folder / "machines").glob("*.json"):
        shutil.copy(path, settings.MACHINES_DIR / path.name)
    return rows


def _about(source: Path, folder: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        known = about["format"] == FORMAT
        if not (isinstance(about["migrations"], list) and isinstance(about["rows"], dict)):
            raise ValueError("no lists of migrations and rows")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecError(f"{source} has no readable {ABOUT}: it is no backup of EdgeLoom.") from error
    if not known:
        raise SpecError(f"{source} has the format {about['format']}, expected {FORMAT}: update first.")
    return about


def _read_rows(model: Model, folder: Path) -> int:
    count = 0
    for line in _lines(folder / "data" / f"{model._meta.label_lower}.jsonl"):
        for row in serializers.deserialize("json", f"[{line}]", ignorenonexistent=True):
            row.save()
            count += 1
    return count


def _lines(path: Path) -> Iterator[str]:
    """The lines of a table; None if the release of the backup did not have it."""
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from (line for line in lines if line.strip())


def _reset_sequences() -> None:
    """Let PostgreSQL number on after the restored rows."""
    statements = connection.ops.sequence_reset_sql(no_style(), tables())
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _forget_events_in_redis() -> None:
    """Remove the events in Redis: they are of a time after the backup, and runs that are numbered anew would
    show them as theirs.
    """
    try:
        for pattern in ("run:*", "ctl:*"):
            for key in client().scan_iter(match=pattern, count=1000):
                client().delete(key)
    except REDIS_ERRORS as error:
        logger.warning("Redis %s: delete its keys run:* and ctl:* before runs start.", why_away(error))


def _refuse_while_workers_run() -> None:
    try:
        names = [one.node for one in announced()]
    except REDIS_ERRORS:
        return  # nobody can work without Redis
    if names:
        raise HostError(
            f"Workers run ({', '.join(names)}): stop {COMMAND} up and every worker, then restore."
        )
