"""Draws random weights: the same numbers for the same seed, whatever the slices, on any machine."""

from __future__ import annotations

import fcntl
import hashlib
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.layout import TensorPart

RANDOM_STD = 0.02
SHARED_ELEMENTS = 1 << 16  # below, a file costs more than the copies
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class RandomSource:
    """Draws tensors from (seed, tensor name, block), so that any slicing gives the same numbers on any
    machine.

    Matrices have variance 1/inputs: with the customary 0.02, the last token's own embedding wins every argmax
    of a small model, and token identity would prove nothing. Norms and biases are near 1 and 0 but not equal
    to them, so that leaving one out changes the results. With a directory `shared`, large tensors are drawn
    into files there, which all devices of a host map: each is drawn once and is in memory once, however many
    devices hold it.
    """

    def __init__(self, seed: int, shared: Path | None = None):
        self.seed = seed
        self.shared = shared

    def read(self, model: ModelSpec, part: TensorPart) -> Tensor:
        if part.start == part.stop:
            return torch.empty(part.shape)
        if self.shared is not None and prod(part.full_shape) >= SHARED_ELEMENTS:
            return self._mapped(self.shared, model, part)
        first, last = part.start // part.block, -(-part.stop // part.block)
        blocks = [self._block(model, part, number) for number in range(first, last)]
        drawn = torch.from_numpy(np.concatenate(blocks, axis=part.dim) if len(blocks) > 1 else blocks[0])
        return drawn.narrow(part.dim, part.start - first * part.block, part.stop - part.start)

    def _mapped(self, directory: Path, model: ModelSpec, part: TensorPart) -> Tensor:
        """Map the file of the whole tensor, draw the blocks of `part` that are not drawn yet, and return
        `part`.
        """
        path = directory / hashlib.sha256(part.name.encode()).hexdigest()[:32]
        blocks = -(-part.full_shape[part.dim] // part.block)
        with path.with_suffix(".drawn").open("a+b") as drawn:
            fcntl.flock(drawn, fcntl.LOCK_EX)  # let go of when it is closed
            done = _flags(drawn, blocks)
            whole = torch.from_file(
                str(path), shared=True, size=prod(part.full_shape), dtype=DTYPES[model.dtype]
            )
            whole = whole.view(part.full_shape)
            for number in range(part.start // part.block, -(-part.stop // part.block)):
                if not done[number]:
                    values = torch.from_numpy(self._block(model, part, number))
                    whole.narrow(part.dim, number * part.block, values.shape[part.dim]).copy_(values)
                    done[number] = 1
            drawn.truncate(0)
            drawn.write(done)
        return whole.narrow(part.dim, part.start, part.stop - part.start)

    def _block(self, model: ModelSpec, part: TensorPart, number: int) -> Any:
        shape = list(part.full_shape)
        shape[part.dim] = min(part.block, shape[part.dim] - number * part.block)
        digest = hashlib.sha256(f"{self.seed}/{part.name}/{number}".encode()).digest()
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "big")))
        drawn = generator.standard_normal(shape, dtype=np.float32)
        matrix = len(shape) > 1 and not part.name.startswith("embed.")
        drawn *= prod(part.full_shape[1:]) ** -0.5 if matrix else RANDOM_STD
        around_one = part.name.endswith("norm.weight") and not model.norm_adds_one
        return drawn + np.float32(1) if around_one else drawn


def _flags(file: BinaryIO, count: int) -> bytearray:
    """One byte per block, as the file has them: 0 not drawn yet."""
    file.seek(0)
    return bytearray(file.read().ljust(count, b"\0"))
