"""`loom chaos`: runs a campaign of trials, each with a device failure at a random moment.

No trial may hang, emit a wrong token, let devices do other work than predicted, or leave anything behind. A
failed trial is printed with its seed and number, which repeat it.
"""

from __future__ import annotations

import argparse
import os
import queue
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.chaos.kills import Trial, trial
from bench.chaos.verdict import GOOD, Ending, judge
from bench.nodes.campaign import board_trials
from bench.tables.documents import DOCUMENTS, section, write_section
from bench.tables.rows import Table, as_text
from bench.trials.campaign import DATABASES, service_trials
from emulator.host.leftovers import children, recorded
from emulator.host.places import state_directory
from emulator.network.probe import probe
from emulator.session.client import emulate, expect_emulations
from engine.domain.errors import SpecError
from engine.domain.events import AttemptBegun, Event, StateChanged, of_last_attempt
from engine.domain.report import RunReport
from engine.domain.scenario import LiveCommand
from engine.domain.trace import Mark, Span
from engine.runs.predict import predict
from engine.strategies.registry import STRATEGIES, named

HUNG_AFTER_S = 300.0
"""Wall seconds after which a trial counts as hung: an undisturbed one takes a few."""


class Played(NamedTuple):
    """A run's report, and its trace if it was emulated."""

    report: RunReport
    trace: list[Span | Mark]


