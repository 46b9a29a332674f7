"""Telling a dead peer from a quiet one.

A killed process closes its connections. A frozen one, or one behind a link that is down, just says
nothing; TCP notices after half a minute. So who waits for a peer and hears nothing asks it, and a peer that
does not answer for `silence_s` is suspected. Any byte counts as an answer: a slow transfer is not a loss.
Nothing is sent while messages flow.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.program.frames import FrameHeader
from engine.worlds.real.connections import Incoming

if TYPE_CHECKING:
    from engine.worlds.real.loop import DeviceLoop

CHECK_PERIOD_S = 0.1
ASK_AFTER_S, QUESTIONS = 0.3, 3
"""Virtual seconds before a question, longer than TCP takes to see that a last packet was lost (the question
would show it the gap sooner); but so many questions fit into the silence that means a loss.
"""

LEAST_SILENCE_S = 1.0
"""Wall seconds: a process on a busy host may be that late without being lost."""

QUESTION, ANSWER = -1, -2
"""Message numbers of frames that are no messages."""


class Silence:
    """One device's watch over the peers that it waits for."""

    def __init__(self, device: DeviceLoop):
        self.device = device
        self.checked_s = 0.0
        self.asked_s: dict[int, float] = {}
        self.suspected: set[int] = set()

    def check(self) -> None:
        """Ask peers that are awaited and silent; suspect those that do not answer."""
        now_s = time.monotonic()
        if now_s - self.checked_s < CHECK_PERIOD_S:
            return
        self.checked_s = now_s
        device = self.device
        limit_s = max(LEAST_SILENCE_S, device.spec.silence_s * device.clock.dilation)
        ask_after_s = min(ASK_AFTER_S * device.clock.dilation, limit_s / QUESTIONS)
        for peer, since_s in self._awaited().items():
            silent_s = now_s - max(since_s, device.connections.heard_s(peer))
            if silent_s > limit_s:
                self.suspect(peer)
            elif silent_s > ask_after_s and now_s - self.asked_s.get(peer, 0.0) > ask_after_s:
                self.asked_s[peer] = now_s
                self._say(peer, QUESTION)

    def answer(self, messages: list[Incoming]) -> list[Incoming]:
        """Answer questions among `messages`; returns the others."""
        for message in messages:
            if message.header.message == QUESTION:
                self._say(message.src, ANSWER)
        return [message for message in messages if message.header.message >= 0]

    def suspect(self, peer: int) -> None:
        """Tell the parent, once: it knows more, and decides."""
        if peer not in self.suspected and peer not in self.device.lost:
            self.suspected.add(peer)
            self.device.tell({"type": "suspect", "rank": peer})

    def _awaited(self) -> dict[int, float]:
        """Peers that programs wait for, and since when (wall)."""
        device = self.device
        awaited: dict[int, float] = {}
        for (peer, _), handles in device.expected.items():
            waiting = [program for handle in handles for program in handle.waiters]
            if waiting:
                since_s = device.clock.wall(min(program.waiting_since_s for program in waiting))
                awaited[peer] = min(since_s, awaited.get(peer, since_s))
        return awaited

    def _say(self, peer: int, number: int) -> None:
        outlet = self.device.connections.outlets.get(peer)
        if outlet is not None and not outlet.backlog:
            now_s = time.monotonic()
            header = FrameHeader(number, 0, (-1, -1), now_s, now_s, "int64", (0,), "")
            outlet.write(header, b"", memoryview(b""), lambda at_s: None)
