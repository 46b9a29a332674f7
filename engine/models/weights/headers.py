"""Checks by the headers of safetensors files that a directory has all tensors of a model, in their shapes.

A file is 8 bytes with the length of its header, the header (JSON: name → dtype, shape, data_offsets), and the
data. So a broken directory is refused before anything is loaded, and without importing torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.models.families.tensor_names import candidates, packed_shapes, stored_as, stored_shape
from engine.models.weights.directory import weight_files
from engine.ops.layout import tensor_parts, whole_model

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # as in the library safetensors
MAX_RANK = 8
MAX_COUNT = 2**63 - 1
"""Most elements along an axis, and most bytes: as large as a file's length can be."""
ELEMENT_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Data types of weights that are loaded, as safetensors calls them."""
PACKED_BYTES = {"U8": 1}
"""Those of packed weights and of their scales."""
MAX_SHOWN_CHARS = 200
"""Characters of a tensor's name that a refusal shows."""
CHUNK_BYTES = 1 << 24


class Entry(NamedTuple):
    """A tensor in a file. `start` and `stop` are its bytes in the file."""

    file: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def check_weights(directory: Path, model: ModelSpec) -> None:
    """Check that the files in `directory` are the weights of `model`; raises `SpecError`.

    Refused are a broken file, a tensor that is missing or has another shape or data type, and a head of its
    own in a model whose config.json ties the head to the embeddings.
    """
    stored: dict[str, Entry] = {}
    for file in weight_files(directory):
        stored |= header(file)
    for piece in whole_model(model):
        for part in tensor_parts(model, piece):
            place = stored_as(model, part.name)
            names = candidates(model, place)
            shapes = {"": stored_shape(model, part.name, place, part.full_shape)}
            packed = packed_shapes(model, part.name, place, part.full_shape)
            if any(name + end in stored for name in names for end in packed):
                shapes = packed
            for end, expected in shapes.items():
                ended = tuple(name + end for name in names)
                entry = _found(directory, model, stored, ended, PACKED_BYTES if end else ELEMENT_BYTES)
                if list(entry.shape) != expected:
                    raise SpecError(
                        f"{entry.file}: {part.name}{end} of {model.name} has shape {list(entry.shape)}, "
                        f"expected {expected}."
                    )
    if model.tied_head and model.has_head:
        _check_tie(directory, model, stored)


def _found(
    directory: Path,
    model: ModelSpec,
    stored: dict[str, Entry],
    names: tuple[str, ...],
    dtypes: Mapping[str, int] = ELEMENT_BYTES,
) -> Entry:
    found = [name for name in names if name in stored]
    if not found:
        raise SpecError(f"{directory}: has no tensor {names[0]}, which {model.name} needs.")
    if len(found) > 1:
        raise SpecError(f"{directory}: has {found[0]} and {found[1]}, which mean one tensor: keep one.")
    name, entry = found[0], stored[found[0]]
    if entry.dtype not in dtypes:
        known = ", ".join(dtypes)
        raise SpecError(f"{entry.file}: {name} is stored as {entry.dtype}, expected one of {known}.")
    return entry


def _check_tie(directory: Path, model: ModelSpec, stored: dict[str, Entry]) -> None:
    """Check that files have no head beside a tied table, other than that table again: the library would
    compute with that.
    """
    heads = candidates(model, stored_as(model, "lm_head.weight"))
    head = next((stored[name] for name in heads if name in stored), None)
    if head is None:
        return
    table = _found(directory, model, stored, candidates(model, stored_as(model, "embed.tokens")))
    if not _equal(head, table, head.file.stat().st_mtime_ns, table.file.stat().st_mtime_ns):
        raise SpecError(
            f"{head.file}: has an lm_head.weight other than the table of embeddings, and config.json says "
            "tie_word_embeddings: set it to false."
        )


@lru_cache(maxsize=8)
def _equal(one: Entry, other: Entry, *changed_ns: int) -> bool:
    """Whether two tensors have the same bytes; `changed_ns` are the files' times of change."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    with one.file.open("rb") as first, other.file.open("rb") as second:
        first.seek(one.start)
        second.seek(other.start)
        left = one.stop - one.start
        while left > 0:
            count = min(left, CHUNK_BYTES)
            if first.read(count) != second.read(count):
                return False
            left -= count
    return True


def header(file: Path) -> dict[str, Entry]:
    """The tensors in a safetensors file by name. Raises `SpecError` for a broken or shortened file."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(LENGTH_BYTES), "little")
        if size < LENGTH_BYTES or length > min(size - LENGTH_BYTES, MAX_HEADER_BYTES):
            raise _broken(file, f"its header would have {length} bytes, and the file has {size}")
        text = opened.read(length)
    try:
        named = json.loads(text)
    except ValueError as error:
        raise _broken(file, f"its header is no JSON ({error})") from error
    except RecursionError:
        raise _broken(file, "its header is nested too deeply") from None
    if not isinstance(named, dict):
        raise _broken(file, "its header is no JSON object")
    begin = LENGTH_BYTES + length
    return {
        name: _entry(file, name[:MAX_SHOWN_CHARS], facts, begin, size)
        for name, facts in named.items()
        if name != "__metadata__"
    }


def _entry(file: Path, name: str, facts: Any, begin: int, size: int) -> Entry:
    try:
        start, stop = facts["data_offsets"]
        dtype, shape = str(facts["dtype"]), tuple(facts["shape"])
        counts = [start, stop, *shape]
    except (TypeError, KeyError, ValueError):
        raise _broken(file, f"its header does not say where {name} is") from None
    if len(shape) > MAX_RANK:
        raise _broken(file, f"{name} has {len(shape)} axes, expected at most {MAX_RANK}")
    if any(type(count) is not int or not 0 <= count <= MAX_COUNT for count in counts):
        raise _broken(file, f"its header does not say where {name} is")
    if begin + stop > size:
        raise _broken(file, f"{name} ends at byte {begin + stop}, and the file has {size}: it is cut off")
    each = (ELEMENT_BYTES | PACKED_BYTES).get(dtype)
    if each and stop - start != prod(shape) * each:
        raise _broken(file, f"{name} has {stop - start} bytes, which are not its {list(shape)} of {dtype}")
    return Entry(file, dtype, shape, begin + start, begin + stop)


def _broken(file: Path, why: str) -> SpecError:
    return SpecError(f"{file}: is no safetensors file: {why}. Download it again.")
