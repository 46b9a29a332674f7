"""The recoveries of a run, one per device that failed or joined, folded from the marks of its trace. Pure.

detect_s   from the fault until the other devices know of it (0 for a device that joins)
replan_s   from then until there is a new plan and all programs have stopped
reload_s   from then until the last device has loaded the weights that the plan gives it
rebuild_s  from then until the next token, after a prefill over the prompt and the kept tokens
A strategy that copes by itself needs no new plan: then rebuild_s begins at the detection.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.report import Recovery
from engine.domain.trace import Mark

PROGRESS = ("token_emitted", "request_finished")


def fold_recoveries(marks: Sequence[Mark]) -> tuple[Recovery, ...]:
    """One recovery per detected failure and per device that joined, in order of time.

    A device that was frozen and continued before its silence was detected is neither.
    """
    begins: list[Mark] = []
    asleep: set[str] = set()
    for mark in sorted(marks, key=lambda mark: mark.time_s):
        if mark.name == "device_frozen":
            asleep.add(mark.device)
        elif mark.name == "loss_detected" or (mark.name == "device_joined" and mark.device not in asleep):
            begins.append(mark)
        if mark.name in ("loss_detected", "device_joined"):
            asleep.discard(mark.device)
    recoveries = []
    for index, begin in enumerate(begins):
        until_s = begins[index + 1].time_s if index + 1 < len(begins) else float("inf")
        recoveries.append(_recovery(begin, [m for m in marks if begin.time_s <= m.time_s < until_s]))
    return tuple(recoveries)


def _recovery(begin: Mark, after: Sequence[Mark]) -> Recovery:
    """The phases of one recovery. `after` are the marks from `begin` to the next disturbance."""
    at_s = begin.facts.get("since_s", begin.time_s)
    replanned = next((mark for mark in after if mark.name == "replanned"), None)
    ready_s = planned_s = begin.time_s
    if replanned is not None:
        planned_s = replanned.time_s
        ready_s = max((mark.time_s for mark in after if mark.name == "reloaded"), default=planned_s)
    progress = [mark.time_s for mark in after if mark.name in PROGRESS and mark.time_s > ready_s]
    return Recovery(
        device=begin.device,
        how=begin.facts.get("how", "joined"),
        at_s=at_s,
        detect_s=begin.time_s - at_s,
        replanned=replanned is not None,
        replan_s=planned_s - begin.time_s,
        reload_s=ready_s - planned_s,
        rebuild_s=min(progress) - ready_s if progress else None,
    )
