"""Loads or draws the weights of a model slice by slice, so that a device has only its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.domain.errors import PlanError, SpecError
from engine.domain.model import ModelSpec, draft_of
from engine.domain.plan import Bits, Slice, contains, of_draft
from engine.domain.spec import WeightsRef
from engine.models.families.tensor_names import (
    PACKED_NUMBERS,
    candidates,
    packed_shapes,
    rows_in_file,
    stored_as,
    stored_shape,
)
from engine.models.weights.directory import weight_files
from engine.models.weights.drawn import DTYPES, RandomSource
from engine.models.weights.mxfp4 import restored
from engine.models.weights.quantise import quantise
from engine.ops.layout import TensorPart, tensor_parts
from engine.ops.sizes import bits_of
from engine.ops.torch_kernels.own_memory import copies
from engine.ops.torch_kernels.packed import Packed

PAGE_ELEMENTS = 1024


class Source(Protocol):
    """Gives tensors of a model: drawn from a seed, or read from files."""

    def read(self, model: ModelSpec, part: TensorPart) -> Tensor:
        """The tensor `part` and no more, in the file's dtype."""


class DirectorySource:
    """Reads safetensors files of a local directory, mapped read-only: devices on one host share their pages.

    Raises `SpecError` for a missing or misshapen tensor.
    """

    def __init__(self, directory: str):
        self.directory = directory
        self.files: dict[str, Any] = {}
        for path in weight_files(Path(directory)):
            try:
                file = safe_open(path, framework="pt")
            except (SafetensorError, OSError) as error:
                raise SpecError(f"{path}: is no safetensors file: {error}.") from error
            self.files |= dict.fromkeys(file.keys(), file)

    def read(self, model: ModelSpec, part: TensorPart) -> Tensor:
        stored = stored_as(model, part.name)
        names = candidates(model, stored)
        rows = rows_in_file(model, part.name, stored, part.full_shape[0])
        ranges = [(0, size) for size in part.full_shape]
        ranges[part.dim] = (part.start, part.stop)
        own = range(rows.first, rows.total, rows.step)[slice(*ranges[0])]
        ranges[0] = (own[0], own[-1] + 1) if own else (0, 0)
        packed = packed_shapes(model, part.name, stored, part.full_shape)
        if packed and (name := self._found(names, *packed)):
            return self._restored(name, packed, stored.expert, ranges)[:: rows.step]
        name = self._found(names, "")
        if name is None:
            raise SpecError(f"{self.directory}: has no tensor {names[0]}, which {model.name} needs.")
        turned = stored.transposed and len(part.full_shape) == 2
        if turned:
            ranges.reverse()
        if stored.stacked:
            ranges.insert(0, (stored.expert, stored.expert + 1))
        cut = self._cut(name, stored_shape(model, part.name, stored, part.full_shape), ranges)
        cut = cut[0] if stored.stacked else cut
        cut = cut.t() if turned else cut
        return cut[:: rows.step]

    def _found(self, names: Sequence[str], *ends: str) -> str | None:
        """The first of `names` that is there with all `ends`."""
        return next((name for name in names if all(name + end in self.files for end in ends)), None)

    def _cut(self, name: str, shape: list[int], ranges: Sequence[tuple[int, int]]) -> Tensor:
        """The part of a stored tensor in the `ranges` of its first axes. Raises `SpecError` for another
        shape.
        """
        tensor = self.files[name].get_slice(name)
        if list(tensor.get_shape()) != shape:
            actual = list(tensor.get_shape())
            raise SpecError(f"{self.directory}: {name} has shape {actual}, expected {shape}.")
        cut: Tensor = tensor[tuple(slice(start, stop) for start, stop in ranges)]
        return cut

    def _restored(
        self, name: str, shapes: Mapping[str, list[int]], expert: int, ranges: Sequence[tuple[int, int]]
    ) -> Tensor:
        """The rows and columns in `ranges` of a matrix in MXFP4."""
        rows, (start, stop) = ranges
        first, last = start // PACKED_NUMBERS, -(-stop // PACKED_NUMBERS)
        where = ((expert, expert + 1), rows, (first, last))
        blocks, scales = (self._cut(name + end, shape, where) for end, shape in shapes.items())
        begin = first * PACKED_NUMBERS
        return restored(blocks[0], scales[0])[:, start - begin : stop - begin]


