"""The commands of a checkout that measure and try EdgeLoom itself: bench, chaos, fuzz, soak."""

from __future__ import annotations

from bench.chaos.command import CHAOS
from bench.command import BENCH
from bench.fuzz.command import FUZZ
from bench.soak.command import SOAK
from engine.cli.command import Command

COMMANDS: tuple[Command, ...] = (BENCH, CHAOS, FUZZ, SOAK)
