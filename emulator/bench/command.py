"""`loom bench [NAME …]`: run benchmarks, print their tables, and with --write keep them in docs/bench.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from emulator.bench.decision import measure_decision
from emulator.bench.links import measure_links
from emulator.bench.pacing import measure_pacing
from emulator.bench.predict import measure_prediction
from emulator.bench.rows import Table, as_markdown, as_text
from emulator.bench.startup import measure_startup
from emulator.host import host_name
from emulator.probe import probe
from engine.cli.command import Command, Environment
from engine.errors import SpecError

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "bench.md"


class Bench(NamedTuple):
    """`measure` gets the environment (clusters by name) and returns its table."""

    name: str
    help: str
    measure: Callable[[Environment], Table]


BENCHES: tuple[Bench, ...] = (
    Bench("pacing", "how long paced operations last, against their target", measure_pacing),
    Bench("links", "time of a message, against size / bandwidth", measure_links),
    Bench("predict", "predicted against emulated latency of the four strategies", measure_prediction),
    Bench("decision", "what EdgeFormer's decisions cost beside a forward pass", measure_decision),
    Bench("startup", "seconds until all devices are ready", measure_startup),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(f"{bench.name} ({bench.help})" for bench in BENCHES)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or some of: {names}")
    parser.add_argument("--write", action="store_true", help=f"update {DOCUMENT.parent.name}/{DOCUMENT.name}")


def run(args: argparse.Namespace) -> int:
    chosen = [bench for bench in BENCHES if not args.names or bench.name in args.names]
    unknown = [name for name in args.names if name not in [bench.name for bench in BENCHES]]
    if unknown:
        known = ", ".join(bench.name for bench in BENCHES)
        raise SpecError(f"there is no benchmark {unknown[0]}: there are {known}.")
    probe().require()
    for bench in chosen:
        sys.stderr.write(f"{bench.name}: {bench.help}\n")
        result = bench.measure(args.environment)
        sys.stdout.write(as_text(result) + "\n")
        sys.stdout.flush()
        if args.write:
            write_section(DOCUMENT, bench.name, section(result))
    return 0


def section(result: Table) -> str:
    """A table under its circumstances, in Markdown."""
    found = probe()
    where = f"{host_name()}, {found.cores} cores, Linux {found.kernel}, {time.strftime('%Y-%m-%d')}"
    return f"{as_markdown(result)}\n\n{where}"


def write_section(document: Path, name: str, text: str) -> None:
    """Replace what stands between this benchmark's markers; raises `SpecError` if the markers are gone."""
    start, end = f"<!-- bench {name} -->", f"<!-- end {name} -->"
    before, found_start, rest = document.read_text(encoding="utf-8").partition(start)
    _, found_end, after = rest.partition(end)
    if not found_start or not found_end:
        raise SpecError(f"{document}: the markers {start} and {end} are missing: put them back.")
    document.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


BENCH = Command("bench", "measure how true and how fast the emulation is", add_arguments, run)
