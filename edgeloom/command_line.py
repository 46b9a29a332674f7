"""The command `edgeloom` of an installed wheel: the commands of engine and emulator, and the server."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec


def main() -> int:
    """The arguments are those of the process; returns the exit status, 2 where a foreign package is in the
    way.
    """
    try:
        import edgeloom.own_packages  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f"edgeloom: {error}\n")
        return 2
    if sys.argv[1:2] in (["up"], ["worker"]):
        return serve(sys.argv[1], sys.argv[2:])
    from emulator.cli.main import main as run

    return run()


def serve(command: str, argv: list[str]) -> int:
    """Start the server with all its processes, or become a worker of another machine's."""
    if find_spec("django") is None:
        sys.stderr.write(f"edgeloom {command}: it needs the server: pip install 'edgeloom[server]'.\n")
        return 2
    from engine.domain.errors import EdgeLoomError
    from webapp.ops import services, up

    parser = argparse.ArgumentParser(prog=f"edgeloom {command}")
    try:
        if command == "up":
            up.add_arguments(parser)
            return up.up(parser.parse_args(argv).port)
        parser.add_argument("--queue", choices=services.QUEUES, required=True)
        return up.worker(parser.parse_args(argv).queue)
    except EdgeLoomError as error:
        sys.stderr.write(f"edgeloom {command}: {error}\n")
        return 1
