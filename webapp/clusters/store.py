"""Model directories by what is in them: a shared store, and verified copies on the machine that needs one.

The digest of a model is that of its manifest: the names, lengths and SHA-256 sums of its files. The store is
a directory, or any place that fsspec reaches by a URL (`s3://bucket/folder` with s3fs). It holds
`DIGEST/manifest.json` and the files beside it.
"""

from __future__ import annotations

import shutil
import uuid
from functools import lru_cache
from pathlib import Path

import fsspec
from django.conf import settings

from engine.domain.errors import HostError
from engine.models.weights.manifest import Manifest, manifest_of, stored_file

MANIFEST = "manifest.json"


class Store:
    """The store at a URL or in a directory."""

    def __init__(self, url: str):
        self.url = url
        try:
            self.fs, self.root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise HostError(f"LOOM_MODEL_STORE is {url}, which cannot be opened: {error}.") from error

    def path(self, digest: str, name: str) -> str:
        return f"{self.root.rstrip('/')}/{digest}/{name}"

    def digests(self) -> tuple[str, ...]:
        """Digests of all complete models: the manifest is written last."""
        if not self.fs.exists(self.root):
            return ()
        self.fs.invalidate_cache()
        found = (entry.rstrip("/").rpartition("/")[2] for entry in self.fs.ls(self.root, detail=False))
        return tuple(sorted(name for name in found if self.fs.exists(self.path(name, MANIFEST))))

    def add(self, directory: Path) -> Manifest:
        """Copy the files of a checked model directory; nothing if they are there. Raises `SpecError`."""
        manifest = manifest_of(directory)
        digest = manifest.digest
        if not self.fs.exists(self.path(digest, MANIFEST)):
            self.fs.makedirs(f"{self.root}/{digest}", exist_ok=True)
            for name in manifest.files:
                self.fs.put_file(str(directory / name), self.path(digest, name))
            self.fs.pipe_file(self.path(digest, MANIFEST), manifest.model_dump_json().encode())
        return manifest

    def manifest(self, digest: str) -> Manifest:
        """The list of a stored model's files. Raises `HostError` if the store does not have the model, or
        another one in its place.
        """
        try:
            found = Manifest.model_validate_json(self.fs.cat_file(self.path(digest, MANIFEST)))
        except (OSError, ValueError) as error:
            raise HostError(f"The model store {self.url} has no model {digest[:12]}: {error}.") from error
        if found.digest != digest:
            raise _tampered(self.url, digest, MANIFEST)
        return found

    def fetch(self, digest: str, target: Path) -> None:
        """Copy a model into the new directory `target`, each file verified. Raises `HostError`."""
        manifest = self.manifest(digest)
        draft = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}")
        draft.mkdir(parents=True)
        try:
            for name, file in manifest.files.items():
                self._fetch_file(digest, name, draft / name)
                if stored_file(draft / name) != file:
                    raise _tampered(self.url, digest, name)
            if not target.exists():
                draft.replace(target)
        except OSError as error:
            raise HostError(f"The model {digest[:12]} cannot be fetched from {self.url}: {error}.") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _fetch_file(self, digest: str, name: str, path: Path) -> None:
        if Path(name).name != name:
            raise _tampered(self.url, digest, name)
        self.fs.get_file(self.path(digest, name), str(path))

    def remove(self, digest: str) -> None:
        """Remove a model, the manifest first: what is left is no model any more."""
        if self.fs.exists(self.path(digest, MANIFEST)):
            self.fs.rm_file(self.path(digest, MANIFEST))
            self.fs.rm(f"{self.root.rstrip('/')}/{digest}", recursive=True)


def _tampered(url: str, digest: str, name: str) -> HostError:
    return HostError(
        f"The model store {url} has {digest[:12]}/{name} with other contents than when it was added: "
        "it is refused; remove the model and add it again."
    )


def store() -> Store:
    """The store of this EdgeLoom. Raises `HostError`."""
    return _store(settings.MODEL_STORE)


@lru_cache(maxsize=4)
def _store(url: str) -> Store:
    return Store(url)
