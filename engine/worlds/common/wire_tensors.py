"""Converts torch tensors to the bytes on a connection and back, without copies."""

from __future__ import annotations

import torch

from engine.ops.tensors import payload_bytes
from engine.program.frames import NOTE_BYTES, FrameHeader

AS_ARRAYS = frozenset({torch.float32, torch.int64, torch.uint8, torch.float16})
"""Number types that numpy has, too."""


def bytes_of(tensor: torch.Tensor) -> memoryview:
    """The tensor's bytes, without a copy where it is contiguous."""
    if payload_bytes(tensor) == 0:
        return memoryview(b"")
    whole = tensor.detach().contiguous()
    array = (whole if whole.dtype in AS_ARRAYS else whole.view(torch.uint8)).numpy()
    return memoryview(array).cast("B")  # type: ignore[arg-type]  # ndarrays do have the buffer protocol


def tensor_of(header: FrameHeader, body: bytearray) -> torch.Tensor:
    """Inverse of `bytes_of`, after the note; the tensor owns `body`."""
    dtype = getattr(torch, header.dtype)
    if not header.payload_bytes:
        return torch.empty(header.shape, dtype=dtype)
    return torch.frombuffer(body, dtype=dtype, offset=header.note_size * NOTE_BYTES).reshape(header.shape)
