"""When messages that share a device's own link can be through it, at the earliest. `paths.py` uses it.

The kernel's token bucket lets about one frame pass at once, and the messages of a decode step are often
smaller than a frame. Several of them, sent to or by one device at the same time, would pass together as fast
as one. Each device knows all messages that leave it and all that reach it, so it can tell how long they take
on its own links. What they share in the middle of their paths it cannot know.
"""

from __future__ import annotations


class OwnLink:
    """One direction of a link at the end of a path. Each peer's messages are one flow, and flows share the
    link equally (processor sharing), as the simulated world's flows do on one link.

    `backlog_bits` are left of each flow at `at_s`.
    """

    def __init__(self) -> None:
        self.at_s = 0.0
        self.backlog_bits: dict[int, float] = {}

    def enter(self, peer: int, size_bits: float, bit_per_s: float, start_s: float) -> float:
        """When a message from or to `peer` that enters at `start_s` is through at the earliest (s).

        Times are virtual. A message that entered before one that is known already has had the link for itself
        until then.
        """
        self.drain(start_s, bit_per_s)
        left_bits = max(0.0, size_bits - (self.at_s - start_s) * bit_per_s)
        own_bits = self.backlog_bits[peer] = self.backlog_bits.get(peer, 0.0) + left_bits
        ahead_bits = sum(min(own_bits, other) for other in self.backlog_bits.values())
        return self.at_s + ahead_bits / bit_per_s

    def drain(self, now_s: float, bit_per_s: float) -> None:
        """Let the link carry what it can from `at_s` to `now_s`."""
        if now_s <= self.at_s:
            return
        bits, self.at_s = (now_s - self.at_s) * bit_per_s, now_s
        while self.backlog_bits and bits > 0:
            backlog = self.backlog_bits
            each = min(min(backlog.values()), bits / len(backlog))
            bits -= each * len(backlog)
            self.backlog_bits = {peer: left - each for peer, left in backlog.items() if left > each}
