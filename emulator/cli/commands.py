"""The commands of `./loom` that need this machine: run, doctor, calibrate, node."""

from __future__ import annotations

from engine.cli.command import Command

COMMANDS: tuple[Command, ...] = (
    Command.of("run", "run on emulated devices and links", "emulator.cli.run_command"),
    Command.of(
        "doctor", "check what this machine can do, and say how to mend the rest", "emulator.cli.doctor"
    ),
    Command.of(
        "calibrate", "measure this machine and write it as a device", "emulator.cli.calibrate_command"
    ),
    Command.of("node", "make this machine a node of a server", "emulator.cli.node_command"),
)
