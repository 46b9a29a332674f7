"""`loom predict`: simulate a run in virtual time. It needs neither root nor torch."""

from __future__ import annotations

import argparse

from engine.cli.arguments import add_run_arguments, run_spec_of
from engine.cli.command import Command
from engine.cli.present import check_writable, present
from engine.cli.progress import RunProgress
from engine.runs.predict import predict


def run(args: argparse.Namespace) -> int:
    check_writable(args.json)
    spec = run_spec_of(args)
    with RunProgress(spec, quiet_tokens=True) as progress:
        report = predict(spec, progress.event)
    return present(report, args)


PREDICT = Command("predict", "predict a run in the simulated world", add_run_arguments, run)
