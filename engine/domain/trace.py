"""The trace of a run: spans, which have a duration, and marks, which do not.

Times are virtual seconds from the start of the run. Both worlds write the same trace; a live run sends it to
the browser as it grows, and reports are folded from it. Spans and marks are events (`events.py`); `type` says
which.

Neither is frozen, as other values are: a run may have a million of them, and a frozen dataclass takes six
times as long to make. Nobody changes one after it was emitted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

SpanKind = Literal["compute", "send", "recv", "load", "store", "evict", "wait", "stage"]


@dataclass(slots=True)
class Span:
    """One activity of one device.

    send: from the call until the last byte left; `peer` is the receiver.
    recv: from the sender's start of sending until the message is usable here; `peer` is the sender.
    wait: this device's program was blocked; `name` says on what. It overlaps the recv it waits for.
    load, store: the disk reads or writes weights or rows of a KV cache ("kv_rows").
    bytes counts a message's payload and frame header, `payload_bytes` the payload alone; for compute
    `bytes` is what the operation reads and writes in memory.
    `request` and `token`, -1 where it is of none, are those of the step; `flops` of compute, else 0.
    `type` tells spans from marks in JSON.
    `message` numbers the messages of one (src, dst) pair, so that a recv can be matched with its send.
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
    type: Literal["span"] = "span"


@dataclass(slots=True)
class Mark:
    """One moment. `name` is past tense: token_emitted, link_changed, device_lost, plan_changed… `facts` are
    what `ctx.mark` was given, JSON. `type` tells marks from spans.
    """

    time_s: float
    name: str
    device: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    type: Literal["mark"] = "mark"
