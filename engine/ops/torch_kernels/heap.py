"""Keeps freed memory in the process, so that operations do not ask the kernel for the same pages every time.

glibc maps an allocation from 128 KiB on by itself, or returns the free top of its heap, and the kernel clears
the pages again for the next operation: some 3 µs per 4 KiB on a virtual machine, a tenth of a layer's time
over a prompt.
"""

from __future__ import annotations

import ctypes

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # malloc.h
LARGEST_BYTES = 32 << 20
"""The largest threshold for mapping that glibc allows: half of an arena's heap (`HEAP_MAX_SIZE`)."""

KEPT_BYTES = 64 << 20
"""Free memory that stays at the top of the heap."""


def keep_freed_memory() -> bool:
    """Let this process keep freed memory for whichever thread needs it next. False where the C library has no
    `mallopt` (musl).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mallopt(M_ARENA_MAX, 1)
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))


def touch(size_bytes: int) -> None:
    """Let the heap of this thread grow by so many bytes (at most 16 MiB) and have their pages."""
    torch.zeros(min(size_bytes, LARGEST_BYTES // 2), dtype=torch.uint8).fill_(1)
