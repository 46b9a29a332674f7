"""How an emulated link is shaped: a token bucket of frames, and what it lets through at once.

The emulation sets these figures (`emulator/network/shaping.py`). A paced run does not depend on the bucket,
because its messages are used when they would arrive over an ideal link; a run at native speed does, and so
does its prediction.
"""

from __future__ import annotations

from engine.domain.units import BITS_PER_BYTE

FRAME_BYTES, SEGMENT_BYTES = 1514, 1448
"""Bytes of a full Ethernet frame, which the bucket counts, and of its TCP payload, which specs count: an MTU
of 1500 less the headers of IP and TCP and TCP's time stamps."""

BURST_S = 120e-6
"""The bucket holds one piece and this much time: a bucket of one frame alone loses what a late timer
leaves (15 % at 100 Mbit/s on a busy host), a bigger one hands out messages early."""

PIECE_S = 240e-6
"""TCP may hand over so much at once (a piece; at least one frame). Pieces that do not fit the bucket are
cut into frames, and single frames cost ten times the processor time per byte."""

MIN_BURST_BYTES = 1600  # one frame must fit, after the kernel's rounding


def bucket_bit_per_s(payload_bit_per_s: float) -> int:
    """Frame bit/s of the bucket, so that TCP payload flows at `payload_bit_per_s`."""
    return max(BITS_PER_BYTE, round(payload_bit_per_s * FRAME_BYTES / SEGMENT_BYTES))


def burst_bytes(rate_bit_per_s: float) -> int:
    """Bytes of frames that a bucket of `rate_bit_per_s` holds."""
    piece = FRAME_BYTES * frames_per_piece(rate_bit_per_s)
    return max(MIN_BURST_BYTES, round(piece + rate_bit_per_s * BURST_S / BITS_PER_BYTE))


def frames_per_piece(rate_bit_per_s: float) -> int:
    return max(1, int(rate_bit_per_s * PIECE_S / BITS_PER_BYTE / FRAME_BYTES))


def burst_payload_bytes(payload_bit_per_s: float) -> float:
    """Bytes of a message that a full bucket lets through at once."""
    return burst_bytes(bucket_bit_per_s(payload_bit_per_s)) * SEGMENT_BYTES / FRAME_BYTES