@lru_cache(maxsize=4)
def source_of(ref: WeightsRef, seed: int, shared: Path | None = None) -> Source:
    """The source of some weights, opened once per process; `shared` is where random tensors are kept for the
    other devices of a run.

    Raises `SpecError` for a directory without safetensors.
    """
    return RandomSource(seed, shared) if ref.kind == "random" else DirectorySource(ref.directory)


class InBits:
    """The tensors of another source with their matrices in 8 or 4 bits, as devices have them, restored."""

    def __init__(self, source: Source):
        self.source = source

    def read(self, model: ModelSpec, part: TensorPart) -> Tensor:
        read = read_part(self.source, model, part, bits_of(model, Slice(layer=-1, part="embed")))
        return read.restored() if isinstance(read, Packed) else read


def load(model: ModelSpec, ref: WeightsRef, piece: Slice, seed: int) -> dict[str, Tensor]:
    """The tensors of `piece` under their keys in `layout.py`, in the model's dtype. Reads only them.

    Raises `SpecError` for bad files, `PlanError` for a slice that the model does not have.
    """
    source, bits = source_of(ref, seed), bits_of(model, piece)
    return {part.key: read_part(source, model, part, bits) for part in tensor_parts(model, piece)}


def read_part(source: Source, model: ModelSpec, part: TensorPart, bits: Bits) -> Tensor:
    """The tensor `part` of a source. Of a matrix in 8 or 4 bits whole rows are read, because their numbers
    share scales.
    """
    dtype = DTYPES[model.dtype]
    if not (bits and part.is_matrix):
        return _in_memory(source.read(model, part).to(dtype))
    group = model.int8_group if model.activation_bits and part.name.startswith("layers.") else 0
    if part.dim == 0:
        return quantise(source.read(model, part), bits, dtype, group)
    read = source.read(model, part._replace(start=0, stop=part.full_shape[part.dim]))
    whole = quantise(read, bits, dtype, group)
    cut = whole.cut(part.dim, part.start, part.stop)
    return cut.kept_in(*(tensor.contiguous() for tensor in cut.tensors))


def _in_memory(tensor: Tensor) -> Tensor:
    tensor = tensor.contiguous()
    tensor.view(-1)[::PAGE_ELEMENTS].sum()  # fault mapped pages in now, not in the first operation
    return tensor


