"""How trials ended, as lines and as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from bench.trials.isolated import Found
from bench.trials.schedule import Schedule


class TrialOutcome(NamedTuple):
    """How one trial ended: the states of its runs, what is wrong, and which of its phases took how long."""

    schedule: Schedule
    states: tuple[str, ...]
    problems: tuple[str, ...]
    wall_s: float
    phases: str


def line_of(one: TrialOutcome) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(one.states).items()))
    faults = ", ".join(f"{step.fault} at {step.at_s:g} for {step.lasts_s:g} s" for step in one.schedule.steps)
    wrong = "".join(f"  {problem}\n" for problem in one.problems)
    return f"{one.schedule.title}: {counts}; {one.wall_s:.1f} s ({one.phases}); {faults}\n{wrong}"


def found_in(outcomes: Sequence[TrialOutcome], wall_s: float) -> Found:
    states = Counter(state for one in outcomes for state in one.states)
    faults = Counter(step.fault for one in outcomes for step in one.schedule.steps)
    problems = tuple(f"{one.schedule.title}: {problem}" for one in outcomes for problem in one.problems)
    rows = (
        ("trials", str(len(outcomes))),
        ("runs", str(sum(states.values()))),
        *((f"of these {state}", str(count)) for state, count in sorted(states.items())),
        ("faults", ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items()))),
        ("runs in two states, events lost or doubled, things left behind", str(len(problems))),
        ("wall time", f"{wall_s:.0f} s"),
    )
    return Found(rows, problems)
