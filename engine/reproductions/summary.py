"""What the reproductions come to: per experiment, per paper and in all, from the shipped results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from engine.domain.values import Count, Value
from engine.domain.world import World
from engine.reproductions.coverage import Rule, figures_of, rule_of, rules
from engine.reproductions.figures import Paper, figures, papers
from engine.reproductions.headlines import Headline, claimed, headline, must_know
from engine.reproductions.shipped import experiment, experiments, figure_ids, shipped_rows
from engine.reproductions.states import STATES, State
from engine.reproductions.verdicts import FigureVerdict, figure_verdicts


class ExperimentSummary(Value):
    """One table or figure. `counts` has the states of its independent figures as predicted, and
    `repeats` how many more state one of them again; `code_versions` are those of the code that made the
    results, `worlds` where they are from.
    """

    paper: str
    name: str
    title: str
    description: str
    figures: Count
    points: Count
    counts: dict[State, Count]
    repeats: Count
    worlds: tuple[World, ...]
    code_versions: tuple[str, ...]
    assumptions: tuple[str, ...]


class PaperSummary(Value):
    """What a reader of a paper must know, its headline claims, how many of its independent figures are
    compared, confirmed and contradicted, and what becomes of all: the five parts add up to `figures`.
    """

    paper: str
    title: str
    source: str
    strategy: str
    must_know: tuple[str, ...]
    headlines: tuple[Headline, ...]
    compared: Count
    confirmed: Count
    contradicted: Count
    figures: Count
    in_experiments: Count
    put_in: Count
    checked: Count
    repeats: Count
    left_out: Count


class LeftOut(Value):
    """Figures that no experiment has: put in, checked by a test, repeating others, or left out, and why; with
    the states of those that have one.
    """

    kind: str
    reason: str
    figures: Count
    counts: dict[State, Count]


class Reproductions(Value):
    """All of it, as a page or a document shows it."""

    papers: tuple[PaperSummary, ...]
    experiments: tuple[ExperimentSummary, ...]
    others: tuple[LeftOut, ...]


def reproductions() -> Reproductions:
    """The summary of everything, from the shipped results alone: nothing is computed anew."""
    by_experiment = {one.name: verdicts_of(one.name) for one in experiments()}
    summaries = tuple(_experiment(name, found) for name, found in by_experiment.items())
    predicted = {one.id: one for found in by_experiment.values() for one in found if one.world == "predicted"}
    return Reproductions(
        papers=tuple(_paper(one, summaries, predicted) for one in papers()),
        experiments=summaries,
        others=tuple(
            LeftOut(
                kind=rule.kind,
                reason=rule.reason,
                figures=len(figures_of(rule)),
                counts=in_order(_states(rule, figures_of(rule))),
            )
            for rule in rules()
        ),
    )


def _states(rule: Rule, of: Iterable[str]) -> Counter[State]:
    states = (rule.state_of(figures()[one]) for one in of)
    return Counter(state for state in states if state is not None)


def verdicts_of(name: str) -> tuple[FigureVerdict, ...]:
    """The verdicts of one experiment by its shipped results; raises `SpecError` for an unknown name."""
    found = experiment(name)
    return figure_verdicts(found, shipped_rows(found))


def counted(found: Iterable[FigureVerdict]) -> dict[State, int]:
    """States of the independent figures; only those that occur."""
    return in_order(Counter(one.state for one in found if one.counts))


def in_order(counts: Counter[State]) -> dict[State, int]:
    return {state: counts[state] for state in STATES if counts[state]}


def _experiment(name: str, found: tuple[FigureVerdict, ...]) -> ExperimentSummary:
    one = experiment(name)
    rows = shipped_rows(one)
    return ExperimentSummary(
        paper=one.paper,
        name=name,
        title=one.title,
        description=one.description,
        figures=len(figure_ids(one)),
        points=len({row.digest for row in rows}),
        counts=counted(found),
        repeats=sum(bool(verdict.repeats) and verdict.world == "predicted" for verdict in found),
        worlds=tuple(world for world in one.worlds if any(row.world == world for row in rows)),
        code_versions=tuple(sorted({row.code_version for row in rows if row.code_version})),
        assumptions=one.assumptions,
    )


def _paper(
    one: Paper, summaries: tuple[ExperimentSummary, ...], verdicts: Mapping[str, FigureVerdict]
) -> PaperSummary:
    by_kind = Counter[str]()
    counts = Counter[State]()
    for figure in one.figures:
        rule = rule_of(figure.id)
        if rule is not None:
            by_kind[rule.kind] += 1
            counts.update(_states(rule, [figure.id]))
    own = [summary for summary in summaries if summary.paper == one.paper]
    for summary in own:
        counts.update(summary.counts)
    return PaperSummary(
        paper=one.paper,
        title=one.title,
        source=one.source,
        strategy=one.strategy,
        must_know=must_know(one.paper, verdicts),
        headlines=tuple(headline(row, verdicts) for row in claimed() if row.paper == one.paper),
        compared=sum(sum(summary.counts.values()) for summary in own) + by_kind["checked"],
        confirmed=counts["confirmed"],
        contradicted=counts["contradicted"],
        figures=len(one.figures),
        in_experiments=sum(summary.figures for summary in own),
        put_in=by_kind["put in"],
        checked=by_kind["checked"],
        repeats=by_kind["repeats"],
        left_out=by_kind["left out"],
    )
