"""Changes of a run's scenario that never took place, since the run had ended before."""

from __future__ import annotations

from engine.domain.report import RunReport
from engine.domain.scenario import Change, DeviceChange
from engine.domain.units import human_s
from engine.reports.effects import in_words


def missed_changes(report: RunReport) -> tuple[Change, ...]:
    """The changes that come after the last token of a finished run; of another one it is not known."""
    if report.outcome.kind != "finished":
        return ()
    return tuple(change for change in report.spec.scenario.changes if change.at_s > report.latency_s)


def was_undisturbed(report: RunReport) -> bool:
    """Whether something that was to change never changed: none of the changes of that kind and place came in
    time. A curve of rates may go on after the run.
    """
    missed = missed_changes(report)
    came = [change for change in report.spec.scenario.changes if change not in missed]
    return not {_what(change) for change in missed} <= {_what(change) for change in came}


def _what(change: Change) -> tuple[str, str]:
    return change.kind, change.device if isinstance(change, DeviceChange) else change.link


def missed_text(report: RunReport) -> str:
    """What they are, in one sentence; "" if there are none."""
    missed = missed_changes(report)
    if not missed:
        return ""
    named = "; ".join(f"{in_words(change)} at {human_s(change.at_s)}" for change in missed)
    return f"Never took place, since the run had ended after {human_s(report.latency_s)}: {named}."
