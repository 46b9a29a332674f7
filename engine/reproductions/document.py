"""The document of all reproductions, in Markdown, from the shipped results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.domain.experiment import Experiment
from engine.reproductions.shipped import experiments, shipped_rows
from engine.reproductions.summary import PaperSummary, Reproductions, reproductions, verdicts_of
from engine.reproductions.verdicts import NEAREST_FIRST, FigureVerdict, claims_without_figures

PICTURES = "reproductions"
"""The folder beside the document that has one picture per figure of an experiment."""


def document(pictures: Mapping[str, Sequence[str]] | None = None) -> str:
    """All of it; `pictures` names the files of every experiment in the folder `PICTURES`."""
    found = reproductions()
    parts = [_arithmetic(found), _verdicts(found), _others(found)]
    for paper in found.papers:
        parts.append(f"## {paper.title}\n\n{paper.source}.")
        own = [one for one in experiments() if one.paper == paper.paper]
        parts += [_experiment(one, (pictures or {}).get(one.name, ())) for one in own]
    return "\n\n".join(parts)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, [":---"] + ["---:"] * (len(columns) - 1)]
    lines += [[_cell(str(cell)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ") or " "


def _arithmetic(found: Reproductions) -> str:
    def row(name: str, of: Sequence[PaperSummary]) -> list[object]:
        numbers = [
            sum(getattr(one, part) for one in of)
            for part in ("figures", "in_experiments", "checked", "left_out")
        ]
        return [name, *numbers]

    rows = [row(one.title, [one]) for one in found.papers] + [row("all", found.papers)]
    columns = ("paper", "figures", "in experiments", "checked by a test", "left out")
    return f"## What is covered\n\n{_table(columns, rows)}"


def _verdicts(found: Reproductions) -> str:
    rows: list[list[object]] = []
    for one in found.experiments:
        counts = [one.counts.get(nearness, 0) or "" for nearness in NEAREST_FIRST]
        worlds = ", ".join(one.worlds) or "none"
        link = f"[{one.name}](#{one.name})"
        rows.append([link, one.figures, one.fitted or "", *counts, one.points, worlds])
    totals = [
        sum(one.counts.get(nearness, 0) for one in found.experiments) or "" for nearness in NEAREST_FIRST
    ]
    fitted = sum(one.fitted for one in found.experiments)
    figures = sum(one.figures for one in found.experiments)
    points = sum(one.points for one in found.experiments)
    rows.append(["all", figures, fitted or "", *totals, points, ""])
    columns = ("experiment", "figures", "fitted", *NEAREST_FIRST, "points", "worlds")
    return f"## How near the experiments are\n\n{_table(columns, rows)}"


def _others(found: Reproductions) -> str:
    rows = [(one.reason, one.kind, one.figures) for one in found.others]
    return f"## Figures outside the experiments\n\n{_table(('why', 'kind', 'figures'), rows)}"


def _experiment(experiment: Experiment, pictures: Sequence[str]) -> str:
    rows = shipped_rows(experiment)
    found = verdicts_of(experiment.name)
    versions = ", ".join(sorted({row.code_version for row in rows if row.code_version})) or "none"
    parts = [f"### {experiment.name}\n\n{experiment.title}. {experiment.description}"]
    parts += [f"![{experiment.title}]({PICTURES}/{name})" for name in pictures]
    parts.append("Assumed:\n\n" + "\n".join(f"- {sentence}" for sentence in experiment.assumptions))
    parts.append(_figures(found))
    claims = claims_without_figures(experiment, rows)
    if claims:
        parts.append("\n".join(f"- {one.text} {one.verdict.capitalize()}: {one.found}" for one in claims))
    reasons = dict.fromkeys(one.reason for one in found if one.reason)
    if reasons:
        parts.append("What differs, and why:\n\n" + "\n".join(f"- {reason}" for reason in reasons))
    parts.append(f"{len({row.digest for row in rows})} points; version of the code: {versions}.")
    return "\n\n".join(parts)


def _figures(found: Sequence[FigureVerdict]) -> str:
    several = len({one.world for one in found}) > 1
    columns = ("figure", "what", "published", "ours", "verdict")
    rows = []
    for one in found:
        what = f"{one.what}, {one.world}" if several else one.what
        verdict = f"{one.verdict} (fitted)" if one.fitted else one.verdict
        rows.append((one.where, what, one.published, one.ours, verdict))
    return _table(columns, rows)
