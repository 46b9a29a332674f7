"""The parts of the documents that are written by `./loom docs`: the picture of the rooms, tables, and the
entries of the programming interface.

Such a part stands between two lines, `<!-- table NAME -->` and `<!-- end NAME -->`; what stands between them
is replaced. Everything else in the file is written by people and stays.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import topologies
from bench.commands import COMMANDS as OF_MEASURING
from emulator.cli.main import COMMANDS
from engine.cli.document import as_csv, table_file, table_link
from engine.domain.rates import IN_WORDS, WITHIN
from engine.domain.report import RunReport
from engine.domain.units import human
from engine.models import catalogue
from engine.models.families.family import restrictions
from engine.models.families.registry import FAMILIES
from engine.reports.metrics import BUILT_IN as FIGURES
from engine.strategies.planner.choice import PlannedParams
from engine.strategies.registry import BUILT_IN
from tests.devtools.commands import COMMANDS as OF_DEVELOPMENT
from tests.devtools.public_api import FILE as PUBLIC_NAMES
from tests.devtools.public_api import public_api
from tests.devtools.reference import common_table, parts_reference, reference
from tests.devtools.reference_operations import operations_table
from tests.devtools.rooms import ROOT, read_parts
from tests.devtools.rooms_picture import picture
from topologies import showcases
from webapp.manual.command import MANUAL
from webapp.operations.commands import COMMANDS as OF_THE_SERVER

PICTURE = "docs/rooms.svg"
MADE_UP = "tiny-"
"""Models for tests, which no table of a document shows."""


def strategies_table() -> str:
    rows = [(f"`{each.name}`", each.summary.rstrip("."), each.paper) for each in BUILT_IN]
    return table(("name", "what it does", "paper"), rows)


def rules_table() -> str:
    found = []
    for each in BUILT_IN:
        by = " with `planner=paper`" if issubclass(each.Params, PlannedParams) else ""
        found += [(f"`{each.name}`{by}", each.rule.rstrip("."))] if each.rule else []
    return table(("method", "rule"), found)


def families_table() -> str:
    fetched = catalogue.packaged_names()  # here on some machines only
    models = [row for row in catalogue.rows() if not row.name.startswith(MADE_UP) and row.name not in fetched]
    rows = [
        (
            f"`{family.name}`",
            f"`{family.architecture}`",
            "; ".join(re.sub(r"^(\w+):", r"`\1`:", each) for each in restrictions(family)),
            ", ".join(f"`{model.name}`" for model in models if model.family == family.name),
        )
        for family in FAMILIES
    ]
    return table(
        ("family", "class of transformers", "keys with fewer values than in the library", "models"), rows
    )


class Beside(NamedTuple):
    """A table that stands as CSV beside its document, which links it."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def devices_table() -> Beside:
    rows = [
        (
            f"`{device.name}`",
            device.title,
            human(device.flop_per_s, "FLOP/s"),
            human(device.memory_bytes, "B"),
            human(device.memory_byte_per_s, "B/s"),
            human(device.watts, "W") if device.watts else "",
            "" if device.price_usd is None else f"{device.price_usd:,g} $ ({device.price_source})",
            device.basis_in_words,
        )
        for device in topologies.presets()
    ]
    columns = ("name", "what it is", "compute", "memory", "memory bandwidth", "power", "price")
    return Beside((*columns, "rates are from"), rows)


def format_rates_table() -> Beside:
    rows = [
        (
            f"`{device.name}`",
            str(rate.bits),
            human(rate.flop_per_s, "FLOP/s"),
            f"{rate.memory_frac:.0%}",
            IN_WORDS[rate.basis],
            f"{WITHIN[rate.basis]:g}",
            rate.source,
        )
        for device in topologies.presets()
        for rate in device.format_rates
    ]
    columns = (
        "name",
        "bits",
        "compute",
        "of the memory bandwidth",
        "what it is",
        "within a factor",
        "source",
    )
    return Beside(columns, rows)


def links_table() -> str:
    rows = [
        (
            f"`{link.name}`",
            link.title,
            human(link.bit_per_s, "bit/s"),
            human(link.reverse_bit_per_s or link.bit_per_s, "bit/s"),
            f"{1e3 * link.delay_s:g} ms",
            f"{1e3 * link.jitter_s:g} ms" if link.jitter_s else "",
            f"{link.loss_frac:.1%}" if link.loss_frac else "",
            link.source,
        )
        for link in topologies.link_presets()
    ]
    columns = ("name", "what it is", "from the device", "to it", "delay", "jitter", "loss", "source")
    return table(columns, rows)


