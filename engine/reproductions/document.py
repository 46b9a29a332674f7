"""The documents of all reproductions, in Markdown, from the shipped results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.domain.experiment import Experiment
from engine.reproductions.shipped import experiments, shipped_rows
from engine.reproductions.states import STATES
from engine.reproductions.summary import (
    ExperimentSummary,
    LeftOut,
    PaperSummary,
    Reproductions,
    reproductions,
    verdicts_of,
)
from engine.reproductions.verdicts import FigureVerdict, claims_without_figures

PICTURES = "reproductions"
"""The folder beside the document that has a page per paper, and one picture per figure of an experiment."""


class Table(NamedTuple):
    """A table that stands beside its page."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class PaperPage(NamedTuple):
    """A paper's page, and the tables that it links in the folder with its name, by name."""

    text: str
    tables: Mapping[str, Table]


def document() -> str:
    """What the papers claim, and what came of it."""
    found = reproductions()
    parts = [_independent(found), _headlines(found), _arithmetic(found), _states(found), _others(found)]
    return "\n\n".join(parts)


def paper_pages(pictures: Mapping[str, Sequence[str]] | None = None) -> dict[str, PaperPage]:
    """Paper → its page, with every experiment of it; `pictures` names the files of every experiment in the
    folder `PICTURES`.
    """
    pages = {}
    found = reproductions()
    counts = {one.name: one for one in found.experiments}
    for paper in found.papers:
        own = [one for one in experiments() if one.paper == paper.paper]
        tables = {one.name: _figures(verdicts_of(one.name)) for one in own if verdicts_of(one.name)}
        parts = [f"# {paper.title}: its figures, reproduced\n\n{paper.source}."]
        parts.append("\n".join(f"- {sentence}" for sentence in paper.must_know))
        parts += [_experiment(one, counts[one.name], (pictures or {}).get(one.name, ())) for one in own]
        pages[paper.paper] = PaperPage("\n\n".join(parts) + "\n", tables)
    return pages


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, [":---"] + ["---:"] * (len(columns) - 1)]
    lines += [[_cell(str(cell)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ") or " "


def _headlines(found: Reproductions) -> str:
    rows = [
        (paper.title, one.claim, one.published, one.ours, one.state, _caused(one.why, one.cause))
        for paper in found.papers
        for one in paper.headlines
    ]
    columns = ("paper", "claim", "published", "ours", "state", "why")
    return f"## What the papers claim first\n\n{_table(columns, rows)}"


def _independent(found: Reproductions) -> str:
    compared = sum(one.compared for one in found.papers)
    confirmed = sum(one.confirmed for one in found.papers)
    counts = [(one.title, one.compared, one.confirmed, one.contradicted) for one in found.papers]
    counts.append(("all", compared, confirmed, sum(one.contradicted for one in found.papers)))
    columns = ("paper", "compared", "confirmed", "contradicted")
    return (
        f"## {confirmed} of {compared} independent figures are confirmed\n\n"
        f"The papers print {sum(one.figures for one in found.papers):,} figures. Compared are those that a "
        "run or a test has here, each once: figures that follow from another one by arithmetic do not count. "
        "Some of them were put in and confirm nothing, see below.\n\n"
        f"{_table(columns, counts)}"
    )


def _caused(why: str, cause: str) -> str:
    told = "not known" if cause == "unknown" else f"the {cause}"
    return f"{why} (Cause: {told}.)" if cause else why


def _arithmetic(found: Reproductions) -> str:
    parts = ("figures", "in_experiments", "put_in", "checked", "repeats", "left_out")

    def row(name: str, of: Sequence[PaperSummary]) -> list[object]:
        return [name, *(sum(getattr(one, part) for one in of) for part in parts)]

    rows = [row(one.title, [one]) for one in found.papers] + [row("all", found.papers)]
    columns = ("paper", "figures", "in experiments", "put in", "checked by a test", "repeats", "left out")
    return f"## What is covered\n\n{_table(columns, rows)}"


def _states(found: Reproductions) -> str:
    def row(name: str, of: Sequence[ExperimentSummary], worlds: str) -> list[object]:
        counts = [sum(one.counts.get(state, 0) for one in of) or "" for state in STATES]
        repeats = sum(one.repeats for one in of) or ""
        return [name, sum(one.figures for one in of), *counts, repeats, sum(one.points for one in of), worlds]

    rows = [
        row(f"[{one.name}]({PICTURES}/{one.paper}.md#{one.name})", [one], ", ".join(one.worlds) or "none")
        for one in found.experiments
    ]
    rows.append(row("all", found.experiments, ""))
    columns = ("experiment", "figures", *STATES, "repeats", "points", "worlds")
    return f"## The states of the experiments' figures\n\n{_table(columns, rows)}"


def _others(found: Reproductions) -> str:
    rows = [(one.reason, one.kind, _counted(one)) for one in found.others]
    return f"## Figures outside the experiments\n\n{_table(('why', 'kind', 'figures'), rows)}"


def _counted(one: LeftOut) -> str:
    return ", ".join(f"{number} {state}" for state, number in one.counts.items()) or f"{one.figures}"


def _experiment(experiment: Experiment, summary: ExperimentSummary, pictures: Sequence[str]) -> str:
    rows = shipped_rows(experiment)
    found = verdicts_of(experiment.name)
    versions = ", ".join(sorted({row.code_version for row in rows if row.code_version})) or "none"
    parts = [f"## {experiment.name}\n\n{experiment.title}. {experiment.description}"]
    parts += [f"![{experiment.title}]({name})" for name in pictures]
    parts.append("Assumed:\n\n" + "\n".join(f"- {sentence}" for sentence in experiment.assumptions))
    if found:
        counts = [f"{number} {state}" for state, number in summary.counts.items()]
        if summary.repeats:
            counts.append(f"{summary.repeats} repeat{'s' * (summary.repeats == 1)} what counts elsewhere")
        parts.append(f"Of {summary.figures} figures: {', '.join(counts)}.")
        parts.append(f"[All {len(found)} rows, published and ours]({summary.paper}/{experiment.name}.csv)")
    claims = claims_without_figures(experiment, rows)
    if claims:
        parts.append("\n".join(f"- {one.text} {one.verdict.capitalize()}: {one.found}" for one in claims))
    parts.append(f"{len({row.digest for row in rows})} points; version of the code: {versions}.")
    return "\n\n".join(parts)


def _figures(found: Sequence[FigureVerdict]) -> Table:
    several = len({one.world for one in found}) > 1
    rows = []
    for one in found:
        what = f"{one.what}, {one.world}" if several else one.what
        state = f"{one.state} (repeats)" if one.repeats else one.state
        rows.append((one.where, what, one.published, one.ours, state, _caused(one.why, one.cause)))
    return Table(("figure", "what", "published", "ours", "state", "why"), rows)
