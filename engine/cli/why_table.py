"""The table of why a plan is as it is, which `advise` and `predict` print with `--why`."""

from __future__ import annotations

import argparse

from rich.console import Group, RenderableType
from rich.text import Text

from engine.advice.values import Why
from engine.cli.tables import table
from engine.domain.units import human, human_s


def add_why_argument(parser: argparse.ArgumentParser, of: str) -> None:
    parser.add_argument(
        "--why",
        action="store_true",
        help=f"say what binds each device under the plan of {of}: one unit more or less is tried on each",
    )


def why_group(why: Why) -> Group:
    """One row per device."""
    what = "per token" if why.objective == "per_token_s" else "to the first result"
    title = f"Why the plan of {why.strategy} is as it is"
    if why.figure_s is None:
        return Group(Text(title, "bold"), Text(f"  {why.sentence}"))
    shown = table("device", "binds", "free memory", "why", texts=("why",))
    for device in why.devices:
        shown.add_row(device.device, device.binding, human(device.free_bytes, "B"), device.sentence)
    parts: list[RenderableType] = [Text(f"{title} ({human_s(why.figure_s)} {what})", "bold"), shown]
    return Group(*parts)
