"""`loom predict`: simulate a run in virtual time. It needs neither root nor torch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.advice.why import explain
from engine.cli.advise_command import assess_all
from engine.cli.arguments import add_run_arguments, run_spec_of
from engine.cli.command import Environment
from engine.cli.long_work import LongWork
from engine.cli.present import check_writable, present
from engine.cli.tables import console_for
from engine.cli.why_table import add_why_argument, why_group
from engine.domain.calibration import on_machine, read_calibration
from engine.domain.command_name import COMMAND
from engine.runs.best_planner import with_best_planner
from engine.runs.fits import available_bytes, check_fits, is_long
from engine.runs.predict import predict
from engine.runs.uncertainty import with_uncertainty


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help=f"all devices compute and send as the machine that {COMMAND} calibrate --output wrote to FILE",
    )
    add_run_arguments(parser)
    add_why_argument(parser, "this run")


def run(args: argparse.Namespace) -> int:
    check_writable(args.json)
    spec = run_spec_of(args)
    if args.profile is not None:
        spec = on_machine(spec, read_calibration(Path(args.profile)))
    environment: Environment = args.environment
    spec = environment.with_profile(spec)
    total = spec.workload.requests * max(1, spec.workload.new_tokens)
    if is_long(spec):
        sys.stderr.write(f"{total:,} tokens to predict: a few first, to tell what all of them take …\n")
        sys.stderr.flush()
    expected_s = check_fits(spec, available_bytes())
    with LongWork("predicting", total, expected_s, unit="tokens", stops=True) as work:
        report = predict(spec, should_stop=work.stopped, reached=work.reached)
        report = with_best_planner(with_uncertainty(report, work.stopped))
    status = present(report, args)
    if work.stopped():
        return 130
    if args.why and args.json != "-":
        console_for(sys.stdout).print(why_group(explain(spec, assess_all)))
    return status
