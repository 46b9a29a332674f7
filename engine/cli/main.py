"""Parse the command line, run the command, and turn an expected error into one sentence and an exit status.

0 finished (a real run: also correct and valid) · 2 bad input · 3 a run with another result · 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from engine.cli.command import Command, Environment
from engine.domain.errors import EdgeLoomError
from engine.domain.extras import naming_extras


class Parser(argparse.ArgumentParser):
    """argparse with one sentence instead of a usage block when an argument is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message.rstrip('.')}: see {self.prog} --help.\n")


def main(
    argv: Sequence[str], commands: Sequence[Command], environment: Environment, program: str = "loom"
) -> int:
    """Run the command that `argv` (without the program's name) asks for; returns the exit status."""
    parser = build_parser(commands, program, *argv[:1])
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # --help, or an argument that argparse refuses
        return stop.code if isinstance(stop.code, int) else 2
    args.environment = environment
    command: Command = args.command
    try:
        with naming_extras():
            status = command.run(args)
        sys.stdout.flush()
        return status
    except EdgeLoomError as error:
        sys.stderr.write(f"{program} {command.name}: {' '.join(str(error).split())}\n")
        return error.exit_status
    except KeyboardInterrupt:
        sys.stderr.write(f"{program} {command.name}: stopped.\n")
        return 130
    except BrokenPipeError:  # `loom list … | head` closed our output: end without a traceback
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def build_parser(
    commands: Sequence[Command], program: str = "loom", asked: str | None = None
) -> argparse.ArgumentParser:
    """The parser of a program with these commands; if one is `asked` for, with the arguments of that alone.
    Raises `ValueError` if two have one name.
    """
    names = [command.name for command in commands]
    if len(set(names)) < len(names):
        raise ValueError(f"two commands have the same name: {', '.join(names)}")
    parser = Parser(prog=program, description="Distributed transformer inference on edge clusters.")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for command in commands:
        child = subparsers.add_parser(command.name, help=command.help, description=command.help)
        if asked in (command.name, None):
            command.add_arguments(child)
        child.set_defaults(command=command)
    return parser
