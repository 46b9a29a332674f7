"""Models that people added: names in the database, contents in the store, copies on this machine.

A stored run names its model by digest, never by a path: each worker finds or fetches the directory itself.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError

from engine.domain.command_name import COMMAND
from engine.domain.errors import HostError, SpecError
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.units import human
from engine.models import catalogue
from engine.models.weights.manifest import manifest_of
from webapp.base.files import read_model
from webapp.clusters.models import StoredModel
from webapp.clusters.store import store

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
LISTED_EVERY_S = 10.0
USES: list[Callable[[datetime], Iterable[Any]]] = []
"""What other apps have used since a time, as documents that name the models in them."""

logger = logging.getLogger(__name__)


# What people do -----------------------------------------------------------------------------------
def add(directory: Path, name: str, by: str) -> StoredModel:
    """Check a Hugging Face directory and keep it under `name`. Raises `SpecError`, `HostError`."""
    check_name(name)
    spec = read_model(directory, name)
    check_room(directory)
    manifest = store().add(directory)
    row = {"digest": manifest.digest, "bytes": manifest.bytes, "spec": spec.model_dump(mode="json"), "by": by}
    try:
        return StoredModel.objects.create(name=name, **row)
    except IntegrityError:
        raise _taken(name) from None


def check_name(name: str) -> None:
    """Check that a model can be stored under `name`: well formed and not in use; raises `SpecError`."""
    if not NAME.fullmatch(name):
        raise SpecError(
            f"{name[:40]!r} is no name for a model: use at most 60 letters, digits, dots, dashes and "
            "underscores, the first a letter or digit.",
            [("name", "letters, digits, dots, dashes, underscores")],
        )
    if name in catalogue.names() or StoredModel.objects.filter(name=name).exists():
        raise _taken(name)


def check_room(directory: Path) -> None:
    """Check that `LOOM_MODELS_BYTES` leave room for the files in `directory`; raises `SpecError`."""
    kept = sum(dict(StoredModel.objects.values_list("digest", "bytes")).values())
    new = sum(path.stat().st_size for path in directory.iterdir() if path.is_file())
    if kept + new > settings.MODELS_BYTES:
        raise SpecError(
            f"The added models have {human(kept, 'B')}, this one {human(new, 'B')}, and the limit of all is "
            f"{human(settings.MODELS_BYTES, 'B')}: remove some, or set LOOM_MODELS_BYTES.",
            [("files", "no room")],
        )


def _taken(name: str) -> SpecError:
    return SpecError(f"There is a model {name} already: choose another name.", [("name", "in use")])


def remove(name: str) -> None:
    """Forget the name; the contents too once no name has them. Raises `SpecError`."""
    model = StoredModel.objects.filter(name=name).first()
    if model is None:
        raise SpecError(f"Nobody has added a model {name[:60]}: {COMMAND} models list shows all.")
    model.delete()
    if not StoredModel.objects.filter(digest=model.digest).exists():
        store().remove(model.digest)


# On this machine ----------------------------------------------------------------------------------
def directory_of(digest: str) -> Path:
    """The directory here of the model with this digest: known, fetched before, or fetched now. Verified.

    Raises `HostError` if it is nowhere, or was changed.
    """
    known = known_here().get(digest)
    if known is not None:
        return known
    copy = settings.MODEL_CACHE / digest
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        store().fetch(digest, copy)
    if manifest_of(copy).digest != digest:
        raise HostError(f"{copy} was changed after it had been fetched: delete this folder, and try again.")
    return copy


def known_here() -> dict[str, Path]:
    """The trained models of the catalogue and the directories in `MODELS_DIR`, by digest."""
    found = dict(_shipped())
    for config in sorted(settings.MODELS_DIR.glob("*/config.json")):
        try:
            found[manifest_of(config.parent).digest] = config.parent
        except SpecError as error:
            logger.warning("%s is of no use: %s", config.parent, error)
    return found


@lru_cache(maxsize=1)
def _shipped() -> tuple[tuple[str, Path], ...]:
    directories = (Path(catalogue.resolve(row.name)[1].directory) for row in catalogue.rows() if row.trained)
    return tuple((manifest_of(directory).digest, directory) for directory in directories)


def digest_of(directory: str) -> str:
    """The digest of the model in a directory. Raises `SpecError` for what is no model."""
    return manifest_of(Path(directory)).digest


class Reachable:
    """The digests that a worker has or can fetch, looked up every `LISTED_EVERY_S` at most."""

    def __init__(self) -> None:
        self.found: tuple[str, ...] = ()
        self.looked_s = 0.0

    def digests(self) -> tuple[str, ...]:
        """Digests of the models that can be had, without the store's while it does not answer."""
        if time.monotonic() - self.looked_s > LISTED_EVERY_S or not self.found:
            self.looked_s = time.monotonic()
            cached = {path.name for path in settings.MODEL_CACHE.glob("*") if len(path.name) == 64}
            self.found = tuple(sorted({*known_here(), *cached, *self._in_store()}))
        return self.found

    def _in_store(self) -> tuple[str, ...]:
        try:
            return store().digests()
        except (OSError, HostError) as error:
            logger.warning("the model store %s does not answer: %s", settings.MODEL_STORE, error)
            return ()


# Specs --------------------------------------------------------------------------------------------
def portable(weights: WeightsRef) -> WeightsRef:
    """`weights` with the digest of their directory in place of the path. Raises `SpecError`."""
    if not weights.directory:
        return weights
    return WeightsRef(kind=weights.kind, digest=weights.digest or digest_of(weights.directory))


def with_local_weights(spec: RunSpec) -> RunSpec:
    """The run with the directory on this machine in place of a digest. Raises `HostError`."""
    return spec.model_copy(
        update={"weights": local(spec.weights), "draft_weights": local(spec.draft_weights)}
    )


def local(weights: WeightsRef) -> WeightsRef:
    """`weights` with the directory on this machine besides the digest. Raises `HostError`."""
    if not weights.digest:
        return weights
    return weights.model_copy(update={"directory": str(directory_of(weights.digest))})


def without_place(report: RunReport) -> RunReport:
    """A report that says nothing of the paths of the machine that made it."""
    named = {
        name: weights.model_copy(update={"directory": ""})
        for name in ("weights", "draft_weights")
        if (weights := getattr(report.spec, name)).digest
    }
    return report.model_copy(update={"spec": report.spec.model_copy(update=named)}) if named else report
