"""What planner=best would give the methods of an experiment that followed their papers' rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from engine.advice.values import Assessment
from engine.domain.spec import RunSpec, spec_digest
from engine.domain.units import between
from engine.domain.values import Value
from engine.strategies.planner.choice import WORTH_NAMING
from engine.strategies.registry import by_best

POINTS = 3
"""Most points of a method that are planned again: its first, its last, and one between them."""


class PlannerGain(Value):
    """What planner=best would gain: by prediction `strategy` is `least` to `most` times as fast with
    planner=best as by its paper's rule, at the points looked at.
    """

    strategy: str
    least: float
    most: float


def runs_by_rule(specs: Iterable[RunSpec]) -> tuple[RunSpec, ...]:
    """For every method up to `POINTS` of the runs in which it follows its paper's rule, from
    first to last.
    """
    found: dict[str, dict[str, RunSpec]] = {}
    for spec in specs:
        if by_best(spec.strategy, spec.params) is not None:
            found.setdefault(spec.strategy, {}).setdefault(spec_digest(spec), spec)
    return tuple(one for runs in found.values() for one in _spread(list(runs.values())))


def _spread(runs: Sequence[RunSpec]) -> list[RunSpec]:
    last = len(runs) - 1
    places = dict.fromkeys(round(last * number / (POINTS - 1)) for number in range(POINTS))
    return [runs[place] for place in places]


def planner_gains(
    specs: Iterable[RunSpec], assess_all: Callable[[Sequence[RunSpec]], Sequence[Assessment]]
) -> tuple[PlannerGain, ...]:
    """Gains by method, in the order of `specs`; without those that gain nothing worth naming."""
    gains: dict[str, list[float]] = {}
    for row in assess_all(runs_by_rule(specs)):
        if row.total_s is not None:
            best_s = row.best_planner_s or row.total_s
            gains.setdefault(row.strategy, []).append(row.total_s / best_s)
    return tuple(
        PlannerGain(strategy=name, least=min(of), most=max(of))
        for name, of in gains.items()
        if max(of) > WORTH_NAMING
    )


def in_words(gains: Sequence[PlannerGain]) -> str:
    """One sentence; empty without a gain."""
    told = [f"{one.strategy} {between(f'{one.least:.1f}', f'{one.most:.1f}')} times" for one in gains]
    return f"With planner=best, by prediction: {', '.join(told)} as fast." if told else ""
