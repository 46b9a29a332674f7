"""A matrix in 8 or 4 bits that is a tensor: whatever computes with it gets its numbers restored.

What reads few of its numbers restores those alone (rows of a table), and `linear` multiplies a row or a few
without restoring any (`row_products.c`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from engine.ops.sizes import GROUP_INPUTS

NO_GROUP = 1 << 40
"""Inputs of a group where all of a row have one scale."""


class Numbers(NamedTuple):
    """The quantised numbers of a matrix, and their scales.

    `packed` int8 [outputs, inputs], or uint8 [outputs, bytes] with two numbers of 4 bits each, the first one
    low, all in two's complement. `scales` float16 [outputs, 1 or groups], never negative.

    A matrix that was cut may begin within a group, whose first `skipped` inputs are not there: if they are an
    odd number, the low half of its first byte belongs to none of its own. `int8_group`: products round what
    they take in to 8 bits, too, so many inputs with one scale (`int8_products.py`); 0: they do not.
    """

    bits: int
    packed: Tensor
    scales: Tensor
    skipped: int = 0
    int8_group: int = 0


class Place(NamedTuple):
    """The place where `row_products.c` finds the numbers: addresses, and how far apart rows are, in bytes and
    scales. `odd`: so many (0 or 1) before the first one are read, too; `first` are missing of the first
    group's.
    """

    packed: int
    packed_stride: int
    scales: int
    scales_stride: int
    first: int
    group: int
    odd: int


def _place(numbers: Numbers) -> Place:
    bits, packed, scales, skipped, _ = numbers
    odd = skipped % 2
    group = NO_GROUP if bits == 8 else GROUP_INPUTS
    return Place(
        packed.data_ptr(), packed.stride(0), scales.data_ptr(), scales.stride(0), skipped - odd, group, odd
    )


KNOWN = (Tensor.numel, Tensor.size, Tensor.dim, Tensor.element_size)
"""What is answered without numbers, as attributes are."""


class Packed(Tensor):
    """A matrix [outputs, inputs] in 8 or 4 bits, used in the dtype of its activations."""

    numbers: Numbers
    outputs: int
    inputs: int
    place: Place

    @staticmethod
    def __new__(cls, numbers: Numbers, inputs: int, dtype: torch.dtype) -> Packed:
        shape = (len(numbers.packed), inputs)
        made: Packed = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype)
        packed, scales = (_in_rows(stored) for stored in (numbers.packed, numbers.scales))
        numbers = numbers._replace(packed=packed, scales=scales)
        made.numbers, made.outputs, made.inputs = numbers, *shape
        made.place = _place(numbers)
        return made

    @classmethod
    def __torch_function__(
        cls,
        function: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function.__name__ == "__get__" or function in KNOWN:
            return super().__torch_function__(function, types, args, kwargs)
        if function is torch.embedding:
            table, places = args
            return table.rows(places.reshape(-1)).view(*places.shape, -1)
        if function is Tensor.narrow:
            matrix, dim, start, length = args
            return matrix.cut(dim, start, start + length)
        args, kwargs = tree_map(_restored, (tuple(args), dict(kwargs or {})))
        return function(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args, kwargs = tree_map(_restored, (tuple(args), dict(kwargs or {})))
        return function(*args, **kwargs)

    def __getitem__(self, places: Any) -> Tensor:
        """A part of the matrix: slices are in the same memory, any other places are restored."""
        each = places if isinstance(places, tuple) else (places,)
        if not all(isinstance(one, slice) and one.step is None for one in each):
            return self.restored()[places]
        cut = self
        for dim, one in enumerate(each):
            start, stop, _ = one.indices(self.shape[dim])
            cut = cut.cut(dim, start, max(start, stop))
        return cut

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """What is stored."""
        return self.numbers.packed, self.numbers.scales

    def kept_in(self, packed: Tensor, scales: Tensor) -> Packed:
        """The same numbers in other memory."""
        return Packed(self.numbers._replace(packed=packed, scales=scales), self.inputs, self.dtype)

    def restored(self) -> Tensor:
        """The matrix as a plain tensor."""
        inputs, (bits, packed, scales, skipped, _) = self.inputs, self.numbers
        scales = scales.to(self.dtype)
        if bits == 8:
            return packed.to(self.dtype).mul_(scales)
        halves = torch.stack((packed << 4, packed), dim=-1).view(torch.int8) >> 4
        numbers = halves.flatten(1)[:, skipped % 2 :][:, :inputs].to(self.dtype)
        first = min(inputs, -skipped % GROUP_INPUTS)
        numbers[:, :first].mul_(scales[:, :1])
        rest, scales = numbers[:, first:], scales[:, min(1, first) :]
        whole = rest.shape[1] // GROUP_INPUTS
        rest[:, : whole * GROUP_INPUTS].unflatten(1, (whole, GROUP_INPUTS)).mul_(scales[:, :whole, None])
        rest[:, whole * GROUP_INPUTS :].mul_(scales[:, whole : whole + 1])
        return numbers

    def rows(self, picked: Tensor) -> Tensor:
        """The rows `picked`, restored."""
        return self.kept_in(*(stored[picked] for stored in self.tensors)).restored()

    def cut(self, dim: int, start: int, stop: int) -> Packed:
        """Rows or columns [start, stop), in the same memory."""
        bits, packed, scales, skipped, _ = self.numbers
        if dim == 0:
            return self.kept_in(packed[start:stop], scales[start:stop])
        if bits == 8:
            return Packed(self.numbers._replace(packed=packed[:, start:stop]), stop - start, self.dtype)
        odd, first, end = skipped % 2, skipped + start, skipped + stop
        packed = packed[:, (start + odd) // 2 : -(-(stop + odd) // 2)]
        scales = scales[:, first // GROUP_INPUTS : -(-end // GROUP_INPUTS)]
        return Packed(Numbers(bits, packed, scales, first % GROUP_INPUTS), stop - start, self.dtype)


def _in_rows(stored: Tensor) -> Tensor:
    """Numbers of a row without gaps: files may have matrices by columns."""
    return stored if stored.stride(1) == 1 else stored.contiguous()


def _restored(argument: Any) -> Any:
    return argument.restored() if isinstance(argument, Packed) else argument
