"""Stores rows of KV caches in files, for a device that is short of memory, and reads them back.

A file has no name, so it is deleted when it is closed. It contains whole rows, [rows, 2, B, K, E], so that
later rows follow earlier ones.
"""

from __future__ import annotations

import tempfile
import weakref
from typing import BinaryIO

import torch

from engine.ops.torch_kernels.storage import Caches, KVCache
from engine.worlds.common.wire_tensors import bytes_of


class RowFiles:
    """One file per cache and layer, with the oldest rows of `caches`."""

    def __init__(self, caches: Caches):
        self.caches = caches
        self.files: dict[tuple[str, int], RowFile] = {}

    def store(self, cache: str, layer: int, rows: int) -> None:
        """Write the oldest `rows` rows to disk, except those that are there already."""
        if (cache, layer) not in self.files:
            self.files[cache, layer] = RowFile()
        self.files[cache, layer].store(self.caches[cache, layer], rows)

    def drop(self, cache: str, layer: int, rows: int) -> None:
        """Remove the oldest `rows` rows from memory."""
        self.caches[cache, layer].evict(rows)

    def fetch(self, cache: str, layer: int) -> None:
        """Read all rows of the file into memory."""
        self.files[cache, layer].fetch(self.caches[cache, layer])

    def release(self, cache: str) -> None:
        for key in [key for key in self.files if key[0] == cache]:
            self.files.pop(key).file.close()

    def clear(self) -> None:
        for one in self.files.values():
            one.file.close()
        self.files.clear()


class RowFile:
    """The oldest `rows` rows of one KV cache. The file is closed with this object at the latest."""

    def __init__(self) -> None:
        self.file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  (open for as long as the cache lives)
        weakref.finalize(self, self.file.close)
        self.rows = 0

    def store(self, cache: KVCache, rows: int) -> None:
        if rows > self.rows:
            pair = (cache.keys[:, :, self.rows : rows], cache.values[:, :, self.rows : rows])
            self.file.seek(0, 2)
            self.file.write(bytes_of(torch.stack(pair).permute(3, 0, 1, 2, 4)))
            self.rows = rows

    def fetch(self, cache: KVCache) -> None:
        batch, heads, _, wide = cache.keys.shape
        self.file.seek(0)
        content = bytearray(self.file.read())
        if content:
            rows_R2BKE = torch.frombuffer(content, dtype=cache.keys.dtype).view(-1, 2, batch, heads, wide)
            keys_BKRE, values_BKRE = rows_R2BKE.permute(1, 2, 3, 0, 4)
            cache.precede(keys_BKRE, values_BKRE)
