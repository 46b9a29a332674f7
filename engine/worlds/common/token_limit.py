"""The limit on the time of a token: the run that exceeds it ends as out of time (LIME, section V-C)."""

from __future__ import annotations

import math

from engine.domain.errors import OutOfTime
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s


class TokenLimit:
    """Watches the tokens of a run, from the marks of its source. Without a limit (None) it does nothing.

    A token may take `limit_s` virtual seconds since the one before it of the same request, the first one
    since the arrival of the request. For a model that generates nothing, the limit is that of the answer.
    """

    def __init__(self, limit_s: float | None):
        self.limit_s = math.inf if limit_s is None else limit_s
        self._since_s: dict[int, float] = {}
        self._next: dict[int, int] = {}

    @property
    def due_s(self) -> float:
        """The virtual time by which the next token must be there; infinite if none is awaited."""
        return min(self._since_s.values(), default=math.inf) + self.limit_s

    def record(self, item: Span | Mark) -> None:
        """Take a mark of the source into account. Raises `OutOfTime` if its token came too late."""
        if not isinstance(item, Mark) or math.isinf(self.limit_s):
            return
        request = item.facts.get("request", -1)
        if item.name == "request_arrived":
            self._since_s[request], self._next[request] = item.time_s, 0
        elif item.name == "request_cancelled":
            self._since_s.pop(request, None)
        elif item.name in ("token_emitted", "request_finished") and request in self._since_s:
            if item.time_s > self._since_s[request] + self.limit_s:
                raise self._out_of_time(request)
            self._since_s[request] = item.time_s
            self._next[request] += 1
            if item.name == "request_finished":
                del self._since_s[request]

    def check(self, now_s: float) -> None:
        """Check that no token is overdue at virtual time `now_s`; raises `OutOfTime`."""
        if now_s > self.due_s:
            raise self._out_of_time(min(self._since_s, key=lambda request: self._since_s[request]))

    def _out_of_time(self, request: int) -> OutOfTime:
        index, since_s = self._next[request], self._since_s[request]
        before = "the one before it" if index else "the request arrived"
        return OutOfTime(
            f"Token {index} of request {request} was not there {human_s(self.limit_s)} after {before} at "
            f"{since_s:.3f} s: this is the limit on the time of a token.",
            time_s=since_s + self.limit_s,
        )
