"""Changes of a run's scenario that never took place, since the run had ended before."""

from __future__ import annotations

from engine.domain.report import RunReport
from engine.domain.scenario import Change
from engine.domain.units import human_s
from engine.reports.effects import in_words


def missed_changes(report: RunReport) -> tuple[Change, ...]:
    """The changes that come after the last token of a finished run; of another one it is not known."""
    if report.outcome.kind != "finished":
        return ()
    return tuple(change for change in report.spec.scenario.changes if change.at_s > report.latency_s)


def missed_text(report: RunReport) -> str:
    """What they are, in one sentence; "" if there are none."""
    missed = missed_changes(report)
    if not missed:
        return ""
    named = "; ".join(f"{in_words(change)} at {human_s(change.at_s)}" for change in missed)
    return f"Never took place, since the run had ended after {human_s(report.latency_s)}: {named}."
