"""`loom experiment`: carry out the points of an experiment, and show or write what they give."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from engine.advice.planners import in_words, planner_gains
from engine.cli.advise_command import assess_all
from engine.cli.arguments import plan_in_file
from engine.cli.command import Environment
from engine.cli.experiment_progress import PointsProgress
from engine.cli.tables import console_for, table
from engine.domain.calibration import calibration_digest
from engine.domain.cluster import DeviceSpec
from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.host_times import HostProfile
from engine.domain.numbers_as_text import unit_and_factor
from engine.domain.world import World
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.seeds import seed_changes
from engine.experiments.design.shipped_files import load
from engine.experiments.design.sources import Sources
from engine.experiments.design.written_out import is_file
from engine.experiments.execution.campaign import Task, carry_out_all, tasks_of
from engine.experiments.execution.point import Emulation, version_of
from engine.experiments.execution.store import Store
from engine.experiments.presentation.figure_data import check_figure
from engine.experiments.presentation.report_html import cell_text, summary
from engine.experiments.results.cells import place_text
from engine.experiments.results.claims import verdicts
from engine.experiments.results.pivot import TableData, check_table, table_data
from engine.experiments.results.rows import REPEATABLE, Row, rows
from engine.experiments.results.sameness import notes_of
from engine.experiments.results.statements import check_statements
from engine.experiments.results.versions import Versions, uses_host_times
from engine.recorded.prompts import read_prompts
from engine.recorded.requests import read_requests
from engine.recorded.scenarios import read_scenario
from engine.strategies.registry import named

STYLES = {"holds": "green", "holds in direction": "yellow", "does not hold": "red"}
ACTIONS = {
    "run": "carry out every point that has no result yet, in all worlds of the experiment",
    "predict": "predict every point (no root needed)",
    "report": "write figures, tables, data and one HTML file of the results so far",
    "show": "show the points and the results so far",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "; ".join(f"{name}: {text}" for name, text in ACTIONS.items())
    parser.add_argument("action", choices=tuple(ACTIONS), help=told)
    parser.add_argument(
        "experiment", metavar="FILE|NAME", help=f"TOML or JSON: see `{COMMAND} list experiments`"
    )
    add_strategies(parser)
    parser.add_argument(
        "--output",
        default="results",
        metavar="DIR",
        help="where results are kept, of all experiments together (results)",
    )
    add_jobs(parser)
    parser.add_argument("--retry", action="store_true", help="repeat points that failed")
    parser.add_argument(
        "--repeat-stale",
        action="store_true",
        help="repeat points that other code, or another calibration, made",
    )


def add_strategies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        dest="strategies",
        action="append",
        default=[],
        metavar="FILE.py:CLASS",
        help="a method that the experiment names and that is in a file, which is run; repeatable",
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs",
        type=jobs_of,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes that predict (all cores)",
    )


class Campaign(NamedTuple):
    """An experiment with its points, where its results are kept, and what carries them out."""

    experiment: Experiment
    points: tuple[Point, ...]
    store: Store
    worlds: tuple[World, ...]
    emulation: Emulation | None
    profile: HostProfile | None
    """The times of this host, if a point depends on them."""

    @property
    def versions(self) -> Versions:
        code = {world: version_of(world, self.emulation) for world in self.worlds}
        return Versions(code=code, calibration=calibration_digest(self.profile))

    def tasks(self, retry: bool = False, repeat_stale: bool = False) -> tuple[Task, ...]:
        """What is left to do."""
        known = self.store.read(point.digest for point in self.points)
        found = tasks_of(self.points, self.worlds, known, self.versions, retry, repeat_stale)
        return tuple(
            task._replace(profile=self.profile) if uses_host_times(task.spec) else task for task in found
        )

    def rows(self) -> tuple[Row, ...]:
        known = self.store.read(point.digest for point in self.points)
        return rows(self.points, self.worlds, known, self.versions)


def run(args: argparse.Namespace) -> int:
    for method in args.strategies:
        named(method)
    campaign = campaign_of(
        load(args.experiment), args.environment, Path(args.output), args.action == "predict"
    )
    if args.action == "show":
        return _show(campaign)
    if args.action == "report":
        return _report(campaign, Path(args.output))
    return _carry_out(campaign, args)


def sources_of(environment: Environment) -> Sources:
    """What an experiment may name on the command line: what comes with EdgeLoom, and files."""

    def preset(name: str) -> DeviceSpec:
        for device in environment.presets():
            if device.name == name:
                return device
        known = ", ".join(device.name for device in environment.presets())
        raise SpecError(f"no device preset {name}: there are {known}.")

    return Sources(
        cluster=environment.load_cluster,
        preset=preset,
        scenario=lambda name: read_scenario(name) if is_file(name) else environment.scenario(name),
        requests=lambda name: read_requests(name).requests,
        prompts=read_prompts,
        plan=lambda name, cluster, model: plan_in_file(Path(name), cluster, model, "params.plan "),
    )


def campaign_of(
    experiment: Experiment, environment: Environment, output: Path, only_predicts: bool = False
) -> Campaign:
    """An experiment whose results are kept in `output`. Raises `SpecError`."""
    for figure in experiment.figures:
        check_figure(experiment, figure)
    for each in experiment.tables:
        check_table(experiment, each)
    check_statements(experiment)
    points = expand(experiment, sources_of(environment))
    worlds: tuple[World, ...] = ("predicted",) if only_predicts else experiment.worlds
    emulation = environment.emulation() if environment.emulation and "emulated" in worlds else None
    profile = times_of_host(points, environment)
    return Campaign(experiment, points, Store(output), worlds, emulation, profile)


def times_of_host(points: Sequence[Point], environment: Environment) -> HostProfile | None:
    """The times of this host, if a point depends on them and they are known."""
    dependent = (point.spec for point in points if point.spec and uses_host_times(point.spec))
    spec = next(dependent, None)
    return None if spec is None else environment.with_profile(spec).profile


def _carry_out(campaign: Campaign, args: argparse.Namespace) -> int:
    tasks = campaign.tasks(args.retry, args.repeat_stale)
    total = len(
        {(point.digest, world) for point in campaign.points if point.spec for world in campaign.worlds}
    )
    try:
        carry_out_tasks(campaign, tasks, total, args.jobs)
    except KeyboardInterrupt:
        sys.stderr.write("Finished points are kept: the same command continues.\n")
        raise
    return _show(campaign)


def carry_out_tasks(campaign: Campaign, tasks: tuple[Task, ...], total: int, jobs: int) -> None:
    with PointsProgress(tasks, total, jobs) as progress:
        for result in carry_out_all(tasks, campaign.store.add, jobs, campaign.emulation):
            progress.take(result)


def _show(campaign: Campaign) -> int:
    found = campaign.rows()
    experiment = campaign.experiment
    parts: list[RenderableType] = [
        Text(experiment.title or experiment.name, style="bold"),
        Text(summary(experiment, campaign.points, found)),
    ]
    if len(experiment.seeds) > 1:
        changes = ", ".join(seed_changes(campaign.points)) or "nothing: repeats are the same run"
        parts.append(Text(f"A seed changes: {changes}."))
    parts += [Text(note.sentence, "yellow") for note in notes_of(experiment, found)]
    parts += [_table(table_data(experiment, each, found)) for each in experiment.tables]
    if experiment.claims:
        parts.append(_claims(campaign, found))
    problems = [row for row in found if not row.finished]
    if problems:
        parts.append(_problems(campaign, problems))
    finished = {row.digest for row in found if row.finished}
    specs = [point.spec for point in campaign.points if point.spec and point.digest in finished]
    better = in_words(planner_gains(specs, assess_all))
    parts += [Text(better)] if better else []
    console = console_for(sys.stdout)
    for part in parts:
        console.print(part)
    has_failed = any(row.outcome in REPEATABLE for row in found)
    is_complete = len(found) == len(campaign.points) * len(campaign.worlds)
    return 3 if has_failed or not is_complete else 0


def _table(data: TableData) -> Table:
    unit, factor = unit_and_factor(data.unit, [cell.value for row in data.rows for cell in row.cells if cell])
    shown = table(*data.row_titles, *(", ".join(column) or data.quantity for column in data.columns))
    shown.title = f"{data.title}{f' ({unit})' if unit else ''}"
    shown.title_justify = "left"
    for row in data.rows:
        cells = (
            Text(cell_text(cell, factor), style="bold" if cell and cell.best else "") for cell in row.cells
        )
        shown.add_row(*row.headings, *cells)
    return shown


def _claims(campaign: Campaign, found: tuple[Row, ...]) -> Table:
    shown = table("claim", "world", "verdict", "found", texts=("claim", "found"))
    for one in verdicts(campaign.experiment, found):
        why = f"{one.found} {one.reason}".strip()
        shown.add_row(one.text, one.world, Text(one.verdict, style=STYLES.get(one.verdict, "")), why)
    return shown


def _problems(campaign: Campaign, problems: list[Row]) -> Table:
    shown = table("point without a result", "world", "outcome", "reason", texts=("reason",))
    for row in problems[:20]:
        place = place_text(campaign.experiment, dict(row.coordinates))
        shown.add_row(place, row.world, row.outcome.replace("_", " "), row.sentence)
    if len(problems) > 20:
        shown.add_row(f"and {len(problems) - 20} more", "", "", "")
    return shown


def _report(campaign: Campaign, output: Path) -> int:
    from engine.experiments.presentation.report_files import write_report  # it loads matplotlib

    found = campaign.rows()
    if not any(row.finished for row in found):
        raise SpecError(
            f"{output}: has no results of {campaign.experiment.name}: run `{COMMAND} experiment predict` "
            "first."
        )
    written = write_report(campaign.experiment, campaign.points, found, output / campaign.experiment.name)
    for path in written:
        sys.stdout.write(f"{path}\n")
    return 0


def jobs_of(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return number