class Ended(NamedTuple):
    """One trial: how it ended, and why that is not good."""

    trial: Trial
    ending: Ending
    sentence: str
    recoveries_s: tuple[float, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=100, metavar="N", help="number of trials (100)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="repeats the same campaign (1)")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="number of the first trial (0)")
    parser.add_argument(
        "--strategy",
        action="append",
        metavar="NAME|FILE.py:CLASS",
        help="only these, which makes other trials; repeatable",
    )
    parser.add_argument(
        "--world",
        choices=("predicted", "emulated"),
        default="emulated",
        help="processes on shaped links, or the same trials on shapes without root (emulated)",
    )
    parser.add_argument(
        "--service",
        choices=DATABASES,
        help="trials of the server instead: three workers and faults of its own, its runs in this database",
    )
    parser.add_argument(
        "--boards",
        action="store_true",
        help="trials of boards instead: a server and boards in namespaces",
    )
    parser.add_argument("--write", action="store_true", help="keep the result in docs/results/")


def run(args: argparse.Namespace) -> int:
    is_emulated = args.world == "emulated"
    for option, value, least in (("--kills", args.kills, 1), ("--first", args.first, 0)):
        if value < least:
            raise SpecError(f"{option} is {value}: it must be {least} or more.")
    if args.service or args.boards or is_emulated:
        probe().require()
    if args.boards:
        return boards(args)
    if args.service:
        if args.strategy:
            raise SpecError("--strategy chooses the runs of --world: leave it out with --service.")
        return service(args)
    if is_emulated:
        expect_emulations()  # the process that they are forked from stays and is none of their traces
    strategies = tuple(named(name) for name in args.strategy or ()) or STRATEGIES
    before = traces_of_runs()
    began_s = time.monotonic()
    ended = []
    for number in range(args.first, args.first + args.kills):
        one = _play(emulated if is_emulated else predicted, trial(args.seed, number, strategies))
        ended.append(one)
        if one.ending not in GOOD:
            sys.stdout.write(f"{one.trial.title}: {one.ending}: {one.sentence}\n")
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{number - args.first + 1} of {args.kills}")
    left = traces_of_runs() - before
    result = table(args.world, args.seed, ended, left, time.monotonic() - began_s)
    sys.stdout.write(as_text(result) + "\n")
    if args.write:
        write_section(DOCUMENTS / "fidelity.md", f"chaos {args.world}", section(result))
    return 0 if not left and all(one.ending in GOOD for one in ended) else 1


def service(args: argparse.Namespace) -> int:
    """Trials of the server: `bench/trials` says what happens in them."""
    trials = service_trials(args.seed, args.first, args.kills, args.service)
    result = Table(f"service on {args.service}, seed {args.seed}", ("", ""), trials.rows)
    sys.stdout.write(as_text(result) + "\n")
    if args.write:
        name = f"chaos service {args.service}"
        write_section(DOCUMENTS / "server.md", name, section(result))
    return 1 if trials.problems else 0


def boards(args: argparse.Namespace) -> int:
    """Trials of boards: `bench/nodes` says what happens in them."""
    found = board_trials(args.seed, args.first, args.kills)
    result = Table(f"A server and boards in namespaces, seed {args.seed}", ("", ""), found.rows)
    sys.stdout.write(as_text(result) + "\n")
    if args.write:
        write_section(DOCUMENTS / "nodes.md", "chaos boards", section(result))
    return 1 if found.problems else 0


def _play(play: Callable[[Trial], Played], one: Trial) -> Ended:
    try:
        report, trace = play(one)
        verdict = judge(one, report, trace)
    except Exception as error:  # any error is a finding, and the campaign goes on
        return Ended(one, "failed", f"{type(error).__name__}: {error}", ())
    recoveries_s = tuple(
        recovery.detect_s + recovery.replan_s + recovery.reload_s + recovery.rebuild_s
        for recovery in report.recoveries
        if recovery.rebuild_s is not None
    )
    return Ended(one, verdict.ending, verdict.why, recoveries_s)


def predicted(one: Trial) -> Played:
    return Played(predict(one.spec), [])


def emulated(one: Trial) -> Played:
    """An emulation, stopped when it takes too long once it has begun."""
    seen: list[Event] = []
    commands: queue.Queue[LiveCommand] = queue.Queue()
    began_s: list[float] = []

    def on_events(events: list[Event]) -> None:
        if any(isinstance(event, StateChanged) and event.state == "running" for event in events):
            began_s.append(time.monotonic())
        if began_s and time.monotonic() - began_s[0] > HUNG_AFTER_S:
            commands.put({"kind": "stop"})
        seen.extend(event for event in events if isinstance(event, Span | Mark | AttemptBegun))

    report = emulate(one.spec, on_events, commands)
    return Played(report, [event for event in of_last_attempt(seen) if isinstance(event, Span | Mark)])


def traces_of_runs() -> frozenset[str]:
    """The traces that runs of this process could leave on this machine: interfaces, child processes, session
    records, open files.
    """
    interfaces = {f"interface {path.name}" for path in Path("/sys/class/net").iterdir()}
    processes = {f"process {child.pid}" for child in children(os.getpid())}
    records = {f"record {path.name}" for path in recorded(state_directory(), os.getpid())}
    sockets = {
        f"socket {target}"
        for fd in Path("/proc/self/fd").iterdir()
        if (target := _target(fd)).startswith("socket:")
    }
    return frozenset(interfaces | processes | records | sockets)


def _target(fd: Path) -> str:
    try:
        return str(fd.readlink())
    except FileNotFoundError:  # the descriptor that listed them
        return ""


def table(world: str, seed: int, ended: list[Ended], left: frozenset[str], wall_s: float) -> Table:
    counts = Counter(one.ending for one in ended)
    times_s = sorted(time_s for one in ended for time_s in one.recoveries_s)
    median_s = times_s[len(times_s) // 2] if times_s else 0.0
    rows = (
        ("trials", str(len(ended))),
        ("finished with the right tokens", str(counts["finished"])),
        ("ended with a clear reason", str(counts["ended clearly"])),
        ("hung", str(counts["hung"])),
        ("wrong tokens", str(counts["wrong tokens"])),
        ("other work than predicted", str(counts["other work"])),
        ("failed otherwise", str(counts["failed"])),
        ("left behind", str(len(left)) + "".join(f", {name}" for name in sorted(left))),
        ("recovery, median (virtual)", f"{median_s:.3f} s"),
        ("wall time", f"{wall_s:.0f} s"),
    )
    return Table(f"{world}, seed {seed}", ("", ""), rows)
