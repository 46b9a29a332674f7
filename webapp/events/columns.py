"""The past of a run as columns: what a page reads when it opens a run, instead of one JSON object per event.

Nearly all events are spans. A chunk has those of some batches as arrays, one per field, and every other
event as JSON with its place among the spans: a page gets the same state from it as from the events one by
one. 20,000 events are 4.6 MB of JSON, and 0.25 MB as a compressed chunk.

Layout of a chunk, little-endian: the length of the header (u32), the header (JSON, padded with spaces to a
multiple of eight bytes with the length), the columns of REALS (f64 each), the columns of INTEGERS and then
those of TEXTS (i32 each; a text is its place in `names`). The header has

- `cursor`: the number of the last batch, as a string,
- `spans`: the length of every column,
- `names`: the texts,
- `others`: pairs of an event that is no span, and how many spans of the chunk are before it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import from_json

from webapp.events.stream import Batch

REALS = ("start_s", "end_s", "bytes", "payload_bytes", "flops")
INTEGERS = {"layer": -1, "request": -1, "token": -1, "message": -1}
TEXTS = ("device", "kind", "name", "peer")
"""The fields of a span (`engine/domain/trace.py`), and what an integer is in a span that lacks it."""
FASTEST = 1
"""zlib's level: the next ones take longer and save little."""
ADLER = 65521


def chunk_of(batches: Sequence[Batch]) -> bytes:
    """A chunk of the events of `batches`, of which there is at least one."""
    spans: list[dict[str, Any]] = []
    others: list[tuple[dict[str, Any], int]] = []
    for batch in batches:
        for event in from_json(batch.events):
            if event["type"] == "span":
                spans.append(event)
            else:
                others.append((event, len(spans)))
    names: dict[str, int] = {}
    columns = [np.array([span.get(field, 0) for span in spans], "<f8") for field in REALS]
    for field, missing in INTEGERS.items():
        columns.append(np.array([span.get(field, missing) for span in spans], "<i4"))
    for field in TEXTS:
        places = [names.setdefault(span.get(field, ""), len(names)) for span in spans]
        columns.append(np.array(places, "<i4"))
    head = {
        "cursor": str(batches[-1].number),
        "spans": len(spans),
        "names": list(names),
        "others": others,
    }
    header = json.dumps(head, separators=(",", ":")).encode()
    header += b" " * (-(len(header) + 4) % 8)
    length = len(header).to_bytes(4, "little")
    return b"".join((length, header, *(column.tobytes() for column in columns)))


class Deflated(NamedTuple):
    """Content as blocks of deflate (RFC 1951) that may follow each other; its Adler-32 and length."""

    blocks: bytes
    adler: int
    length: int


def deflated(content: bytes) -> Deflated:
    packer = zlib.compressobj(FASTEST, wbits=-zlib.MAX_WBITS)
    blocks = packer.compress(content) + packer.flush(zlib.Z_FULL_FLUSH)
    return Deflated(blocks, zlib.adler32(content), len(content))


def joined(parts: Sequence[Deflated]) -> bytes:
    """One stream in zlib's format (RFC 1950) of all contents, without compressing them again."""
    low, high = 1, 0
    for part in parts:  # of Adler-32, the lower half is 1 and all bytes added, the upper one all lower halves
        high = (high + (part.adler >> 16) + (low - 1) * part.length) % ADLER
        low = (low + (part.adler & 0xFFFF) - 1) % ADLER
    blocks = b"".join(part.blocks for part in parts)
    return b"\x78\x01" + blocks + b"\x03\x00" + (high << 16 | low).to_bytes(4, "big")
