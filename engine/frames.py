"""How a tensor crosses a connection: a fixed header, then its bytes. The same sizes in both worlds."""

from __future__ import annotations

import struct
from typing import NamedTuple

from engine.errors import EdgeLoomError

FRAME_HEADER_BYTES = 112
MAX_DIMS = 5
MAX_TAG_BYTES = 40
DTYPES = ("float32", "bfloat16", "float16", "int64")

_LAYOUT = struct.Struct(f"<qqqddBBB{MAX_DIMS}I{MAX_TAG_BYTES}s")


class FrameHeader(NamedTuple):
    """Times are monotonic wall seconds, one clock for all devices: `sent_s` is the sender's logical time
    of sending, `due_s` the earliest time at which an idle path could have delivered the message.
    """

    message: int
    payload_bytes: int
    request_token: tuple[int, int]
    sent_s: float
    due_s: float
    dtype: str
    shape: tuple[int, ...]
    tag: str

    def pack(self) -> bytes:
        tag = self.tag.encode()
        if len(tag) > MAX_TAG_BYTES or len(self.shape) > MAX_DIMS:
            raise EdgeLoomError(
                f"message {self.tag!r} of shape {self.shape}: a frame carries tags up to {MAX_TAG_BYTES} "
                f"bytes and tensors up to {MAX_DIMS} dimensions; shorten the tag or reshape."
            )
        request, token = self.request_token
        dims = (*self.shape, *[0] * (MAX_DIMS - len(self.shape)))
        packed = _LAYOUT.pack(
            self.message, self.payload_bytes, (request + 1) << 32 | (token + 1), self.sent_s, self.due_s,
            DTYPES.index(self.dtype), len(self.shape), len(tag), *dims, tag,
        )
        return packed.ljust(FRAME_HEADER_BYTES, b"\0")

    @classmethod
    def unpack(cls, data: bytes | bytearray | memoryview) -> FrameHeader:
        fields = _LAYOUT.unpack_from(data)
        message, payload, both, sent_s, due_s, dtype, num_dims, tag_len = fields[:8]
        dims, tag = fields[8 : 8 + num_dims], fields[8 + MAX_DIMS]
        return cls(
            message, payload, ((both >> 32) - 1, (both & 0xFFFFFFFF) - 1), sent_s, due_s, DTYPES[dtype],
            tuple(dims), tag[:tag_len].decode(),
        )
