"""`edgeloom node`: makes this machine a node of a server, which shows it and offers it as a device."""

from __future__ import annotations

import argparse
import os
import sys

from engine.domain.errors import SpecError
from engine.domain.extras import need

TOKEN_VARIABLE = "LOOM_NODE_TOKEN"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--join", metavar="URL", required=True, help="the server, as a browser opens it")
    words = f"what the page Machines has shown; default: the variable {TOKEN_VARIABLE}"
    parser.add_argument("--token", help=words)


def run(args: argparse.Namespace) -> int:
    for library in ("websockets", "safetensors", "torch"):
        need(library)
    token = args.token or os.environ.get(TOKEN_VARIABLE, "")
    if not token.isascii() or not token.isprintable() or not token.strip():
        raise SpecError(
            f"--token is missing or none: give the one that the page Machines has shown, or set "
            f"{TOKEN_VARIABLE} to it."
        )
    from emulator.node.joining import join

    join(args.join, token.strip(), say)
    return 0


def say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
