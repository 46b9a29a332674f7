"""The command `edgeloom` of an installed wheel: the commands of engine and emulator, and of the server."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path


def own_version() -> str:
    """The version of the installed package; of a checkout, which has none installed, the one it declares."""
    try:
        return version("edgeloom")
    except PackageNotFoundError:
        project = Path(__file__).resolve().parents[1] / "pyproject.toml"
        declared: str = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
        return declared


def main() -> int:
    """The arguments are those of the process; returns the exit status, 2 where a foreign package is in the
    way.
    """
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"edgeloom {own_version()}\n")
        return 0
    try:
        import edgeloom.own_packages  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f"edgeloom: {error}\n")
        return 2
    from engine.plugins.installed import VARIABLES

    if sys.argv[1:2] in (["up"], ["worker"]):  # as in webapp/settings.py, before anything is imported
        for name in VARIABLES:
            os.environ.setdefault(name, "")
    from emulator.cli.early import begin_early

    begin_early(sys.argv[1:])
    from emulator.cli.main import COMMANDS, ENVIRONMENT
    from engine.cli import main as run
    from engine.cli.command import Command
    from webapp.manual.command import MANUAL
    from webapp.operations.commands import COMMANDS as OF_THE_SERVER
    from webapp.ops import services, up

    def add_queue(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--queue", choices=services.QUEUES, required=True)

    own = (
        Command(
            "up",
            "start the server and everything it needs",
            up.add_arguments,
            lambda a: up.up(a.port, with_model=not a.without_model),
        ),
        Command(
            "worker", "become a worker of another machine's server", add_queue, lambda a: up.worker(a.queue)
        ),
        *OF_THE_SERVER,
    )
    served = [command._replace(run=_with_server(command.run)) for command in own]
    return run(sys.argv[1:], (*COMMANDS, MANUAL, *served), ENVIRONMENT, program="edgeloom")


def _with_server(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The same where the server is installed; raises `HostError` elsewhere."""

    def checked(args: argparse.Namespace) -> int:
        from engine.domain.command_name import to_install
        from engine.domain.errors import HostError

        if find_spec("django") is None:
            raise HostError(f"this needs the server, which is not installed: {to_install('server')}.")
        return run(args)

    return checked
