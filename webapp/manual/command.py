"""`edgeloom manual`: the pages of the manual in a terminal, without a server."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from difflib import get_close_matches

from engine.cli.command import Command
from engine.cli.tables import console_for, table
from engine.domain.command_name import COMMAND, as_called_here
from engine.domain.errors import SpecError
from webapp.manual.contents import Page, pages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "page", nargs="?", default="", metavar="PAGE", help="such as own-method; without it all are listed"
    )


def run(args: argparse.Namespace) -> int:
    console = console_for(sys.stdout)
    if args.page:
        from rich.markdown import Markdown  # its parser and highlighter take a while to import

        text = Markdown(as_called_here(page_of(args.page).path.read_text(encoding="utf-8")), hyperlinks=False)
        with console.pager(styles=True) if sys.stdout.isatty() else nullcontext():
            console.print(text)
        return 0
    listed = table("page", "about", texts=("about",))
    for address, page in pages().items():
        if address:
            listed.add_row(address, page.title)
    console.print(listed)
    return 0


def page_of(name: str) -> Page:
    """The page of this address, or of the end of one. Raises `SpecError`."""
    every = {address: page for address, page in pages().items() if address}
    named = {name} if name in every else {address for address in every if address.rpartition("/")[2] == name}
    found = [every[address] for address in named]
    if len(found) != 1:
        ends = {address.rpartition("/")[2] for address in every}
        close = get_close_matches(name, ends | set(every), 1) or [""]
        meant = f"{close[0]} is the nearest" if close[0] else "none is like it"
        raise SpecError(f"the manual has no page {name[:60]}: {meant}; `{COMMAND} manual` lists all.")
    return found[0]


MANUAL = Command("manual", "read the manual", add_arguments, run)
