"""Slices of a model's weights as files by their digest: cut where the model is, read where a device runs.

A file has every tensor that loading the slice reads, as its source gives it, under its name and range.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.models.weights.store import Source, read_part
from engine.ops.layout import TensorPart, tensor_parts
from engine.ops.sizes import bits_of


class _Noting:
    """A source that notes what is read of another."""

    def __init__(self, source: Source):
        self.source = source
        self.read_before: dict[str, torch.Tensor] = {}

    def read(self, model: ModelSpec, part: TensorPart) -> torch.Tensor:
        found = self.source.read(model, part)
        self.read_before[_key(part)] = found.clone(memory_format=torch.contiguous_format)
        return found


def _key(part: TensorPart) -> str:
    return f"{part.name} {part.dim} {part.start} {part.stop}"


class CutSlices:
    """The files of slices of one model, each made when it is asked for: the last one is kept."""

    def __init__(self, model: ModelSpec, source: Source):
        self.model, self.source = model, source
        self.slices: dict[str, Slice] = {}
        self.last = ("", b"")

    def add(self, piece: Slice) -> tuple[str, int]:
        """The digest (SHA-256) and the size of the slice's file."""
        content = self._content(piece)
        digest = hashlib.sha256(content).hexdigest()
        self.slices[digest], self.last = piece, (digest, content)
        return digest, len(content)

    def part(self, digest: str, start: int, size: int) -> bytes | None:
        """Bytes of the file with this digest; None if there is none."""
        if digest not in self.slices:
            return None
        if self.last[0] != digest:
            self.last = (digest, self._content(self.slices[digest]))
        return self.last[1][start : start + size]

    def _content(self, piece: Slice) -> bytes:
        noting, bits = _Noting(self.source), bits_of(self.model, piece)
        for part in tensor_parts(self.model, piece):
            read_part(noting, self.model, part, bits)
        return save(noting.read_before)


class SliceFiles:
    """A source of weights that are in files of `CutSlices`, all those in a folder: a later plan adds some."""

    def __init__(self, folder: Path):
        self.folder, self.known = folder, set[Path]()
        self.files: dict[str, Any] = {}
        self.parts: dict[tuple[str, int], list[tuple[int, int, str]]] = {}

    def _look(self) -> bool:
        """Take note of files that have come; False if there are none."""
        come = set(self.folder.iterdir()) - self.known
        for path in sorted(come):
            file = safe_open(path, framework="pt")
            for key in file.keys():  # noqa: SIM118
                name, dim, start, stop = key.rsplit(" ", 3)
                self.files[key] = file
                self.parts.setdefault((name, int(dim)), []).append((int(start), int(stop), key))
        self.known |= come
        return bool(come)

    def read(self, model: ModelSpec, part: TensorPart) -> torch.Tensor:
        found = self._found(part)
        if found is None and self._look():
            found = self._found(part)
        if found is None:
            raise SpecError(
                f"{part.name}: {part.start}:{part.stop} of axis {part.dim} is not among the slices of "
                f"{model.name} that this board was sent: the method loads what its plan does not place here."
            )
        return found

    def _found(self, part: TensorPart) -> torch.Tensor | None:
        if _key(part) in self.files:
            tensor: torch.Tensor = self.files[_key(part)].get_tensor(_key(part))
            return tensor
        for start, stop, key in self.parts.get((part.name, part.dim), ()):
            if start <= part.start and part.stop <= stop:
                whole: torch.Tensor = self.files[key].get_tensor(key)
                return whole.narrow(part.dim, part.start - start, part.stop - part.start)
        return None
