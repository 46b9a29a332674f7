"""The commands of a checkout that measure and try EdgeLoom itself: bench, chaos, fuzz, soak."""

from __future__ import annotations

from engine.cli.command import Command

COMMANDS: tuple[Command, ...] = (
    Command.of("bench", "measure how accurate and how fast the emulation is", "bench.command"),
    Command.of("chaos", "many runs, each with a device failure at a random moment", "bench.chaos.command"),
    Command.of("fuzz", "compare random runs of all strategies with transformers", "bench.fuzz.command"),
    Command.of("soak", "everything at random on one service, for an hour", "bench.soak.command"),
)
