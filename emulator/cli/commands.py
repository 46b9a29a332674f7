"""The commands of `./loom` that need this machine: run, doctor, calibrate, bench."""

from __future__ import annotations

import argparse
import queue
import sys

from emulator.bench.command import BENCH
from emulator.bench.compute import residual_table
from emulator.bench.rows import as_text
from emulator.calibration.known import keep
from emulator.calibration.residuals import measured_residuals
from emulator.cli.chaos import CHAOS
from emulator.cli.doctor import is_fit, show
from emulator.network.probe import probe
from emulator.session.client import emulate
from engine.cli.arguments import add_json_argument, add_run_arguments, run_spec_of
from engine.cli.command import Command
from engine.cli.present import check_writable, present, write_json
from engine.cli.progress import RunProgress
from engine.domain.cluster import DeviceSpec


def run(args: argparse.Namespace) -> int:
    check_writable(args.json)
    spec = run_spec_of(args)
    with RunProgress(spec) as progress:
        report = emulate(spec, progress.events, queue.Queue())
    return present(report, args)


def doctor(args: argparse.Namespace) -> int:
    found = probe()
    show(found, sys.stdout)
    return 0 if is_fit(found) else 2


def calibrate(args: argparse.Namespace) -> int:
    check_writable(args.json)
    sys.stderr.write("calibrating: about a minute, best on an idle machine\n")
    result, comparisons = measured_residuals()
    keep(result)
    sys.stderr.write(as_text(residual_table(comparisons)) + "\n")
    if args.json:
        write_json(result.to_json(), args.json)
    if args.json != "-":
        sys.stdout.write(device_toml(result.device))
    return 0


def device_toml(device: DeviceSpec) -> str:
    """A `[[device]]` table for a cluster file or a list of presets; what is at its default stays out."""
    lines = ["[[device]]"]
    for key, value in device.model_dump(exclude_defaults=True).items():
        whole = isinstance(value, float) and value.is_integer()
        text = f'"{value}"' if isinstance(value, str) else repr(int(value) if whole else value)
        lines.append(f"{key} = {text}")
    return "\n".join(lines) + "\n"


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    """This command takes none."""


COMMANDS: tuple[Command, ...] = (
    Command("run", "run on emulated devices and links (needs root)", add_run_arguments, run),
    Command("doctor", "check what this machine can do, and say how to mend the rest", _no_arguments, doctor),
    Command("calibrate", "measure this machine and write it as a device", add_json_argument, calibrate),
    BENCH,
    CHAOS,
)
