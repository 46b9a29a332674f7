"""References that were computed once, kept in the cache between runs: a file for each answer of each prompt.

A prompt's folder is named by what decides the numbers before any answer: the model, its weights, the prompt,
the library's versions and our code; a file in it by the tokens of the answer and the width of the numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.domain.cache_directory import cache_directory
from engine.domain.spec import RunSpec
from engine.domain.workload import Request
from engine.models.inputs.library_tokenizer import tokenizer_digests
from engine.models.inputs.prompts import is_chat, tokenised_text
from engine.models.weights.directory import CONFIG

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

MOST_BYTES = 1 << 30
"""Of all that is kept: a token's logits take 200 kB with a vocabulary of 49,152."""
ENGINE = Path(__file__).resolve().parents[2]
CODE = (
    "models/reference/teacher_forcing.py",
    "models/reference/transformers_outputs.py",
    "models/weights/store.py",
    "models/weights/quantise.py",
    "ops/torch_kernels/packed.py",
    "models/weights/drawn.py",
    "ops/layout.py",
    *sorted(str(file.relative_to(ENGINE)) for file in (ENGINE / "models/families").glob("*.py")),
    "models/inputs/prompts.py",
    "models/inputs/library_tokenizer.py",
    "models/inputs/pictures.py",
)
"""Files that decide the numbers: an answer of older code is not taken from the cache."""


class Place(NamedTuple):
    """Where the reference of one request is kept: its prompt's folder, and the file there of one answer."""

    prompt: str
    answer: str


class Prompts:
    """The prompts of `spec`, by the folders of their references."""

    def __init__(self, spec: RunSpec):
        text, tokenizer = tokenised_text(spec), Path(spec.weights.directory)
        self._spec = spec
        self._facts = {
            "text": None if text is None else (text, is_chat(spec), tokenizer_digests(tokenizer)),
            "model": spec.model.model_dump(mode="json", exclude={"name", "source"}),
            "weights": facts_of_weights(spec),
            "states": not spec.workload.new_tokens,
            "versions": [version(package) for package in ("torch", "transformers", "numpy")],
            "code": _digests_of_code(),
        }

    def folder(self, request: Request) -> str:
        picture = None
        if self._spec.model.vision:
            picture = self._spec.workload.image or [self._spec.seed, request.index]
        return _hash(self._facts | {"tokens": request.tokens, "picture": picture})

    def place(self, request: Request, answer: Sequence[int], numbers: str) -> Place:
        return Place(self.folder(request), _hash([list(answer), numbers]))

    def are_known(self, requests: Sequence[Request], cache_dir: Path | None = None) -> bool:
        """Whether some answer of each of these is kept: the next one may well be the same."""
        root = _root(cache_dir)
        return all(any((root / self.folder(request)).glob("*.safetensors")) for request in requests)


def facts_of_weights(spec: RunSpec) -> list[Any]:
    """What tells the weights of a run from others, without reading them."""
    directory = Path(spec.weights.directory)
    config = directory / CONFIG
    facts: list[Any] = [_digest(config) if spec.weights.directory and config.is_file() else None]
    if spec.weights.kind != "directory":
        return [*facts, spec.seed]
    files = sorted(directory.glob("*.safetensors"))
    return facts + [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def read(place: Place, cache_dir: Path | None = None) -> dict[str, torch.Tensor] | None:
    """The tensors kept at `place`; None if there are none, or the file is damaged: then it goes."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = _path(place, cache_dir)
    try:
        found = load_file(path)
        os.utime(path)  # those that were not used for longest go first
    except SafetensorError:
        path.unlink(missing_ok=True)
        return None
    except OSError:
        return None
    return found


def keep(place: Place, made: Path, cache_dir: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
    """Put a copy of the file `made` at `place`, whole or not at all, and remove the oldest beyond
    `most_bytes`. Where the cache cannot be written, it is computed again.
    """
    path = _path(place, cache_dir)
    if made.stat().st_size > most_bytes:
        return
    part = path.with_suffix(f".{uuid.uuid4().hex}.part")  # emulations in PID namespaces have equal PIDs
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, part)
        part.rename(path)
        _prune(_root(cache_dir), most_bytes)
    except OSError:  # a full disk, or another run has just removed the folder
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _prune(root: Path, most_bytes: int) -> None:
    """Remove the files that were not used for longest, until all take `most_bytes` at most."""
    files = []
    for file in root.glob("*/*"):
        with suppress(FileNotFoundError):
            files.append((file.stat().st_mtime_ns, file.stat().st_size, file))
    left = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if left <= most_bytes:
            return
        file.unlink(missing_ok=True)
        left -= size
        with suppress(OSError):  # others are in it
            file.parent.rmdir()


def _root(cache_dir: Path | None) -> Path:
    return (cache_dir or cache_directory()) / "references"


def _path(place: Place, cache_dir: Path | None) -> Path:
    return _root(cache_dir) / place.prompt / f"{place.answer}.safetensors"


@cache
def _digests_of_code() -> list[str]:
    return [_digest(ENGINE / name) for name in CODE]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _hash(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
