"""Judges the trials of a campaign.

A trial is good if it finishes with the right tokens and every device has done what the prediction of the same
faults says, or if it ends with a clear reason why no plan could finish it: the source has failed, or the
remaining devices cannot hold the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from bench.chaos.kills import Trial
from bench.chaos.passes import Passes, as_it_happened, passes_of, unequal, unmatched
from engine.domain.conditions import Conditions
from engine.domain.report import RunReport
from engine.domain.scenario import DropDevice, FreezeDevice, JoinDevice, Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.world import MEASURED
from engine.runs.predict import decisions_in, prepare, simulate

Ending = Literal["finished", "ended clearly", "wrong tokens", "other work", "hung", "failed"]
GOOD: tuple[Ending, ...] = ("finished", "ended clearly")


class Verdict(NamedTuple):
    """How a trial ended, and why that is not good, in a sentence."""

    ending: Ending
    why: str = ""


def judge(one: Trial, report: RunReport, trace: Sequence[Span | Mark] = ()) -> Verdict:
    """How a trial ended. `trace` is that of an emulation; a prediction has nothing to be compared with."""
    outcome = report.outcome
    if outcome.kind == "finished":
        if not (_complete(one.spec, report) and _right(report)):
            return Verdict("wrong tokens", report.correctness.why or "a request has no or too few tokens")
        why = other_work(one.spec, report, trace) if report.world in MEASURED else ""
        return Verdict("other work", why) if why else Verdict("finished")
    if is_clear(outcome.kind, outcome.sentence):
        return Verdict("ended clearly")
    return Verdict("hung" if outcome.kind in ("deadlock", "cancelled") else "failed", outcome.sentence)


PASSES_PER_FAULT = 4
"""A fault may meet the run one pass earlier than its replay: that pass and the first one under the next plan
then stand in one of them only, in each of the two.
"""


SETTLED_TOKENS = 4
"""Tokens after the last fault from which on a run and its replay have met all faults."""


def other_work(spec: RunSpec, report: RunReport, trace: Sequence[Span | Mark]) -> str:
    """What devices did that the prediction does not explain, in a sentence; empty if there is nothing.

    The prediction is the same run with its faults at the times at which the real one had them.
    """
    faults = Scenario(changes=as_it_happened(report.scenario.changes, trace))
    if why := unexplained_failure(spec, faults, trace):
        return why
    replay = spec.model_copy(update={"scenario": faults})
    replayed, _ = simulate(prepare(replay), decisions=decisions_in(trace))
    real, predicted = passes_of(trace), passes_of(replayed)
    if different := unequal(real, predicted):
        return different[0]
    missing = unmatched(real, predicted)
    if why := _another_end(faults, [(trace, real), (replayed, predicted)]):
        return why
    behind = sum(2 * tokens_apart(change.at_s, trace, replayed) for change in faults.changes)
    if len(missing) > PASSES_PER_FAULT * len(faults.changes) * spec.workload.together + behind:
        return f"{len(missing)} passes stand in the run or in its prediction alone: {missing[-1]}"
    return ""


def tokens_apart(at_s: float, *traces: Sequence[Span | Mark]) -> int:
    """How many more tokens one of two runs has at a moment. A fault then meets the runs so many passes apart:
    these stand in each of them under another plan than in the other.
    """
    one, other = (sum(item.time_s <= at_s for item in tokens_of(trace)) for trace in traces)
    return abs(one - other)


def tokens_of(trace: Sequence[Span | Mark]) -> list[Mark]:
    return [item for item in trace if isinstance(item, Mark) and item.name == "token_emitted"]


def _another_end(faults: Scenario, runs: Sequence[tuple[Sequence[Span | Mark], Passes]]) -> str:
    """A sentence, if the run ended under another plan than its prediction, long after the last fault."""
    last_s = max((change.at_s for change in faults.changes), default=0.0)
    plans = []
    for trace, passes in runs:
        if sum(token.time_s > last_s for token in tokens_of(trace)) < SETTLED_TOKENS:
            return ""
        plans.append(max(key.plan for key in passes))
    real, predicted = plans
    return (
        "" if real == predicted else f"it ended under plan {real}, and its prediction under plan {predicted}"
    )


def unexplained_failure(spec: RunSpec, faults: Scenario, trace: Sequence[Span | Mark]) -> str:
    """A device that was declared failed and had no reason to be, in a sentence; empty if there is none."""
    cluster, now = spec.cluster, Conditions(spec.cluster)
    hit: set[str] = set()
    waiting = list(faults.changes)
    for mark in sorted((item for item in trace if isinstance(item, Mark)), key=lambda mark: mark.time_s):
        while waiting and waiting[0].at_s <= mark.time_s:
            change = waiting.pop(0)
            now.apply(change)
            if isinstance(change, DropDevice | FreezeDevice):
                hit.add(change.device)
            elif isinstance(change, JoinDevice):
                hit.discard(change.device)
        if mark.name == "loss_detected" and mark.device not in hit:
            if now.reaches_source(cluster.rank(mark.device)):
                when = f"{mark.device} was declared failed at {mark.time_s:.3f} s"
                return f"{when}, and nothing had happened to it"
            hit.add(mark.device)
    return ""


def is_clear(kind: str, sentence: str) -> bool:
    """Whether a run ended because no plan could finish it."""
    return kind == "peer_lost" and ("it is the source" in sentence or "cannot go on" in sentence)


def _complete(spec: RunSpec, report: RunReport) -> bool:
    answered = [len(request.token_s) for request in report.requests]
    return answered == [spec.workload.new_tokens] * spec.workload.requests


def _right(report: RunReport) -> bool:
    return report.world not in MEASURED or report.correctness.ok is True
