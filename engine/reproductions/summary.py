"""What the reproductions come to: per experiment, per paper and in all, from the shipped results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from engine.domain.presented import World
from engine.domain.values import Count, Value
from engine.reproductions.coverage import figures_of, rules
from engine.reproductions.figures import figures, papers
from engine.reproductions.shipped import experiments, figure_ids, shipped_rows
from engine.reproductions.verdicts import NEAREST_FIRST, FigureVerdict, Nearness, figure_verdicts


class ExperimentSummary(Value):
    """One table or figure. `counts` has the simulated world's verdicts; `code_versions` are those of the
    code that made the results, `worlds` where they are from.
    """

    paper: str
    name: str
    title: str
    description: str
    figures: Count
    points: Count
    counts: dict[Nearness, Count]
    fitted: Count
    worlds: tuple[World, ...]
    code_versions: tuple[str, ...]
    assumptions: tuple[str, ...]


class PaperSummary(Value):
    """How many figures a paper has, and what becomes of them: the three parts add up to `figures`."""

    paper: str
    title: str
    source: str
    strategy: str
    figures: Count
    in_experiments: Count
    checked: Count
    left_out: Count
    counts: dict[Nearness, Count]


class LeftOut(Value):
    """Figures that are checked by a test or left out, and why."""

    kind: str
    reason: str
    figures: Count


class Reproductions(Value):
    """All of it, as a page or a document shows it."""

    papers: tuple[PaperSummary, ...]
    experiments: tuple[ExperimentSummary, ...]
    others: tuple[LeftOut, ...]


def reproductions() -> Reproductions:
    """The summary of everything, from the shipped results alone: nothing is computed anew."""
    by_experiment = {one.name: verdicts_of(one.name) for one in experiments()}
    summaries = tuple(_experiment(name, found) for name, found in by_experiment.items())
    return Reproductions(
        papers=tuple(_paper(name, summaries) for name in (one.paper for one in papers())),
        experiments=summaries,
        others=tuple(
            LeftOut(kind=rule.kind, reason=rule.reason, figures=len(figures_of(rule))) for rule in rules()
        ),
    )


def verdicts_of(name: str) -> tuple[FigureVerdict, ...]:
    """The verdicts of one experiment by its shipped results; raises `SpecError` for an unknown name."""
    from engine.reproductions.shipped import experiment

    found = experiment(name)
    return figure_verdicts(found, shipped_rows(found))


def counted(found: Iterable[FigureVerdict]) -> dict[Nearness, int]:
    """Verdicts of the simulated world, the nearest first; only those that occur."""
    counts = Counter(one.verdict for one in found if one.world == "simulated")
    return {nearness: counts[nearness] for nearness in NEAREST_FIRST if counts[nearness]}


def _experiment(name: str, found: tuple[FigureVerdict, ...]) -> ExperimentSummary:
    one = next(experiment for experiment in experiments() if experiment.name == name)
    rows = shipped_rows(one)
    return ExperimentSummary(
        paper=one.paper,
        name=name,
        title=one.title,
        description=one.description,
        figures=len(figure_ids(one)),
        points=len({row.digest for row in rows}),
        counts=counted(found),
        fitted=sum(verdict.fitted and verdict.world == "simulated" for verdict in found),
        worlds=tuple(world for world in one.worlds if any(row.world == world for row in rows)),
        code_versions=tuple(sorted({row.code_version for row in rows if row.code_version})),
        assumptions=one.assumptions,
    )


def _paper(name: str, summaries: tuple[ExperimentSummary, ...]) -> PaperSummary:
    one = next(paper for paper in papers() if paper.paper == name)
    ids = {figure.id for figure in one.figures}
    own = [summary for summary in summaries if summary.paper == name]
    by_kind = Counter(rule.kind for rule in rules() for figure_id in figures_of(rule) if figure_id in ids)
    counts = Counter[Nearness]()
    for summary in own:
        counts.update(summary.counts)
    assert len(figures()) >= len(ids)
    return PaperSummary(
        paper=name,
        title=one.title,
        source=one.source,
        strategy=one.strategy,
        figures=len(ids),
        in_experiments=sum(summary.figures for summary in own),
        checked=by_kind["checked"],
        left_out=by_kind["left out"],
        counts={nearness: counts[nearness] for nearness in NEAREST_FIRST if counts[nearness]},
    )
