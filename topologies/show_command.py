"""`loom show`: print what a cluster or a drawing holds, or write it as a cluster file; nothing runs."""

from __future__ import annotations

import argparse
import re
import sys

from rich.table import Table

from engine.cli.tables import console_for, table
from engine.domain.units import human, human_s
from topologies.drawn import Drawn
from topologies.files import dump_drawing, load_drawing
from topologies.formats import FORMATS
from topologies.layout import enabled

_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cluster",
        metavar="CLUSTER",
        help="name, cluster file (.toml, .json, .yaml), or drawing (.mn, .graphml, .gml)",
    )
    parser.add_argument(
        "--as", dest="form", choices=FORMATS, help="write it as a cluster file in this format instead"
    )


def run(args: argparse.Namespace) -> int:
    """Show a cluster, or print it in another form. Raises `SpecError` afterwards if nothing can run on it."""
    drawn = load_drawing(args.cluster)
    if args.form:
        # A cluster file is UTF-8, whatever the terminal's encoding.
        sys.stdout.flush()
        sys.stdout.buffer.write(dump_drawing(drawn, args.form).encode())
        return 0
    _show(drawn)
    sys.stdout.flush()
    enabled(*drawn)
    return 0


def _show(drawn: Drawn) -> None:
    spec, layout = drawn
    console = console_for(sys.stdout)
    console.print(f"{spec.name}: {_plain(spec.title)}" if spec.title else spec.name, style="bold")
    if spec.description:
        console.print(_plain(spec.description))
    console.print(_devices(drawn))
    if spec.links:
        console.print(_links(drawn))
    if spec.switches:
        console.print("Switches: " + ", ".join(_name(part.name, drawn) for part in spec.switches) + ".")
    for group in layout.groups:
        console.print(f"Group {_plain(group.name)}: {', '.join(group.members)}.")


def _devices(drawn: Drawn) -> Table:
    shown = table("device", "compute", "memory", "bandwidth", "what", texts=("what",))
    for device in drawn.spec.devices:
        roles = [_plain(device.title), "holds the prompt" if device.name == drawn.spec.source else ""]
        if device.role == "terminal":
            roles.append("terminal: computes no layer")
        if device.reserved_bytes:
            roles.append(f"{human(device.reserved_bytes, 'B')} of memory kept by its system")
        shown.add_row(
            _name(device.name, drawn),
            human(device.flop_per_s, "FLOP/s"),
            human(device.memory_bytes, "B"),
            human(device.memory_byte_per_s, "B/s"),
            "; ".join(filter(None, roles)),
        )
    return shown


def _links(drawn: Drawn) -> Table:
    shown = table("link", "rate", "delay", "loss")
    for link in drawn.spec.links:
        shown.add_row(
            _name(link.name, drawn, *link.names),
            _both(human(link.rate(True), "bit/s"), human(link.rate(False), "bit/s")),
            _both(*(human_s(link.delay(forward)) for forward in (True, False))),
            _both(*(f"{100 * link.loss(forward):.3g} %" for forward in (True, False))),
        )
    return shown


def _plain(text: str) -> str:
    """`text` with control characters as escapes, which change nothing in a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def _both(forward: str, back: str) -> str:
    return forward if forward == back else f"{forward} →, {back} ←"


def _name(name: str, drawn: Drawn, *names: str) -> str:
    """The first name of a node or link; `names` are all by which the layout may call it, if it has more than
    one.
    """
    return f"{name} (off)" if {name, *names} & set(drawn.layout.disabled) else name
