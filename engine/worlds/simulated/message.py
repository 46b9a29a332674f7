"""A message of the simulated world, from the call of `send` until it is used."""

from __future__ import annotations

from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.trace import Span
from engine.ops.tensors import Tensor
from engine.program.ctx import Note
from engine.worlds.common.programs import Handle


class SimulatedMessage:
    """A tensor or its shape on the way from `src` to `dst`; `handle` is done when its last byte has left.

    `paced_bytes` pass at the rates of the links: all but those that buckets let through at once.
    `arrives_s` is set when the last byte has left over a path that loses packets. `arrival_is_final`: no
    later message can make it arrive sooner.
    """

    __slots__ = (
        "arrival_is_final",
        "arrives_s",
        "dst",
        "enters_s",
        "facts",
        "handle",
        "note",
        "paced_bytes",
        "sent_s",
        "sequence",
        "size_bytes",
        "src",
        "tag",
        "tensor",
    )

    def __init__(
        self,
        src: int,
        dst: int,
        tag: str,
        sequence: int,
        tensor: Tensor,
        note: Note,
        sent_s: float,
        facts: dict[str, Any],
    ):
        self.src, self.dst, self.tag, self.sequence = src, dst, tag, sequence
        self.tensor, self.note = tensor, note
        self.sent_s = sent_s
        self.facts = facts
        self.size_bytes: int = facts["bytes"]
        self.paced_bytes: float = self.size_bytes
        self.handle = Handle(f"send {tag}")
        self.enters_s = self.arrives_s = 0.0
        self.arrival_is_final = False

    def span(self, kind: Any, cluster: ClusterSpec, end_s: float) -> Span:
        """The span of sending or receiving this message, on the device that does it."""
        me, peer, facts = cluster.devices[self.src].name, cluster.devices[self.dst].name, self.facts
        if kind == "recv":
            me, peer = peer, me
        return Span(
            me,
            kind,
            facts["name"],
            facts["layer"],
            self.sent_s,
            end_s,
            self.size_bytes,
            facts["payload_bytes"],
            peer=peer,
            request=facts["request"],
            token=facts["token"],
            message=facts["message"],
        )
