"""A model directory by what is in it: the names, lengths and SHA-256 sums of the files that a run reads."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from engine.domain.spec import WeightsRef
from engine.domain.values import Value
from engine.models.inputs.chat import FILES as CHAT_FILES
from engine.models.inputs.library_tokenizer import FILES as TOKENIZER_FILES
from engine.models.inputs.processor import FILES as PROCESSOR_FILES
from engine.models.weights.directory import CONFIG, INDEX, SINGLE, weight_files

BESIDE = (CONFIG, INDEX, "generation_config.json", *TOKENIZER_FILES, *CHAT_FILES, *PROCESSOR_FILES)
"""What a run reads besides the weights."""


class StoredFile(Value):
    bytes: int
    sha256: str


class Manifest(Value):
    """The files of a model by name."""

    files: dict[str, StoredFile]

    @property
    def digest(self) -> str:
        """The digest of all files, in 64 hexadecimal digits."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files.values())


def with_digest(weights: WeightsRef) -> WeightsRef:
    """`weights` with the digest of their directory, if they have one. Raises `SpecError`."""
    if not weights.directory or weights.digest:
        return weights
    return weights.model_copy(update={"digest": manifest_of(Path(weights.directory)).digest})


def manifest_of(directory: Path) -> Manifest:
    """The manifest of the files that a run reads. Hashes a file again only after it has changed. Raises
    `SpecError`.
    """
    has_weights = (directory / SINGLE).exists() or (directory / INDEX).exists()
    weights = weight_files(directory) if has_weights else ()
    beside = (directory / name for name in BESIDE if (directory / name).is_file())
    paths = {path.name: path for path in (*beside, *weights)}
    return Manifest(files={name: stored_file(path) for name, path in sorted(paths.items())})


def stored_file(path: Path) -> StoredFile:
    state = path.stat()
    return StoredFile(bytes=state.st_size, sha256=_sha256(path, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=256)
def _sha256(path: Path, size: int, changed_ns: int) -> str:
    """The SHA-256 of a file, from a cache. `size` and `changed_ns` only tell one state of the file from
    another.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
