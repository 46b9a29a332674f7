"""One row through an attention or feed-forward part in a single call of `row_products.c`.

Between two products of a decode step torch's own calls take as long as some of the arithmetic. Parts that
are made as Llama's are (`ModelSpec.has_llama_parts`) need none.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import Structure, c_double, c_int64, c_void_p
from typing import Any

import torch
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.domain.rope import Rope
from engine.ops.torch_kernels.packed import Packed
from engine.ops.torch_kernels.rope import rope_rows
from engine.ops.torch_kernels.row_library import loaded
from engine.ops.torch_kernels.storage import KVCache

NONE = torch.empty(0)


class _Matrix(Structure):
    _fields_ = [
        ("format", c_int64),
        ("packed", c_void_p),
        ("stride", c_int64),
        ("scales", c_void_p),
        ("scales_stride", c_int64),
        ("first", c_int64),
        ("group", c_int64),
        ("bias", c_void_p),
        ("outputs", c_int64),
        ("inputs", c_int64),
    ]


class _Attention(Structure):
    _fields_ = [
        ("norm", c_void_p),
        ("eps", c_double),
        ("scale", c_double),
        *((key, _Matrix) for key in "qkvo"),
        *((key, c_int64) for key in ("hidden", "heads", "keys", "wide", "turned")),
    ]


class _FeedForward(Structure):
    _fields_ = [
        ("norm", c_void_p),
        ("eps", c_double),
        *((key, _Matrix) for key in ("up", "gate", "down")),
        ("hidden", c_int64),
    ]


def _matrix(w: Mapping[str, Tensor], key: str) -> _Matrix | None:
    """A matrix as our loops read it; None where it lies otherwise in memory."""
    weight, bias = w[f"{key}.weight"], w.get(f"{key}.bias")
    at = None if bias is None else bias.data_ptr()
    if isinstance(weight, Packed):
        *place, odd = weight.place
        return None if odd else _Matrix(weight.numbers.bits, *place, at, weight.outputs, weight.inputs)
    if weight.stride(1) != 1 or (bias is not None and not bias.is_contiguous()):
        return None
    return _Matrix(32, weight.data_ptr(), 4 * weight.stride(0), None, 0, 0, 0, at, *weight.shape)


class RowAttention:
    """Attention of `heads` query heads, which read `keys` whole KV heads."""

    def __init__(self, values: _Attention, w: Mapping[str, Tensor], rope: Rope | None):
        self.values, self.w, self.rope = values, w, rope  # `w` keeps the memory that the structure names
        self.at = ctypes.addressof(values)
        self.numbers = 2 * values.hidden + (3 * values.heads + 2 * values.keys) * values.wide
        self.call = _function("row_attention", "ppppnnnppppp")

    def __call__(self, x: Tensor, cache: KVCache, first: int, added: Tensor | None) -> Tensor:
        """Compute the attention of one row; `first` is the first row of the cache that it sees."""
        seen, values = cache.rows, self.values
        cache.make_room(values.keys, values.wide, x)
        work, y = x.new_empty(self.numbers + seen + 1), torch.empty_like(x)
        cos, sin = rope_rows(self.rope, seen, 1, x.dtype) if self.rope else (NONE, NONE)
        self.call(
            self.at,
            x.data_ptr(),
            cache.keys.data_ptr(),
            cache.values.data_ptr(),
            first,
            seen,
            cache.keys.shape[2],
            cos.data_ptr(),
            sin.data_ptr(),
            work.data_ptr(),
            None if added is None else added.data_ptr(),
            y.data_ptr(),
        )
        cache.rows += 1
        return y


class RowFeedForward:
    def __init__(self, values: _FeedForward, w: Mapping[str, Tensor]):
        self.values, self.w = values, w
        self.at = ctypes.addressof(values)
        self.numbers = 2 * values.hidden + 3 * values.up.outputs
        self.call = _function("row_feed_forward", "ppppp")

    def __call__(self, x: Tensor, added: Tensor | None) -> Tensor:
        work, y = x.new_empty(self.numbers), torch.empty_like(x)
        self.call(
            self.at,
            x.data_ptr(),
            work.data_ptr(),
            None if added is None else added.data_ptr(),
            y.data_ptr(),
        )
        return y


def row_attention(
    model: ModelSpec, w: Mapping[str, Tensor], heads: int, keys: int, norms: bool, rope: Rope | None
) -> RowAttention | None:
    """The attention of one row by our loops; None where they cannot compute it."""
    matrices = [_matrix(w, key) for key in "qkvo"]
    if None in matrices or heads != keys * model.group_size:
        return None
    norm, turned = w["norm.weight"].data_ptr() if norms else None, rope.rotary_dim if rope else 0
    sizes = (model.hidden_size, heads, keys, model.head_dim, turned)
    return RowAttention(_Attention(norm, model.norm_eps, model.score_scale, *matrices, *sizes), w, rope)


def row_feed_forward(model: ModelSpec, w: Mapping[str, Tensor], norms: bool) -> RowFeedForward | None:
    """The feed-forward part of one row by our loops; None where they cannot compute it."""
    matrices = [_matrix(w, key) for key in ("up", "gate", "down")]
    if None in matrices:
        return None
    norm = w["norm.weight"].data_ptr() if norms else None
    return RowFeedForward(_FeedForward(norm, model.norm_eps, *matrices, model.hidden_size), w)


def _function(name: str, arguments: str) -> Any:
    """`arguments`: p for an address, n for a number."""
    function = loaded()[name]
    function.argtypes = tuple(c_void_p if one == "p" else c_int64 for one in arguments)
    function.restype = None
    return function
