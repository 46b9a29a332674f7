"""Tries single changes of a cluster by prediction, to find which one helps most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from engine.advice.candidates import Candidate, candidates
from engine.advice.values import Assessment, Change, Objective
from engine.domain.spec import RunSpec
from engine.reports.participation import computation
from engine.strategies.planner.choice import WORTH_NAMING
from engine.strategies.registry import with_strategy

AssessAll = Callable[[Sequence[RunSpec]], Sequence[Assessment]]
TRIED_STRATEGIES = 3
"""The best so far; a change that may let another one in is tried with as many of those, too."""
BETTER: Mapping[Objective, str] = {
    "first_token_s": "as fast",
    "per_token_s": "as fast",
    "total_s": "as fast",
    "tokens_per_s": "as many tokens a second",
    "peak_memory_bytes": "less memory",
    "energy_j": "less energy",
}
"""How a gain of a figure is called."""


def best_of(rows: Iterable[Assessment], objective: Objective) -> Assessment | None:
    """The best of those that give the model's own numbers; None if none has a plan."""
    best: Assessment | None = None
    for row in rows:
        if row.lossless and row.figure(objective) is not None:
            best = row if best is None or row.is_better(best, objective) else best
    return best


def ranked(rows: Iterable[Assessment], objective: Objective) -> tuple[Assessment, ...]:
    """The best first; those without a figure last, in their order."""
    sign = -1.0 if objective == "tokens_per_s" else 1.0

    def key(row: Assessment) -> float:
        figure = row.figure(objective)
        return float("inf") if figure is None else sign * figure

    return tuple(sorted(rows, key=key))


def told_once(rows: Iterable[Assessment]) -> tuple[Assessment, ...]:
    """`rows` with `like` set in each that comes to the same as one before it: several methods' one plan."""
    first: dict[tuple[str, bool], str] = {}
    found = []
    for row in rows:
        like = ""
        if row.total_s is not None:
            times = (row.first_token_s, row.per_token_s, row.total_s)
            key = computation(row.devices, (*times, row.link_bytes, row.energy_j), row.peak_bytes)
            like = first.setdefault((key, row.lossless), row.strategy)
        found.append(row.model_copy(update={"like": "" if like == row.strategy else like}))
    return tuple(found)


def specs_to_try(
    base: RunSpec, rows: Sequence[Assessment], candidate: Candidate, objective: Objective
) -> tuple[RunSpec, ...]:
    """The runs that show what a change does: of the best strategies, and of refused ones where the change
    gives room.
    """
    able = [row for row in ranked(rows, objective) if row.lossless and row.figure(objective) is not None]
    names = [row.strategy for row in able[:TRIED_STRATEGIES]]
    if candidate.kind in ("memory", "more") or not names:
        refused = [row.strategy for row in rows if row.total_s is None]
        names += refused if not names else refused[:TRIED_STRATEGIES]
    return tuple(with_strategy(base, name, params={}, cluster=candidate.cluster) for name in names)


def tried(
    base: RunSpec, rows: Sequence[Assessment], objective: Objective, assess_all: AssessAll
) -> tuple[Change, ...]:
    """What every candidate does, the largest gain first; `assess_all` predicts runs, in any order of work."""
    before = best_of(rows, objective)
    found = candidates(base.cluster, rows)
    runs = [specs_to_try(base, rows, candidate, objective) for candidate in found]
    results = iter(assess_all([spec for specs in runs for spec in specs]))
    changes = []
    for candidate, specs in zip(found, runs, strict=True):
        after = best_of([next(results) for _ in specs], objective)
        if after is not None:
            changes.append(change_of(candidate, before, after, objective))
    return tuple(sorted(changes, key=lambda change: -(change.gain or float("inf"))))


def change_of(
    candidate: Candidate, before: Assessment | None, after: Assessment, objective: Objective
) -> Change:
    new = after.figure(objective) or 0.0
    old = before.figure(objective) if before is not None else None
    gain = None
    if old is not None:
        gain = new / old if objective == "tokens_per_s" else old / new if new else None
    return Change(
        kind=candidate.kind,
        name=candidate.name,
        sentence=_sentence(candidate, gain, before, after, BETTER[objective]),
        before=old,
        after=new,
        strategy_before=before.strategy if before is not None else "",
        strategy_after=after.strategy,
        gain=gain,
        words=candidate.words,
    )


def _sentence(
    candidate: Candidate, gain: float | None, before: Assessment | None, after: Assessment, better: str
) -> str:
    if gain is None:
        return f"{candidate.words}: {after.strategy} then has a plan, where now none has."
    using = f", with {after.strategy}" if before is not None and after.strategy != before.strategy else ""
    if gain >= WORTH_NAMING:
        return f"{candidate.words}: {gain:.2f} times {better}{using}."
    if gain <= 1 / WORTH_NAMING:
        return f"{candidate.words}: worse by {1 / gain - 1:.0%}{using}."
    return f"{candidate.words}: no difference."
