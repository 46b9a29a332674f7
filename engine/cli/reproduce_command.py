"""`loom reproduce`: the papers' tables and figures as experiments, ours beside the published figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.cli.document import write_between, write_table
from engine.cli.experiment_command import add_jobs, sources_of
from engine.cli.experiment_progress import PointsProgress
from engine.cli.tables import console_for, table
from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.world import World
from engine.experiments.design.expand import Point, expand
from engine.experiments.execution.campaign import carry_out_all, tasks_of
from engine.experiments.execution.point import Emulation, version_of
from engine.experiments.execution.store import Store
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.results.rows import Row, rows
from engine.experiments.results.versions import Versions
from engine.reproductions.compared import compared_points
from engine.reproductions.declared import moves_of
from engine.reproductions.document import PICTURES, document, paper_pages
from engine.reproductions.headlines import claimed, headline, must_know
from engine.reproductions.moved import Moved, about, moved_points, moves, ours_of, write_moves
from engine.reproductions.shipped import experiment, experiments, shipped_rows, write_rows
from engine.reproductions.states import STATES, follows
from engine.reproductions.summary import counted
from engine.reproductions.verdicts import FigureVerdict, agreements, claims_without_figures, figure_verdicts

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "results" / "reproductions.md"
START, END = "<!-- reproductions -->", "<!-- end reproductions -->"
WORLD: World = "predicted"
EMULATED: World = "emulated"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments, or papers (all)")
    parser.add_argument(
        "--shipped", action="store_true", help="show the results that come with the project; compute nothing"
    )
    add_jobs(parser)
    parser.add_argument(
        "--output",
        default="results",
        metavar="DIR",
        help="where results are kept, of all experiments together (results)",
    )
    parser.add_argument(
        "--emulate",
        action="store_true",
        help="also emulate the points whose values are compared with published ones, where there are any",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="ship the results, and write docs/results/reproductions.md and its pages",
    )


def run(args: argparse.Namespace) -> int:
    chosen = _chosen(args.names)
    if args.emulate:
        _check_emulation(chosen, args)
    carried = {one.name: shipped_rows(one) if args.shipped else _carried_out(one, args) for one in chosen}
    if args.write and not args.shipped:
        for one in chosen:
            write_rows(one, with_shipped(one, carried[one.name]))
        write_moves({one.name: _moved(one, carried[one.name], args) for one in chosen})
    found = {one.name: figure_verdicts(one, carried[one.name]) for one in chosen}
    paper = chosen[0].paper
    is_paper = [one.name for one in chosen] == [one.name for one in experiments() if one.paper == paper]
    if is_paper:
        _show_paper(paper, found)
    if is_paper or len(chosen) == 1:
        for one in chosen:
            sys.stdout.write(f"\n{one.name}: {one.title}\n")
            _show_figures(found[one.name])
            for claim in claims_without_figures(one, carried[one.name]):
                sys.stdout.write(f"- {claim.text} {claim.verdict.capitalize()}: {claim.found}\n")
    _show_counts(found)
    if args.write:
        _write_documents()
    return 0


def _write_documents() -> None:
    write_between(DOCUMENT, START, END, document())
    folder = DOCUMENT.parent / PICTURES
    for paper, page in paper_pages(_pictures(folder)).items():
        file = folder / f"{paper}.md"
        file.write_text(page.text, encoding="utf-8")
        for name, beside in page.tables.items():
            write_table(file, name, beside.columns, beside.rows)
    sys.stdout.write(f"{DOCUMENT} and pages of {PICTURES}/ written.\n")


def _pictures(folder: Path) -> dict[str, list[str]]:
    """Draw every plot with lines from the shipped results; names of the files by experiment."""
    from engine.experiments.presentation.origin import origin_of
    from engine.experiments.presentation.plot import svg  # matplotlib is loaded only to draw

    folder.mkdir(exist_ok=True)
    written: dict[str, list[str]] = {}
    for one in experiments():
        for figure in one.figures:
            if figure.kind == "lines":
                file = folder / f"{one.name}-{figure.name}.svg"
                rows = shipped_rows(one)
                drawn = svg(figure_data(one, figure, rows), origin_of(one, rows))
                file.write_text(drawn, encoding="utf-8")
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


def with_shipped(one: Experiment, found: Sequence[Row]) -> list[Row]:
    """`found`, and the shipped emulations of points that it has no emulation of."""
    points = {row.digest for row in found}
    emulated = {row.digest for row in found if row.world == EMULATED}
    kept = [row for row in shipped_rows(one) if row.world == EMULATED]
    return [*found, *(row for row in kept if row.digest in points - emulated)]


def _check_emulation(chosen: Sequence[Experiment], args: argparse.Namespace) -> None:
    """Check that something of `chosen` can be emulated, and by this program; raises `SpecError`."""
    can = [one.name for one in experiments() if EMULATED in one.worlds]
    if not any(one.name in can for one in chosen):
        names = ", ".join(one.name for one in chosen)
        raise SpecError(
            f"--emulate: {names} has no emulated points, because its machines are larger than an emulation "
            f"can be: there is {', '.join(can)}."
        )
    if args.shipped or args.environment.emulation is None:
        what = "--shipped computes nothing" if args.shipped else "this program has no emulator"
        raise SpecError(f"--emulate: {what}: use {COMMAND} reproduce --emulate where Mininet is installed.")


def _carried_out(one: Experiment, args: argparse.Namespace) -> tuple[Row, ...]:
    """Rows of all points, predicted, and of those that are emulated."""
    points = expand(one, sources_of(args.environment))
    is_emulated = args.emulate and EMULATED in one.worlds
    emulation = args.environment.emulation() if is_emulated else None
    chosen: dict[World, Sequence[Point]] = {WORLD: points}
    if is_emulated:
        chosen[EMULATED] = compared_points(one, points)
    return _rows(one.name, chosen, args, emulation)


def _moved(one: Experiment, before: Sequence[Row], args: argparse.Namespace) -> Moved:
    """How much ours moves when each input of an experiment does, and of what no input moves alone, when two
    do. What follows from one is not moved with the next: it is an input already.
    """
    points = expand(one, sources_of(args.environment))
    left = agreements(one, before)
    found: Moved = {}
    for move in moves_of(one.name):
        one = about(one, left)
        if left:
            after = _rows(f"{one.name}: {move.name}", {WORLD: moved_points(one, points, move)}, args)
            moved = moves(ours_of(one, before), ours_of(one, after))
            found[move.name] = {figure: ratio for figure, ratio in moved.items() if figure in left}
            left -= {figure for figure, ratio in moved.items() if follows(ratio, move)}
    return found


def _rows(
    title: str,
    chosen: dict[World, Sequence[Point]],
    args: argparse.Namespace,
    emulation: Emulation | None = None,
) -> tuple[Row, ...]:
    """Rows of the points of every world. Results that the store has from this version of the code stay, so a
    command that was stopped goes on where it was.
    """
    store = Store(Path(args.output))
    known = store.read({point.digest for wanted in chosen.values() for point in wanted})
    versions = Versions(code={world: version_of(world, emulation) for world in chosen})
    tasks = [
        task
        for world, wanted in chosen.items()
        for task in tasks_of(wanted, (world,), known, versions, retry=True, repeat_stale=True)
    ]
    if tasks:
        sys.stderr.write(f"{title}\n")
        total = sum(len({point.digest for point in wanted}) for wanted in chosen.values())
        with PointsProgress(tasks, total, args.jobs) as progress:
            for result in carry_out_all(tasks, store.add, args.jobs, emulation):
                known[result.key] = result
                progress.take(result)
    return tuple(row for world, wanted in chosen.items() for row in rows(wanted, (world,), known, versions))


def _show_paper(paper: str, found: Mapping[str, Sequence[FigureVerdict]]) -> None:
    """What a reader of the paper must know, and its headline claims beside ours."""
    predicted = {one.id: one for verdicts in found.values() for one in verdicts if one.world == WORLD}
    for sentence in must_know(paper, predicted):
        sys.stdout.write(f"- {sentence}\n")
    shown = table("claim", "published", "ours", "state", texts=("claim", "ours", "state"))
    for claim in claimed():
        if claim.paper == paper:
            one = headline(claim, predicted)
            shown.add_row(one.claim, one.published, one.ours, one.state)
    console_for(sys.stdout).print(shown)


def _show_figures(found: Sequence[FigureVerdict]) -> None:
    if not found:
        return
    shown = table("figure", "what", "published", "ours", "state", texts=("figure", "what", "state"))
    for one in found:
        state = f"{one.state} (repeats)" if one.repeats else one.state
        shown.add_row(one.where, one.what, one.published, one.ours, state)
    console_for(sys.stdout).print(shown)
    for why in dict.fromkeys(one.why for one in found if one.why):
        sys.stdout.write(f"- {why}\n")


def _show_counts(found: dict[str, tuple[FigureVerdict, ...]]) -> None:
    shown = table("experiment", *STATES, "repeats", texts=("experiment",))
    totals = [0] * (1 + len(STATES))
    for name, verdicts in found.items():
        of_state = counted(verdicts)
        repeats = sum(bool(one.repeats) and one.world == WORLD for one in verdicts)
        counts = [*(of_state.get(state, 0) for state in STATES), repeats]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        shown.add_row(name, *(str(count or "") for count in counts))
    shown.add_row("all", *(str(total or "") for total in totals))
    console_for(sys.stdout).print(shown)
