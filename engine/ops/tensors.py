"""Views and other tensor manipulations without arithmetic, which a strategy may do outside `ctx.compute`.

They work on torch tensors and on `Meta`, the simulated world's tensor (a shape and a dtype), and take no
virtual time in either world.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from engine.domain.errors import WrongProgram
from engine.domain.units import DTYPE_BYTES


class Meta(NamedTuple):
    """A tensor's `shape` and `dtype` ("float32", "bfloat16", "int64", …), without elements."""

    shape: tuple[int, ...]
    dtype: str = "float32"


Tensor = Any
"""A `torch.Tensor` in the real world, a `Meta` in the simulated one. Both have `shape`."""


def shape_of(x: Tensor) -> tuple[int, ...]:
    """The shape of `x`, as plain numbers in both worlds."""
    return tuple(x.shape)


def dtype_of(x: Tensor) -> str:
    return x.dtype if isinstance(x, Meta) else str(x.dtype).removeprefix("torch.")


def meta_of(x: Tensor) -> Meta:
    return x if isinstance(x, Meta) else Meta(shape_of(x), dtype_of(x))


def payload_bytes(x: Tensor) -> int:
    """Bytes of the elements of `x`, of any shape, without a message's header."""
    return int(prod(x.shape)) * DTYPE_BYTES[dtype_of(x)]


def narrow(x: Tensor, dim: int, start: int, stop: int) -> Tensor:
    """`x[..., start:stop, ...]` along `dim` (half-open); what is out of bounds is refused."""
    if not isinstance(x, Meta):
        return x.narrow(dim, start, stop - start)
    size = _size(x, dim, "narrow")
    first = start + size if start < 0 else start  # as torch counts
    if not 0 <= first <= first + stop - start <= size or stop < start:
        raise _wrong("narrow", f"{start}:{stop} of {size} along dimension {dim} of {_text(x)}")
    return _resized(x, dim, stop - start)


def take(x: Tensor, dim: int, indices: Sequence[int]) -> Tensor:
    """`x[..., indices, ...]` along `dim`, in the order of `indices`; `x` itself if that is all of it."""
    if isinstance(x, Meta):
        size = _size(x, dim, "take")
        if wrong := [index for index in indices if not 0 <= index < size]:
            raise _wrong("take", f"index {wrong[0]} of {size} along dimension {dim} of {_text(x)}")
    if tuple(indices) == tuple(range(x.shape[dim])):
        return x
    if isinstance(x, Meta):
        return _resized(x, dim, len(indices))
    import torch

    return x.index_select(dim, torch.tensor(indices, dtype=torch.long))


def spread(x: Tensor, dim: int, indices: Sequence[int], size: int) -> Tensor:
    """Zeros of the shape of `x`, but of `size` along `dim`, with `x` at these `indices`; `x` itself if that
    is all of it.
    """
    if len(indices) == size:
        return x
    shape = shape_of(x)
    whole = zeros((*shape[:dim], size, *shape[dim + 1 :]), x, dtype_of(x))
    if isinstance(whole, Meta):
        return whole
    import torch

    return whole.index_copy(dim, torch.tensor(indices, dtype=torch.long), x)


def concat(parts: Sequence[Tensor], dim: int) -> Tensor:
    """`parts` one after the other along `dim`; their shapes are equal in all other dimensions."""
    if not parts:
        raise _wrong("concat", "no parts")
    first = parts[0]
    if isinstance(first, Meta):
        total = sum(_size(part, dim, "concat") for part in parts)
        for part in parts:
            if _resized(part, dim, 0).shape != _resized(first, dim, 0).shape:
                raise _wrong("concat", f"{_text(first)} and {_text(part)} along dimension {dim}")
        return _resized(first, dim, total)
    import torch

    return torch.cat(list(parts), dim)


def zeros(shape: tuple[int, ...], like: Tensor, dtype: str) -> Tensor:
    """Zeros of `shape` and `dtype` ("float32", …): a `Meta` if `like` is one, else a torch tensor."""
    if isinstance(like, Meta):
        if min(shape, default=0) < 0:
            raise _wrong("zeros", f"the shape {_text(Meta(shape))}")
        return Meta(shape, dtype)
    import torch

    return torch.zeros(shape, dtype=getattr(torch, dtype))


def flatten(x: Tensor) -> Tensor:
    """All elements of `x`, of any shape, in one dimension."""
    return Meta((prod(x.shape),), x.dtype) if isinstance(x, Meta) else x.reshape(-1)


def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The elements of `x` in another shape; one of its sizes may be -1: what is left."""
    if not isinstance(x, Meta):
        return x.reshape(shape)
    elements, known = prod(x.shape), prod(size for size in shape if size != -1)
    if -1 in shape and known > 0 and shape.count(-1) == 1 and elements % known == 0:
        return Meta(tuple(elements // known if size == -1 else size for size in shape), x.dtype)
    if min(shape, default=0) < 0 or known != elements:
        raise _wrong("reshape", f"{elements:,} elements of {_text(x)} into {_text(Meta(shape))}")
    return Meta(tuple(shape), x.dtype)


def _resized(x: Meta, dim: int, size: int) -> Meta:
    shape = list(x.shape)
    shape[dim] = size
    return Meta(tuple(shape), x.dtype)


def _size(x: Meta, dim: int, what: str) -> int:
    if not -len(x.shape) <= dim < len(x.shape):
        raise _wrong(what, f"dimension {dim} of {_text(x)}")
    return x.shape[dim]


def _text(x: Meta) -> str:
    return f"[{', '.join(map(str, x.shape))}]"


def _wrong(what: str, complaint: str) -> WrongProgram:
    return WrongProgram(f"{what} cannot give {complaint}.")
