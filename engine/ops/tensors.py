"""Views and other tensor manipulations without arithmetic, which a strategy may do outside `ctx.compute`.

They work on torch tensors and on `Meta`, the simulated world's tensor (a shape and a dtype), and take no
virtual time in either world.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from engine.domain.units import DTYPE_BYTES


class Meta(NamedTuple):
    """A tensor's shape and dtype, without elements."""

    shape: tuple[int, ...]
    dtype: str = "float32"


Tensor = Any  # torch.Tensor in the real world, Meta in the simulated one


def shape_of(x: Tensor) -> tuple[int, ...]:
    return tuple(x.shape)


def dtype_of(x: Tensor) -> str:
    return x.dtype if isinstance(x, Meta) else str(x.dtype).removeprefix("torch.")


def meta_of(x: Tensor) -> Meta:
    return x if isinstance(x, Meta) else Meta(shape_of(x), dtype_of(x))


def payload_bytes(x: Tensor) -> int:
    """Bytes of the elements, without a message's header."""
    return int(prod(x.shape)) * DTYPE_BYTES[dtype_of(x)]


def narrow(x: Tensor, dim: int, start: int, stop: int) -> Tensor:
    """`x[..., start:stop, ...]` along `dim` (half-open)."""
    if isinstance(x, Meta):
        shape = list(x.shape)
        shape[dim] = stop - start
        return Meta(tuple(shape), x.dtype)
    return x.narrow(dim, start, stop - start)


def take(x: Tensor, dim: int, indices: Sequence[int]) -> Tensor:
    """`x[..., indices, ...]` along `dim`, in the order of `indices`; `x` itself if that is all of it."""
    if tuple(indices) == tuple(range(x.shape[dim])):
        return x
    if isinstance(x, Meta):
        shape = list(x.shape)
        shape[dim] = len(indices)
        return Meta(tuple(shape), x.dtype)
    import torch

    return x.index_select(dim, torch.tensor(indices, dtype=torch.long))


def concat(parts: Sequence[Tensor], dim: int) -> Tensor:
    """Parts one after the other along `dim`; all other dimensions equal."""
    first = parts[0]
    if isinstance(first, Meta):
        shape = list(first.shape)
        shape[dim] = sum(part.shape[dim] for part in parts)
        return Meta(tuple(shape), first.dtype)
    import torch

    return torch.cat(list(parts), dim)


def zeros(shape: tuple[int, ...], like: Tensor, dtype: str) -> Tensor:
    """Zeros of `shape`: a `Meta` if `like` is one, else a torch tensor."""
    if isinstance(like, Meta):
        return Meta(shape, dtype)
    import torch

    return torch.zeros(shape, dtype=getattr(torch, dtype))


def flatten(x: Tensor) -> Tensor:
    """All elements in one dimension."""
    return Meta((prod(x.shape),), x.dtype) if isinstance(x, Meta) else x.reshape(-1)


def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Meta(shape, x.dtype) if isinstance(x, Meta) else x.reshape(shape)
