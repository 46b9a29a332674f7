"""The format of a message: a fixed header, a note of integers, then the tensor's bytes.

Both worlds use these sizes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from engine.domain.errors import EdgeLoomError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

FRAME_HEADER_BYTES = 112
MAX_DIMS = 5
MAX_TAG_BYTES = 40
DTYPES = ("float32", "bfloat16", "float16", "int64", "uint8")

NOTE_BYTES = 8
_LAYOUT = struct.Struct(f"<qqqddBBBBBI{MAX_DIMS}I{MAX_TAG_BYTES}sH")
MAX_NOTE = 255
EPOCHS = 256
CHANGES = 1 << 16

Size = TypeVar("Size", int, float, "NDArray[float64]")


def framed_bytes(payload_bytes: Size, note_size: int = 0) -> Size:
    """Bytes of a message on the wire: its frame header, a note of `note_size` integers, its tensor."""
    return FRAME_HEADER_BYTES + note_size * NOTE_BYTES + payload_bytes


class FrameHeader(NamedTuple):
    """The header of one message.

    Times are monotonic wall seconds of the one clock of all devices: `sent_s` is the sender's logical time of
    sending, `due_s` the earliest time at which an idle path could have delivered the message. `epoch` counts
    plans, modulo `EPOCHS`: a device ignores messages of an earlier plan. `sequence` counts the messages of
    one tag to one receiver under one plan: the receiver checks that none is missing and none overtakes.
    `changes` counts the changes of links that the sender knew, modulo `CHANGES`.
    """

    message: int
    payload_bytes: int
    request_token: tuple[int, int]
    sent_s: float
    due_s: float
    dtype: str
    shape: tuple[int, ...]
    tag: str
    note_size: int = 0
    epoch: int = 0
    sequence: int = 0
    changes: int = 0

    @property
    def body_bytes(self) -> int:
        """Bytes after the header: note and tensor."""
        return self.framed_bytes - FRAME_HEADER_BYTES

    @property
    def framed_bytes(self) -> int:
        """Bytes of the whole message."""
        return framed_bytes(self.payload_bytes, self.note_size)

    def pack(self) -> bytes:
        tag = self.tag.encode()
        if len(tag) > MAX_TAG_BYTES or len(self.shape) > MAX_DIMS or self.note_size > MAX_NOTE:
            raise EdgeLoomError(
                f"message {self.tag!r} of shape {self.shape}, note of {self.note_size}: a frame carries tags "
                f"up to {MAX_TAG_BYTES} bytes, tensors up to {MAX_DIMS} dimensions and notes up to "
                f"{MAX_NOTE} integers; shorten or reshape."
            )
        request, token = self.request_token
        dims = (*self.shape, *[0] * (MAX_DIMS - len(self.shape)))
        packed = _LAYOUT.pack(
            self.message,
            self.payload_bytes,
            (request + 1) << 32 | (token + 1),
            self.sent_s,
            self.due_s,
            DTYPES.index(self.dtype),
            len(self.shape),
            len(tag),
            self.note_size,
            self.epoch,
            self.sequence,
            *dims,
            tag,
            self.changes,
        )
        return packed.ljust(FRAME_HEADER_BYTES, b"\0")

    @classmethod
    def unpack(cls, data: bytes | bytearray | memoryview) -> FrameHeader:
        fields = _LAYOUT.unpack_from(data)
        message, payload, both, sent_s, due_s, dtype, num_dims, tag_len, note_size, epoch = fields[:10]
        sequence, dims, tag = fields[10], fields[11 : 11 + num_dims], fields[11 + MAX_DIMS]
        return cls(
            message,
            payload,
            ((both >> 32) - 1, (both & 0xFFFFFFFF) - 1),
            sent_s,
            due_s,
            DTYPES[dtype],
            tuple(dims),
            tag[:tag_len].decode(),
            note_size,
            epoch,
            sequence,
            fields[-1],
        )


def pack_note(note: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(note)}q", *note)


def unpack_note(header: FrameHeader, body: bytearray) -> tuple[int, ...]:
    return struct.unpack_from(f"<{header.note_size}q", body)
