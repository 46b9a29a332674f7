"""`loom doctor`: lists what this machine can do for EdgeLoom, and the remedy for each missing capability."""

from __future__ import annotations

import argparse
import sys

from rich.text import Text

from emulator.calibration.known import calibration_file, known_calibration
from emulator.network.probe import Capabilities, Capability, probe
from emulator.session.turns import GROUP, holders
from emulator.session.view import session_cache
from engine.cli.tables import console_for, table
from engine.domain.command_name import COMMAND
from engine.domain.units import human
from engine.ops.torch_kernels.linear_table import LinearTable
from engine.ops.torch_kernels.row_library import compiler
from engine.runs.host_kernels import kernels_file, known_kernels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the command takes none."""


def run(args: argparse.Namespace) -> int:
    found = probe()
    show(found, sys.stdout)
    return 0 if is_fit(found) else 2


def is_fit(found: Capabilities) -> bool:
    """Whether everything needed to emulate is there."""
    return all(item.ok for item in found.items if item.needed)


def show(found: Capabilities, stream: object) -> None:
    """Print the capabilities, this machine's figures and the verdict."""
    console = console_for(stream)  # type: ignore[arg-type]
    listing = table("capability", "", "what it is for")
    listing.columns[2].justify = "left"
    listing.columns[2].no_wrap = False
    for item in found.items:
        listing.add_row(item.name, _badge(item), _words(item))
    console.print(listing)
    facts = (
        f"{found.cores} cores, {human(found.memory_bytes, 'B')} of memory, kernel {found.kernel}, "
        f"control groups version {found.cgroup_version}"
    )
    console.print(facts)
    console.print(_turn())
    console.print(_calibration())
    console.print(_kernels())
    if is_fit(found):
        console.print(Text("This machine can emulate.", style="green"))
    else:
        console.print(Text("This machine cannot emulate yet; it can predict.", style="red"))


def _turn() -> str:
    """Who emulates here now, and who does although nobody waits for it."""
    every = holders()
    now = "; ".join(str(one) for one in every if one.counts)
    text = f"Emulating now: {now}." if now else "Nobody emulates here now."
    others = "; ".join(str(one) for one in every if not one.counts)
    if others:
        text += f" Nobody waits for {others}: only root, this user and the group {GROUP} take turns."
    return text


def _badge(item: Capability) -> Text:
    if item.ok:
        return Text("yes", style="green")
    return Text("NO", style="red") if item.needed else Text("no", style="yellow")


def _words(item: Capability) -> str:
    return item.detail if item.ok else f"{item.detail}. {item.remedy}"


def _calibration() -> str:
    known = known_calibration()
    if known is None:
        return (
            "Not calibrated: runs are paced cautiously; predictions of runs at native speed need "
            f"{COMMAND} calibrate."
        )
    device = known.device
    said = (
        f"Calibrated: {human(device.flop_per_s, 'FLOP/s')} and {human(device.memory_byte_per_s, 'B/s')} "
        f"per core ({calibration_file()})."
    )
    return f"{said} {known.profile.caution}".rstrip()


TOLD = 1.05
"""A kernel that is so many times as fast as torch's default is named."""


def _kernels() -> str:
    """A sentence about the kernels that the probe has chosen for products with weights."""
    file = session_cache() / kernels_file().name
    known = known_kernels(file)
    if known is None:
        return "Kernels of products not timed yet: the first run does it, in about a second."
    others = [
        f"{choice.kernel} for {choice.dtype}, {choice.rows} rows, {choice.side} wide "
        f"({choice.seconds['default'] / choice.seconds[choice.kernel]:.1f} times as fast)"
        for choice in known.choices
        if choice.kernel != "default" and choice.seconds["default"] > TOLD * choice.seconds[choice.kernel]
    ]
    named = "; ".join(others) or "the default is fastest for all"
    return f"Kernels of products, where torch's default is not the fastest: {named} ({file}). {_rows(known)}"


def _rows(known: LinearTable) -> str:
    """Whether the loops for products of one row were there to be timed."""
    if known.row_library:
        return "EdgeLoom's own kernels for products of one row are compiled."
    why = "the C compiler failed" if compiler() else "there is no C compiler"
    return f"EdgeLoom's own kernels for products of one row are not compiled, as {why}: torch's are used."