def disks_table() -> str:
    rows = [
        (f"`{disk.name}`", disk.title, human(disk.byte_per_s, "B/s"), disk.source)
        for disk in topologies.disk_presets()
    ]
    return table(("name", "what it is", "reads", "source"), rows)


def clusters_table() -> str:
    clusters = [topologies.load(name) for name in topologies.names()]
    rows = [(f"`{each.name}`", each.title, str(len(each.devices)), str(len(each.links))) for each in clusters]
    return table(("name", "what it is", "devices", "links"), rows)


def showcases_table() -> str:
    rows = []
    for name in showcases.ORDER:  # as they stand in their files: not every machine has all models
        data = tomllib.loads((showcases.FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        run, published = data["run"], [claim.get("published") for claim in data["claim"]]
        rows.append(
            (
                f"`{name}`",
                f"`{run['strategy']}` with {run['model']} on `{run['cluster']}`",
                data["look_for"],
                "; ".join(filter(None, published)),
            )
        )
    return table(("name", "run", "what to look for", "what the paper says"), rows)


def commands_table() -> str:
    rows = [
        (f"`{each.name}`", each.help)
        for each in (*COMMANDS, MANUAL, *OF_MEASURING, *OF_THE_SERVER, *OF_DEVELOPMENT)
    ]
    return table(("command", "what it does"), rows)


def metrics_table() -> str:
    words = {"lower": "less", "higher": "more", None: ""}
    rows = [
        (f"`{each.name}`", each.of, each.title, f"`{each.unit}`" if each.unit else "", words[each.better])
        for each in FIGURES
    ]
    return table(("name", "of a", "what it is", "unit", "better is"), rows)


TABLES: Mapping[str, tuple[str, Callable[[], str | Beside]]] = {
    "metrics": ("docs/reference/metrics.md", metrics_table),
    "strategies": ("docs/reference/strategies.md", strategies_table),
    "rules": ("docs/reference/strategies.md", rules_table),
    "commands": ("docs/reference/commands.md", commands_table),
    "families": ("docs/reference/catalogue.md", families_table),
    "devices": ("docs/results/boards.md", devices_table),
    "format-rates": ("docs/results/boards.md", format_rates_table),
    "links": ("docs/results/boards.md", links_table),
    "disks": ("docs/results/boards.md", disks_table),
    "clusters": ("docs/reference/catalogue.md", clusters_table),
    "planning": ("docs/reference/planning.md", partial(reference, "edgeloom.method.planning")),
    "demand": ("docs/reference/planning.md", partial(reference, "edgeloom.method.demand")),
    "arguments": ("docs/reference/method.md", common_table),
    "method": ("docs/reference/method.md", partial(reference, "edgeloom.method")),
    "costs": ("docs/reference/operations.md", operations_table),
    "operations": ("docs/reference/operations.md", partial(reference, "edgeloom.method.operations")),
    "running": ("docs/reference/running.md", partial(reference, "edgeloom.method.running")),
    "collectives": ("docs/reference/running.md", partial(reference, "edgeloom.method.collectives")),
    "python": ("docs/reference/python.md", partial(reference, "edgeloom")),
    "cluster": ("docs/reference/python.md", partial(reference, "edgeloom.cluster")),
    "metric": ("docs/reference/python.md", partial(reference, "edgeloom.metric")),
    "report": ("docs/reference/python.md", partial(parts_reference, RunReport)),
    "testing": ("docs/reference/python.md", partial(reference, "edgeloom.testing")),
    "showcase-claims": ("docs/results/showcases.md", showcases_table),
}
"""Name of a table → the file it stands in, and what writes it."""


def documents(root: Path = ROOT) -> dict[str, str]:
    """Every file with generated parts, by its path, as it should be. Raises `ValueError` without a marker."""
    found = {PICTURE: picture(read_parts()), PUBLIC_NAMES: public_api()}
    for name, (file, write) in TABLES.items():
        text = found.get(file) or (root / file).read_text(encoding="utf-8")
        content = write()
        if isinstance(content, Beside):
            document = Path(file)
            found[table_file(document, name).as_posix()] = as_csv(*content)
            content = table_link(document, name, len(content.rows)) + "\n"
        found[file] = replaced(text, name, content, file)
    return found


def outdated(root: Path = ROOT) -> list[str]:
    """The files that `./loom docs` would change."""
    return [
        file
        for file, text in documents(root).items()
        if not (root / file).is_file() or (root / file).read_text(encoding="utf-8") != text
    ]


def replaced(text: str, name: str, content: str, where: str) -> str:
    """`text` with `content` between the markers of `name`."""
    begin, end = f"<!-- table {name} -->\n", f"<!-- end {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{where}: expected the lines {begin.strip()} and {end}, one after the other.")
    return f"{before}{begin}{content}{end}{after}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [tuple(heads), ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)
