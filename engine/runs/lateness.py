"""Watches how late a run is that has begun: whether it will not be valid, as its beginning tells. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from engine.domain.trace import Mark, Span
from engine.reports.against_model import operation_of, times_at_own_speed
from engine.runs.fidelity import LATENCY_LIMIT
from engine.runs.operations import MODEL_LIMIT, NEGLIGIBLE_FRAC, least_busy
from engine.worlds.real.dilation import end_s, enough_dilation_for_latency

WATCHED_FRAC, WATCHED_WALL_S = 0.1, 1.0
"""Until when a run may be ended: of its predicted time, and in wall seconds. Later, it costs less to let it
end.
"""
OPERATIONS = 40
"""How many operations it takes to say that they are late on average."""


class LatenessWatch:
    """The beginning of one run at `dilation`, predicted as `expected` before any of its `changes_s`, the
    times at which something is to change.

    The prediction does not know what data decide in the run. An operation is compared with the same one of
    it, whatever was decided; the first token only if nothing is decided before it, such as who goes to which
    expert.
    """

    def __init__(self, expected: Sequence[Span | Mark], dilation: float, changes_s: Sequence[float] = ()):
        self.dilation = dilation
        self.until_s = min(
            [max(WATCHED_FRAC * end_s(expected), WATCHED_WALL_S / dilation), *changes_s],
        )
        self.model_s = times_at_own_speed(expected)
        first = [item for item in expected if isinstance(item, Mark) and item.name == "token_emitted"]
        self.answers = sum(1 for mark in first if mark.facts["index"] == 0)
        judges_first = self.answers == 1 and not _decides_before(expected, first[0])
        self.first_s = first[0].facts["latency_s"] if judges_first else 0.0
        self.count = 0
        self.negligible_s = NEGLIGIBLE_FRAC * end_s(expected)
        self.took_s: dict[str, float] = defaultdict(float)
        self.expected_s: dict[str, float] = defaultdict(float)
        self.needed: float | None = None

    def record(self, item: Span | Mark) -> None:
        """Take what a device says into account."""
        if isinstance(item, Mark):
            if item.name == "token_emitted" and item.time_s <= self.until_s:
                self._judge_first(item)
        elif item.kind == "compute" and item.end_s <= self.until_s:
            own_s = self.model_s.get(operation_of(item))
            if own_s:
                self.count += 1
                self.expected_s[item.device] += own_s
                self.took_s[item.device] += max(item.end_s - item.start_s, own_s)
                self._judge_operations()

    def _judge_operations(self) -> None:
        """Of devices whose operations a verdict judges."""
        judged = self.took_s.keys() - least_busy(self.took_s, self.negligible_s)
        expected_s = sum(self.expected_s[device] for device in judged)
        if expected_s:
            took_s = sum(self.took_s[device] for device in judged)
            self._judge(took_s / expected_s - 1, MODEL_LIMIT, self.count >= OPERATIONS)

    def _judge_first(self, mark: Mark) -> None:
        if self.first_s and mark.facts["index"] == 0:
            self._judge(mark.facts["latency_s"] / self.first_s - 1, LATENCY_LIMIT)

    def _judge(self, error: float, limit: float, is_enough: bool = True) -> None:
        if is_enough and error > limit:
            needed = enough_dilation_for_latency(self.dilation, error, limit)
            self.needed = max(needed, self.needed or 0.0)


def _decides_before(expected: Sequence[Span | Mark], token: Mark) -> bool:
    """Whether data decide something before `token`."""
    return any(
        isinstance(item, Mark) and item.name == "decided" and item.time_s <= token.time_s for item in expected
    )
