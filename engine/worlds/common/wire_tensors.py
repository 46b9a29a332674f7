"""Converts torch tensors to the bytes on a connection and back, without copies."""

from __future__ import annotations

import torch

from engine.ops.tensors import payload_bytes
from engine.program.frames import NOTE_BYTES, FrameHeader


def bytes_of(tensor: torch.Tensor) -> memoryview:
    """The tensor's bytes, without a copy where it is contiguous."""
    if payload_bytes(tensor) == 0:
        return memoryview(b"")
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())  # type: ignore[arg-type]  # ndarrays do have the buffer protocol


def tensor_of(header: FrameHeader, body: bytearray) -> torch.Tensor:
    """Inverse of `bytes_of`, after the note; the tensor owns `body`."""
    dtype = getattr(torch, header.dtype)
    if not header.payload_bytes:
        return torch.empty(header.shape, dtype=dtype)
    return torch.frombuffer(body, dtype=dtype, offset=header.note_size * NOTE_BYTES).reshape(header.shape)
