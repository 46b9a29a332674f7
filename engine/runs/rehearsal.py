"""What a rehearsal plays, whether it is worth its time, and the dilation that follows from it. Pure.

Before the clock starts, the devices play the first prompt and a few tokens. What that is late on this machine
now is judged as a run is, by half of what a run may be off: what a rehearsal does not meet a run may. What
data decided in it, as which drafts are refused, its prediction takes from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from engine.domain.report import Outcome
from engine.domain.scenario import Scenario
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request
from engine.reports.fold import fold
from engine.runs.attempts import Attempt
from engine.runs.fidelity import Played, needed_dilation
from engine.runs.native import Simulated
from engine.runs.predict import Prepared, decisions_in, simulate
from engine.worlds.real.dilation import end_s
from engine.worlds.real.rehearsing import rehearsed
from engine.worlds.simulated.device import Decisions

COST_FRAC, COST_WALL_S = 0.15, 2.0
"""What rehearsals may take in all: of the run's predicted wall time, or so many seconds if that is more."""

MOST_TIMES = 2
"""A rehearsal that was late is played once more, warm: what was late only once was an accident."""


class Rehearsal(NamedTuple):
    """What is played at a time, the prediction of that, how often it may be played, and the largest dilation
    that may follow.
    """

    prepared: Prepared
    predicted: Simulated
    times: int
    most: float

    @property
    def requests(self) -> Sequence[Request]:
        return self.prepared.requests

    def needed(
        self, trace: Sequence[Span | Mark], pacing: Mapping[str, Mapping[str, Any]], dilation: float
    ) -> float:
        """The dilation that the run needs by what was played at `dilation`."""
        items = sorted(trace, key=lambda item: item.end_s if isinstance(item, Span) else item.time_s)
        report = _folded(self.prepared, items, dilation)
        played = Played(items, pacing, (), "")
        predicted = self._predicted_with(decisions_in(items))
        needed = needed_dilation(report, played, predicted.report, predicted.trace)
        return max(dilation, min(needed, self.most))

    def _predicted_with(self, decisions: Decisions) -> Simulated:
        """The prediction with the decisions that were taken: other work than was expected is not lateness."""
        if not decisions:
            return self.predicted
        trace, outcome = simulate(self.prepared, decisions=decisions)
        if outcome.kind != "finished":
            return self.predicted
        return Simulated(_folded(self.prepared, trace, 1.0), trace)


def rehearsal_of(prepared: Prepared, expected: Sequence[Span | Mark], attempt: Attempt) -> Rehearsal | None:
    """The rehearsal of a run that is predicted as `expected`; None where it would take too long, or where the
    dilation is given.
    """
    if prepared.spec.dilation != "auto":
        return None
    short = rehearsed(prepared.spec).model_copy(update={"scenario": Scenario()})
    together = prepared.requests if short.workload.pattern == "bursty" else prepared.requests[:1]
    requests = tuple(
        request.model_copy(update={"new_tokens": None, "arrival_s": 0.0, "stop_tokens": ()})
        for request in together
    )
    played = Prepared(short, requests, prepared.plan)
    trace, outcome = simulate(played)
    if outcome.kind != "finished":
        return None
    most_s = max(COST_WALL_S, COST_FRAC * end_s(expected) * attempt.dilation)
    times = min(MOST_TIMES, int(most_s / max(end_s(trace) * attempt.dilation, 1e-9)))
    return (
        Rehearsal(played, Simulated(_folded(played, trace, 1.0), trace), times, attempt.most)
        if times
        else None
    )


def _folded(prepared: Prepared, trace: Sequence[Span | Mark], dilation: float) -> Any:
    return fold(
        prepared.spec, prepared.plan, list(trace), world="emulated", outcome=Outcome(), dilation=dilation
    )
