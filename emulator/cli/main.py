"""Put the commands of the engine and the emulator together; `edgeloom` and `./loom` both run them.

Listing, showing, predicting and comparing need neither Mininet nor torch. The emulator's commands
(run, doctor, calibrate) need the extra `emulator`.
"""

from __future__ import annotations

import topologies
from emulator.calibration.known import with_profile
from emulator.cli.commands import COMMANDS as EMULATOR_COMMANDS
from emulator.session.points import emulation
from engine.cli.command import Command, Environment
from engine.cli.commands import COMMANDS as ENGINE_COMMANDS
from topologies.left_out import left_out_of_packs
from topologies.showcases import showcase, showcases
from topologies.traces import scenario_of

COMMANDS: tuple[Command, ...] = (
    *ENGINE_COMMANDS,
    Command.of(
        "show", "print a cluster or a drawing, or write it in another format", "topologies.show_command"
    ),
    Command.of(
        "board",
        "put a preset beside the row of your own board and published rates",
        "topologies.board_command",
    ),
    Command.of(
        "device", "make a device's row of what a benchmark measured on it", "topologies.device_command"
    ),
    *EMULATOR_COMMANDS,
)

ENVIRONMENT = Environment(
    load_cluster=topologies.load,
    cluster_text=topologies.dump_toml,
    cluster_names=topologies.names,
    presets=topologies.presets,
    with_profile=with_profile,
    showcases=showcases,
    showcase=showcase,
    scenario=scenario_of,
    emulation=emulation,
    left_out=left_out_of_packs,
)
