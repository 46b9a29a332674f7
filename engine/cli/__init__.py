"""The command line: `main(argv, commands, environment)` composes the commands of several rooms."""

from engine.cli.main import main

__all__ = ["main"]
