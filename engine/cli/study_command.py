"""`loom study`: experiments with their results as one archive, which others open, check and repeat."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table
from rich.text import Text

from engine.cli.command import Environment
from engine.cli.experiment_command import (
    Campaign,
    add_jobs,
    add_strategies,
    campaign_of,
    carry_out_tasks,
    sources_of,
    times_of_host,
)
from engine.cli.tables import console_for, table
from engine.domain.command_name import COMMAND
from engine.domain.errors import HostError
from engine.domain.world import World
from engine.experiments.design.expand import Point
from engine.experiments.design.shipped_files import load
from engine.experiments.design.written_out import with_recorded
from engine.experiments.execution.store import Store
from engine.experiments.results.cells import place_text
from engine.experiments.studies.archive import unpack, write_archive
from engine.experiments.studies.contents import About, Carried, Clusters, contents_of
from engine.experiments.studies.environment import environment
from engine.experiments.studies.here import runs_here
from engine.experiments.studies.page import page_of
from engine.experiments.studies.reading import REPEATED, Opened, checked_study, read_experiment
from engine.experiments.studies.repeat import Compared, compared, summary
from engine.experiments.studies.study import Study
from engine.strategies.registry import named

SHOWN = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=type(parser))
    pack = actions.add_parser("pack", help="put experiments and their results into one archive")
    pack.add_argument(
        "experiments", metavar="EXPERIMENT", nargs="+", help="TOML, JSON or a name, as carried out"
    )
    pack.add_argument(
        "-o", dest="archive", default="study.zip", metavar="FILE", help="the archive (study.zip)"
    )
    pack.add_argument("--output", default="results", metavar="DIR", help="where results are kept (results)")
    pack.add_argument(
        "--sources", action="store_true", help="with the source of methods that are not EdgeLoom's"
    )
    pack.add_argument("--licence", default="", help="the licence for others: its address or its name")
    pack.set_defaults(act=_pack)
    opened = actions.add_parser(
        "open", help="check every digest of an archive, unpack it, show what is inside"
    )
    opened.add_argument("archive", metavar="FILE|FOLDER", help="an archive, or a study that was unpacked")
    opened.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="where to (a new folder of the file's name)"
    )
    opened.set_defaults(act=_open)
    repeat = actions.add_parser("repeat", help="carry a study out again; status 1 if a cell differs")
    repeat.add_argument("folder", metavar="FOLDER", help="a study that was unpacked")
    repeat.add_argument("--predicted-only", action="store_true", help="leave out what is emulated")
    repeat.add_argument(
        "--model",
        dest="models",
        action="append",
        default=[],
        metavar="DIR",
        help="where weights are; repeatable",
    )
    add_jobs(repeat)
    repeat.set_defaults(act=_repeat)
    for action in (pack, repeat):
        add_strategies(action)


def run(args: argparse.Namespace) -> int:
    for method in getattr(args, "strategies", ()):
        named(method)
    status: int = args.act(args)
    return status


# Packing -------------------------------------------------------------------------------------------
def _pack(args: argparse.Namespace) -> int:
    found: Environment = args.environment
    carried = []
    for name in args.experiments:
        experiment = with_recorded(load(name), sources_of(found))
        campaign = campaign_of(experiment, found, Path(args.output), only_predicts=True)
        every = campaign._replace(worlds=campaign.experiment.worlds)
        carried.append(Carried(campaign.experiment, campaign.points, every.rows()))
    about = About(
        packed_on=datetime.now(UTC).date().isoformat(),
        environment=environment(),
        licence=args.licence,
        with_sources=args.sources,
    )
    study, files = contents_of(carried, about, Clusters(found.load_cluster, found.cluster_text))
    target = Path(args.archive)
    try:
        with target.open("xb") as file:
            write_archive(files, file)
    except OSError as error:
        raise HostError(
            f"{target}: cannot be written: {error.strerror}: name another file with -o."
        ) from error
    missing = [
        f"{len(one.points) - packed.points} points of {packed.name} have no result and are left out."
        for one, packed in zip(carried, study.experiments, strict=True)
        if len(one.points) > packed.points
    ]
    sys.stdout.write("\n".join([f"{target}", *missing]) + "\n")
    sys.stdout.write(page_of(study))
    return 0


# Opening -------------------------------------------------------------------------------------------
def _open(args: argparse.Namespace) -> int:
    source = Path(args.archive)
    folder = source if source.is_dir() else Path(args.folder or source.stem)
    if not source.is_dir():
        unpack(source, folder)
    study = checked_study(folder)
    opened = [read_experiment(folder, study, one) for one in study.experiments]
    lacking = dict.fromkeys(
        sentence for one in opened for sentence in runs_here(study, folder, one.runs).lacking
    )
    again = f"To carry it out again: {COMMAND} study repeat {folder}"
    sys.stdout.write(f"{folder}\n{page_of(study, lacking)}\n{again}\n")
    return 0


# Repeating -----------------------------------------------------------------------------------------
def _repeat(args: argparse.Namespace) -> int:
    folder = Path(args.folder)
    study = checked_study(folder)
    models = [Path(model) for model in args.models]
    found: list[Compared] = []
    for studied in study.experiments:
        opened = read_experiment(folder, study, studied)
        found += _repeated(study, folder, opened, models, args)
    console = console_for(sys.stdout)
    if problems := [one for one in found if one.verdict in ("differs", "not repeated")]:
        console.print(_table(study, folder, problems))
    for line in summary(found):
        console.print(Text(line))
    if args.predicted_only:
        console.print("What is emulated was left out.")
    return 0 if not problems else 1


def _repeated(
    study: Study, folder: Path, opened: Opened, models: Sequence[Path], args: argparse.Namespace
) -> tuple[Compared, ...]:
    here = runs_here(study, folder, opened.runs, models)
    for sentence in here.lacking:
        sys.stderr.write(f"{sentence}\n")
    rows = [row for row in opened.rows if row.digest]
    if args.predicted_only:
        rows = [row for row in rows if row.world == "predicted"]
    points = {
        (row.digest, str(row.coordinates)): Point(
            row.coordinates, row.seed, here.runs[row.digest], "", row.digest
        )
        for row in rows
        if row.digest in here.runs
    }
    worlds: tuple[World, ...] = tuple(dict.fromkeys(row.world for row in rows))
    environment: Environment = args.environment
    emulation = environment.emulation() if environment.emulation and "emulated" in worlds else None
    every = tuple(points.values())
    campaign = Campaign(
        opened.experiment,
        every,
        Store(folder / REPEATED),
        worlds,
        emulation,
        times_of_host(every, environment),
    )
    wanted = {(row.digest, row.world) for row in rows}
    tasks = tuple(
        task for task in campaign.tasks(retry=True, repeat_stale=True) if (task.digest, task.world) in wanted
    )
    carry_out_tasks(campaign, tasks, len(wanted), args.jobs)
    return compared(opened.experiment, rows, campaign.rows())


def _table(study: Study, folder: Path, problems: Sequence[Compared]) -> Table:
    experiments = {one.name: read_experiment(folder, study, one).experiment for one in study.experiments}
    shown = table(
        "cell", "verdict", "of", "study", "repeated", texts=("cell", "verdict", "of", "study", "repeated")
    )
    for one in problems[:SHOWN]:
        place = f"{one.experiment}: {place_text(experiments[one.experiment], one.coordinates)}"
        shown.add_row(place, one.verdict, one.metric, one.study, one.repeated)
    if len(problems) > SHOWN:
        shown.add_row(f"and {len(problems) - SHOWN} more", "", "", "", "")
    return shown
