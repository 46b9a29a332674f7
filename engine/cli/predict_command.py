"""`loom predict`: simulate a run in virtual time. It needs neither root nor torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.cli.arguments import add_run_arguments, run_spec_of
from engine.cli.command import Command, Environment
from engine.cli.present import check_writable, present
from engine.cli.progress import RunProgress
from engine.domain.calibration import on_machine, read_calibration
from engine.runs.predict import predict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="all devices compute and send as the machine that loom calibrate --output wrote to FILE",
    )
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    check_writable(args.json)
    spec = run_spec_of(args)
    if args.profile is not None:
        spec = on_machine(spec, read_calibration(Path(args.profile)))
    environment: Environment = args.environment
    spec = environment.with_profile(spec)
    with RunProgress(spec, quiet_tokens=True) as progress:
        report = predict(spec, progress.event)
    return present(report, args)


PREDICT = Command("predict", "predict a run in the simulated world", add_arguments, run)
