"""`loom reproduce`: the papers' tables and figures as experiments, ours beside the published figures."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.cli.command import Command
from engine.cli.document import write_between
from engine.cli.experiment_command import sources_of
from engine.cli.tables import console_for, table
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.presented import World
from engine.experiments.design.expand import expand
from engine.experiments.execution.campaign import carry_out_all, tasks_of
from engine.experiments.execution.point import version_of
from engine.experiments.execution.store import Store
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.results.rows import Row, rows
from engine.experiments.results.versions import Versions
from engine.reproductions.document import PICTURES, document
from engine.reproductions.shipped import experiment, experiments, shipped_rows, write_rows
from engine.reproductions.verdicts import NEAREST_FIRST, FigureVerdict, figure_verdicts

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reproductions.md"
START, END = "<!-- reproductions -->", "<!-- end reproductions -->"
WORLD: World = "simulated"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments, or papers (all)")
    parser.add_argument(
        "--shipped", action="store_true", help="show the results that come with the project; compute nothing"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)"
    )
    parser.add_argument(
        "--output",
        default="results",
        metavar="DIR",
        help="where results are kept, of all experiments together (results)",
    )
    parser.add_argument(
        "--write", action="store_true", help="ship the results, and write docs/reproductions.md"
    )


def run(args: argparse.Namespace) -> int:
    chosen = _chosen(args.names)
    if args.jobs < 1:
        raise SpecError(f"--jobs {args.jobs}: expected at least 1.")
    found: dict[str, tuple[FigureVerdict, ...]] = {}
    for one in chosen:
        result = shipped_rows(one) if args.shipped else _carried_out(one, args)
        found[one.name] = figure_verdicts(one, result)
        if args.write and not args.shipped:
            emulated = [row for row in shipped_rows(one) if row.world != WORLD]
            write_rows(one, [*result, *emulated])
    if len(chosen) == 1:
        _show_figures(found[chosen[0].name])
    _show_counts(found)
    if args.write:
        write_between(DOCUMENT, START, END, document(_pictures(DOCUMENT.parent / PICTURES)))
        sys.stdout.write(f"{DOCUMENT} written.\n")
    return 0


def _pictures(folder: Path) -> dict[str, list[str]]:
    """Draw every plot with lines from the shipped results; names of the files by experiment."""
    from engine.experiments.presentation.plot import svg  # matplotlib is loaded only to draw

    folder.mkdir(exist_ok=True)
    written: dict[str, list[str]] = {}
    for one in experiments():
        for figure in one.figures:
            if figure.kind == "lines":
                file = folder / f"{one.name}-{figure.name}.svg"
                file.write_text(svg(figure_data(one, figure, shipped_rows(one))), encoding="utf-8")
                written.setdefault(one.name, []).append(file.name)
    return written


def _chosen(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, or of papers of these names; all of them for no name."""
    if not names:
        return list(experiments())
    found = []
    for name in names:
        of_paper = [one for one in experiments() if one.paper == name]
        found += of_paper or [experiment(name)]
    return found


def _carried_out(one: Experiment, args: argparse.Namespace) -> tuple[Row, ...]:
    """Rows of all points, predicted. Those that the store has from this version of the code stay."""
    points = expand(one, sources_of(args.environment))
    store = Store(Path(args.output))
    versions = Versions(code={WORLD: version_of(WORLD)})
    known = store.read(point.digest for point in points)
    tasks = tasks_of(points, (WORLD,), known, versions, repeat_stale=True)
    for number, result in enumerate(carry_out_all(tasks, store.add, args.jobs), start=1):
        known[result.key] = result
        sys.stderr.write(f"\r{one.name}: {number} of {len(tasks)} points ")
    if tasks:
        sys.stderr.write("\n")
    return rows(points, (WORLD,), known, versions)


def _show_figures(found: Sequence[FigureVerdict]) -> None:
    shown = table("figure", "what", "published", "ours", "verdict", texts=("figure", "what", "verdict"))
    for one in found:
        verdict = f"{one.verdict} (fitted)" if one.fitted else one.verdict
        shown.add_row(one.where, one.what, one.published, one.ours, verdict)
    console_for(sys.stdout).print(shown)
    for reason in dict.fromkeys(one.reason for one in found if one.reason):
        sys.stdout.write(f"- {reason}\n")


def _show_counts(found: dict[str, tuple[FigureVerdict, ...]]) -> None:
    shown = table("experiment", "figures", *NEAREST_FIRST, texts=("experiment",))
    totals = [0] * (1 + len(NEAREST_FIRST))
    for name, verdicts in found.items():
        mine = [one for one in verdicts if one.world == WORLD]
        counts = [len(mine), *(sum(one.verdict == nearness for one in mine) for nearness in NEAREST_FIRST)]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        shown.add_row(name, *(str(count or "") for count in counts))
    shown.add_row("all", *(str(total or "") for total in totals))
    console_for(sys.stdout).print(shown)


REPRODUCE = Command("reproduce", "compare the papers' tables and figures with ours", add_arguments, run)
