"""What a device keeps between operations: the tensors of its slices and its KV caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from engine.domain.errors import PlanError
from engine.domain.plan import Slice

FIRST_ROWS = 64


class Weights(Protocol):
    """The tensors of a slice, where an operation finds them: under their keys in `layout.py`.

    `found` is empty again whenever the tensors may be others: operations keep in it what they have looked up.
    """

    found: dict[Any, Any]

    def get(self, piece: Slice) -> Mapping[str, Tensor]: ...


class KVCache:
    """Keys and values of one layer and sequence batch on one device: [B, K, rows, E], growing in place.

    `first` is its first KV head: an operation on other heads raises `PlanError`.
    """

    __slots__ = ("first", "keys", "rows", "values")

    def __init__(self, first: int):
        self.first = first
        self.rows = 0
        self.keys = self.values = torch.empty(0)

    def append(self, keys_BKTE: Tensor, values_BKTE: Tensor) -> tuple[Tensor, Tensor]:
        """Add T rows; views of all rows so far."""
        start, stop = self.rows, self.rows + keys_BKTE.shape[2]
        if self.keys.ndim != 4 or stop > self.keys.shape[2]:
            self.keys, self.values = self._grown(self.keys, keys_BKTE), self._grown(self.values, values_BKTE)
        self.keys.narrow(2, start, stop - start).copy_(keys_BKTE)
        self.values.narrow(2, start, stop - start).copy_(values_BKTE)
        self.rows = stop
        return self.keys.narrow(2, 0, stop), self.values.narrow(2, 0, stop)

    def make_room(self, heads: int, wide: int, like: Tensor) -> None:
        """Make room for one more row of one sequence, in tensors without gaps."""
        if self.keys.ndim != 4 or self.rows == self.keys.shape[2]:
            new = like.new_empty(1, heads, 1, wide)
            self.keys, self.values = self._grown(self.keys, new), self._grown(self.values, new)
        self.keys, self.values = self.keys.contiguous(), self.values.contiguous()

    def evict(self, rows: int) -> None:
        """Remove the oldest `rows` rows."""
        if rows:
            self.keys = self.keys[:, :, rows : self.rows].clone()
            self.values = self.values[:, :, rows : self.rows].clone()
            self.rows -= rows

    def precede(self, keys_BKTE: Tensor, values_BKTE: Tensor) -> None:
        """Insert T older rows before those in the cache."""
        self.keys = torch.cat((keys_BKTE, self.keys[:, :, : self.rows]), dim=2)
        self.values = torch.cat((values_BKTE, self.values[:, :, : self.rows]), dim=2)
        self.rows += keys_BKTE.shape[2]

    def _grown(self, old: Tensor, new: Tensor) -> Tensor:
        batch, heads, rows, wide = new.shape
        grown = new.new_empty(batch, heads, max(FIRST_ROWS, 2 * (self.rows + rows)), wide)
        if self.rows:
            grown[:, :, : self.rows] = old[:, :, : self.rows]
        return grown


Caches = dict[tuple[str, int], KVCache]


def cache_of(name: str | None, layer: int, first: int, caches: Caches) -> KVCache | None:
    """The KV cache of `name` and `layer`, made at its first use, for KV heads from `first`."""
    if not name:
        return None
    cache = caches.get((name, layer))
    if cache is None:
        cache = caches[name, layer] = KVCache(first)
    if cache.first != first:
        raise PlanError(
            f"layer {layer}: the KV cache {name} has KV heads from {cache.first}, expected {first}: "
            "a device must keep its heads while a sequence is generated."
        )
    return cache
