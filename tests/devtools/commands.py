"""The commands of a checkout for who changes EdgeLoom."""

from __future__ import annotations

from engine.cli.command import Command

COMMANDS: tuple[Command, ...] = (
    Command.of(
        "docs", "write the generated tables and pictures of the documents", "tests.devtools.docs_command"
    ),
)
