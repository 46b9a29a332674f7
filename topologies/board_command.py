"""`loom board`: a preset beside the row of somebody's own board and beside published rates of tokens.

The row is what `./loom calibrate` measures on the board: the file of its `--output`, or ten lines of names
that presets have, too (`ten_lines`), which are what is sent to us.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from rich.table import Table

from engine.cli.present import check_writable
from engine.cli.tables import console_for, table
from engine.domain.calibration import parse_calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from engine.domain.rates import IN_WORDS, format_bits
from engine.domain.units import human, human_s
from topologies.presets import preset, presets
from topologies.published import published_rates
from topologies.published_runs import compared

LARGEST_BYTES = 1 << 20
SENT = (
    "name",
    "flop_per_s",
    "memory_bytes",
    "memory_byte_per_s",
    "disk_byte_per_s",
    "message_overhead_s",
    "op_overhead_s",
    "half_rows",
    "basis",
    "source",
)
UNITS = {"flop_per_s": "FLOP/s", "memory_bytes": "B", "memory_byte_per_s": "B/s", "disk_byte_per_s": "B/s"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(device.name for device in presets())
    parser.add_argument("preset", metavar="PRESET", help=f"one of {names}")
    parser.add_argument("--row", metavar="FILE", help="what `calibrate --output FILE` wrote, or ten lines")
    parser.add_argument("--send", metavar="FILE", help="write the row as ten lines to FILE")


def run(args: argparse.Namespace) -> int:
    board = preset(args.preset)
    if args.send and not args.row:
        raise SpecError(
            f"--send writes the row of --row: give what {COMMAND} calibrate --output has written."
        )
    own = read_row(Path(args.row), board.name) if args.row else None
    if own and args.send:
        check_writable(args.send)
        Path(args.send).write_text(ten_lines(own), encoding="utf-8")
    console = console_for(sys.stdout)
    console.print(f"{board.name}: {board.title}", style="bold")
    console.print(f"Rates: {board.basis_in_words}. {board.source}")
    console.print(_figures(board, own))
    for rate in board.format_rates:
        share, compute = f"{rate.memory_frac:.0%} of the memory bandwidth", human(rate.flop_per_s, "FLOP/s")
        console.print(f"{rate.bits} bits: {compute}, {share}: {IN_WORDS[rate.basis]} ({rate.source})")
    shown = _published(board, own)
    if shown.row_count:
        console.print("Published tokens per second, and predicted from these rates:")
        console.print(shown)
    else:
        console.print("Nobody has published its rates of tokens.")
    return 0


def read_row(path: Path, name: str) -> DeviceSpec:
    """The device called `name` in a calibration, in a `[[device]]` table, or in ten lines.

    Raises `SpecError`.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}.") from error
    if text.lstrip().startswith("{"):
        device = parse_calibration(text, str(path)).device
    else:
        try:
            found: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SpecError(f"{path}: is neither a calibration nor ten lines of TOML: {error}.") from error
        tables = found.get("device", [found])
        if not isinstance(tables, list) or len(tables) != 1:
            raise SpecError(f"{path}: expected one device, got {len(tables)}: give a file of one board.")
        device = DeviceSpec.parse(tables[0], str(path))
    return device.model_copy(update={"name": name})


def ten_lines(device: DeviceSpec) -> str:
    """The names that a preset has, without the table of efficiencies, whose one number is `half_rows`."""
    row = device.model_dump() | {"half_rows": half_rows(device), "basis": device.basis or "calibrated"}
    return "".join(f"{name} = {json.dumps(row[name], ensure_ascii=False)}\n" for name in SENT)


def half_rows(device: DeviceSpec) -> float:
    """Rows at which the widest products reach half of the peak."""
    widest = max((point.width for point in device.efficiencies), default=0)
    reached = [point for point in device.efficiencies if point.width == widest]
    if not reached:
        return device.half_rows
    near = min(reached, key=lambda point: abs(point.frac - 0.5))
    return round(near.rows * (1 / near.frac - 1), 1)


def _figures(board: DeviceSpec, own: DeviceSpec | None) -> Table:
    columns = ["preset", *(["your row", "row / preset"] if own else [])]
    shown = table("", *columns)
    for name in SENT[1:-2]:
        values = [getattr(board, name)]
        if own:
            values.append(half_rows(own) if name == "half_rows" else getattr(own, name))
        ratio = [f"{values[1] / values[0]:.2f}" if values[0] else ""] if own else []
        shown.add_row(name, *(_said(name, value) for value in values), *ratio)
    return shown


def _said(name: str, value: float) -> str:
    if name in UNITS:
        return human(value, UNITS[name])
    return human_s(value) if name.endswith("_s") else f"{value:g}"


def _published(board: DeviceSpec, own: DeviceSpec | None) -> Table:
    columns = ["published", "preset", *(["your row"] if own else [])]
    shown = table("model", "bits", "what", *columns, "published by", texts=("published by",))
    for row in published_rates():
        if row.board != board.name or row.nodes != 1:
            continue
        bits = str(format_bits(row.weight_bits))
        for each in zip(*(compared(device, row) for device in filter(None, (board, own))), strict=True):
            rates = (f"{rate:.3g}" for rate in (each[0].published, *(one.predicted for one in each)))
            by = f"{row.page.removeprefix('https://')}, {row.runtime}"
            shown.add_row(row.shape, bits, each[0].what, *rates, by)
    return shown
