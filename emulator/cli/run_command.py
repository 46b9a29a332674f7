"""`loom run`: carry out one run on emulated devices and links, and present its report."""

from __future__ import annotations

import argparse
import queue

from emulator.session.client import emulate
from engine.cli.arguments import add_run_arguments, run_spec_of
from engine.cli.present import check_writable, present
from engine.cli.progress import RunProgress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    check_writable(args.json)
    spec = run_spec_of(args)
    with RunProgress(spec) as progress:
        report = emulate(spec, progress.events, queue.Queue())
    return present(report, args)
