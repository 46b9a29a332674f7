"""What happened: spans with a duration and marks without. Times are virtual seconds from the start.

The same format comes out of both worlds and out of a live run; everything a person sees of a run's
behaviour is folded from it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

SpanKind = Literal["compute", "send", "recv", "load", "store", "evict", "wait", "stage"]


class Span(NamedTuple):
    """One activity of one device.

    send: from the moment it was asked for until its last byte left; `peer` is the receiver.
    recv: from the sender's start of sending until the message is usable here; `peer` is the sender.
    wait: this device's program was blocked, `name` says on what (it overlaps the recv it waits for).
    load, store: the disk at work, on weights or on rows of a KV cache ("kv_rows").
    bytes counts a message's payload and frame header, `payload_bytes` the payload alone; for compute
    `bytes` is what the operation reads and writes in memory.
    `message` numbers the messages of one (src, dst) pair, so that a recv finds its send.
    """

    device: str
    kind: SpanKind
    name: str
    layer: int
    start_s: float
    end_s: float
    bytes: int = 0
    payload_bytes: int = 0
    flops: int = 0
    peer: str = ""
    request: int = -1
    token: int = -1
    message: int = -1


class Mark(NamedTuple):
    """One event in time. `name` is past tense: token_emitted, link_changed, device_lost, plan_changed…"""

    time_s: float
    name: str
    device: str = ""
    facts: dict[str, Any] = {}  # noqa: RUF012  (never mutated: marks are values)


def to_json(item: Span | Mark) -> dict[str, Any]:
    """`{"type": "span" | "mark", …fields}`: the event that a browser or a file gets."""
    return {"type": "span" if isinstance(item, Span) else "mark", **item._asdict()}


def from_json(data: dict[str, Any]) -> Span | Mark:
    """Inverse of `to_json`."""
    fields = {key: value for key, value in data.items() if key != "type"}
    return Span(**fields) if data["type"] == "span" else Mark(**fields)
