"""How trials ended, as lines and as counts."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from bench.trials.schedule import Schedule


class Judged(NamedTuple):
    """How one trial ended: the states of its runs, what is wrong, and which of its phases took how long."""

    schedule: Schedule
    states: tuple[str, ...]
    problems: tuple[str, ...]
    wall_s: float
    phases: str


def line_of(one: Judged) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(one.states).items()))
    faults = ", ".join(f"{step.fault} at {step.at_s:g} for {step.lasts_s:g} s" for step in one.schedule.steps)
    wrong = "".join(f"  {problem}\n" for problem in one.problems)
    return f"{one.schedule.title}: {counts}; {one.wall_s:.1f} s ({one.phases}); {faults}\n{wrong}"


def summary(judged: list[Judged], wall_s: float) -> dict[str, object]:
    return {
        "trials": len(judged),
        "states": Counter(state for one in judged for state in one.states),
        "faults": Counter(step.fault for one in judged for step in one.schedule.steps),
        "problems": [f"{one.schedule.title}: {problem}" for one in judged for problem in one.problems],
        "wall_s": wall_s,
    }