class WeightStore:
    """The weights of one device. A tensor in two slices (a tied table) is in memory once."""

    def __init__(
        self,
        model: ModelSpec,
        ref: WeightsRef,
        seed: int,
        shared: Path | None = None,
        draft_ref: WeightsRef | None = None,
        source: Source | None = None,
    ):
        self.model, self.ref, self.seed, self.shared = model, ref, seed, shared
        self.draft_ref = draft_ref or WeightsRef()
        self.draft = DraftWeights(self)
        self.source = source  # in place of `ref`
        self.held: dict[Slice, Mapping[str, Tensor]] = {}
        self.views: dict[Slice, Mapping[str, Tensor]] = {}
        self.found: dict[Any, Any] = {}  # what operations have looked up
        self.by_name: WeakValueDictionary[tuple[str, int, int, Bits, bool], Tensor] = WeakValueDictionary()

    def load(self, piece: Slice) -> None:
        """Read the weights of `piece`, if they are not there yet. Raises `SpecError` for bad files,
        `PlanError` for a slice that the model does not have.
        """
        if piece not in self.held:
            self.held[piece] = self._loaded(piece)

    def _loaded(self, piece: Slice) -> Mapping[str, Tensor]:
        model, ref, shared = self._model_of(piece), self.ref, self.shared
        if piece.draft:  # its tensors have the same names
            ref, shared = self.draft_ref, None
        source, tensors = self.source or source_of(ref, self.seed, shared), {}
        bits = bits_of(model, piece)
        for part in tensor_parts(model, piece):
            identity = (part.name, part.start, part.stop, bits, piece.draft)
            tensor = self.by_name.get(identity)
            if tensor is None:
                tensor = read_part(source, model, part, bits)
                self.by_name[identity] = tensor
            tensors[part.key] = tensor
        return tensors

    def _model_of(self, piece: Slice) -> ModelSpec:
        return draft_of(self.model) if piece.draft else self.model

    def own(self) -> None:
        """Copy what is held into memory of this process (`own_memory.py`), as products then read it faster.

        Slice by slice, so that one is in memory twice at a time. Other devices of this host no longer share
        these pages. Tables that only look-ups read stay as they are.
        """
        names = {id(tensor): identity for identity, tensor in self.by_name.items()}
        left = dict(self.held)
        uses = Counter(id(tensor) for tensors in left.values() for tensor in tensors.values())
        shared: dict[int, Tensor] = {}
        originals = []  # of those in several slices: they keep the keys of `shared` unique
        for piece in sorted(left, key=lambda piece: piece.part == "embed"):
            tensors = left.pop(piece)
            if piece.part == "embed":
                self.held[piece] = {key: shared.get(id(old), old) for key, old in tensors.items()}
                continue
            new = [tensor for tensor in tensors.values() if id(tensor) not in shared]
            made = {id(old): copy for old, copy in zip(new, copies(new), strict=True)}
            for old in new:
                if id(old) in names:
                    self.by_name[names[id(old)]] = made[id(old)]
                if uses[id(old)] > 1:
                    shared[id(old)] = made[id(old)]
                    originals.append(old)
            self.held[piece] = {key: (shared | made)[id(old)] for key, old in tensors.items()}
        self._forget()

    def cut_out(self, piece: Slice) -> None:
        """Hold a copy of `piece`, whose tensors a larger slice has: that one may go."""
        cut = self._cut(piece)
        self.held[piece] = dict(zip(cut, copies(cut.values()), strict=True))
        self._forget()

    def evict(self, piece: Slice) -> None:
        self.held.pop(piece, None)
        self._forget()

    def _forget(self) -> None:
        """Drop what follows from the tensors held, as others are held now."""
        self.views.clear()
        self.found.clear()
        self.draft.found.clear()

    def get(self, piece: Slice) -> Mapping[str, Tensor]:
        """Tensors of `piece`, cut without a copy from a held slice that contains it; else `PlanError`."""
        tensors = self.held.get(piece) or self.views.get(piece)
        if tensors is None:
            tensors = self.views[piece] = self._cut(piece)
        return tensors

    def _cut(self, piece: Slice) -> Mapping[str, Tensor]:
        for have, tensors in list(self.held.items()):  # another thread may be loading
            if (have.layer, have.part) == (piece.layer, piece.part) and contains(have, piece):
                model = self._model_of(piece)
                wholes = {whole.key: whole for whole in tensor_parts(model, have)}
                return {
                    part.key: _within(tensors[part.key], wholes[part.key], part)
                    for part in tensor_parts(model, piece)
                }
        raise PlanError(
            f"{piece.part} of layer {piece.layer}, {piece.axis} {piece.start}:{piece.stop}, is not resident."
        )


class DraftWeights:
    """The weights of a device's draft model, as operations look them up."""

    def __init__(self, store: WeightStore):
        self.store = store
        self.found: dict[Any, Any] = {}

    def get(self, piece: Slice) -> Mapping[str, Tensor]:
        return self.store.get(of_draft(piece))


def _within(tensor: Tensor, have: TensorPart, part: TensorPart) -> Tensor:
    """The `part` of a tensor, as a view of `tensor`, which has the larger part `have`. An empty part may lie
    anywhere, also outside `have`.
    """
    start = min(max(0, part.start - have.start), have.stop - have.start)
    return tensor.narrow(part.dim, start, part.stop - part.start)
