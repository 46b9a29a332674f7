"""The commands of a checkout that measure and try EdgeLoom itself: bench, chaos, fuzz."""

from __future__ import annotations

from bench.chaos.command import CHAOS
from bench.command import BENCH
from bench.fuzz.command import FUZZ
from engine.cli.command import Command

COMMANDS: tuple[Command, ...] = (BENCH, CHAOS, FUZZ)
