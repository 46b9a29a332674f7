"""`edgeloom node`: makes this machine a node of a server, which shows it and offers it as a device."""

from __future__ import annotations

import argparse
import math
import os
import sys

from engine.domain.errors import SpecError
from engine.domain.extras import need

TOKEN_VARIABLE = "LOOM_NODE_TOKEN"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--join", metavar="URL", required=True, help="the server, as a browser opens it")
    words = f"what the page Machines has shown; default: the variable {TOKEN_VARIABLE}"
    parser.add_argument("--token", help=words)
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        default="",
        help="IP address where other boards of a run connect; default: that by which the server is reached",
    )
    parser.add_argument(
        "--cache-gb",
        type=_positive,
        default=10.0,
        help="most of the disk that weights of runs take; default: 10",
    )
    parser.add_argument(
        "--memory-gb", type=_positive, default=math.inf, help="most memory of a run; default: what is free"
    )


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
    from emulator.node.runs import Allowed

    memory_bytes = int(min(1e9 * args.memory_gb, 1 << 62))
    join(args.join, token.strip(), say, Allowed(args.listen, int(1e9 * args.cache_gb), memory_bytes))
    return 0


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
