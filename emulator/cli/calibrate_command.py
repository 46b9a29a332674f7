"""`loom calibrate`: measure this machine, and write it as a device."""

from __future__ import annotations

import argparse
import sys

from emulator.calibration.known import time_needed_s
from emulator.calibration.shapes import SHORT, THOROUGH
from emulator.calibration.shown import Shown, residuals_shown, steps_shown
from emulator.session.calibrating import calibrate_host
from engine.cli.arguments import add_json_argument
from engine.cli.long_work import LongWork
from engine.cli.present import check_writable, write_json
from engine.cli.tables import console_for, table
from engine.domain.cluster import DeviceSpec
from engine.domain.extras import need


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = f"more models and rounds, about {THOROUGH.quiet_s / 60:.0f} minutes in place of one"
    parser.add_argument("--thorough", action="store_true", help=words)
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write the machine to FILE, for `predict --profile FILE` and the browser's palette elsewhere",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    need("torch")
    for target in (args.json, args.output):
        check_writable(target)
    extent = THOROUGH if args.thorough else SHORT
    with LongWork("calibrating", expected_s=time_needed_s(extent)) as work:
        found = calibrate_host(extent, work.note, work.tick)
    calibration = found.calibration
    _show(steps_shown(found.steps))
    if found.comparisons:
        _show(residuals_shown(found.comparisons))
    for target in (args.json, args.output):
        if target:
            write_json(calibration.to_json(), target)
    if args.json != "-":
        sys.stdout.write(device_toml(calibration.device))
    return 0


def _show(shown: Shown) -> None:
    """Print to standard error: standard output gets the device."""
    rows = table(*shown.columns)
    for row in shown.rows:
        rows.add_row(*row)
    console = console_for(sys.stderr)
    console.print(shown.title)
    console.print(rows)


def device_toml(device: DeviceSpec) -> str:
    """A `[[device]]` table for a cluster file or a list of presets; what is at its default stays out."""
    lines = ["[[device]]"]
    for key, value in device.model_dump(exclude_defaults=True).items():
        whole = isinstance(value, float) and value.is_integer()
        if isinstance(value, tuple | list):
            rows = [", ".join(f"{name} = {_toml(field)}" for name, field in row.items()) for row in value]
            text = "[\n" + "".join(f"    {{ {row} }},\n" for row in rows) + "]"
        else:
            text = _toml(int(value) if whole else value)
        lines.append(f"{key} = {text}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
