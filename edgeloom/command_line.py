"""The command `edgeloom` of an installed wheel: the commands of engine and emulator."""

from __future__ import annotations

import sys


def main() -> int:
    """The arguments are those of the process; returns the exit status, 2 where a foreign package is in the
    way.
    """
    try:
        import edgeloom.own_packages  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f"edgeloom: {error}\n")
        return 2
    from emulator.cli.main import main as run

    return run()
