"""The commands of the engine, which need no root."""

from __future__ import annotations

from engine.cli.command import Command

COMMANDS: tuple[Command, ...] = (
    Command.of(
        "list",
        "list clusters, devices, experiments, model families, metrics, models, showcases or strategies",
        "engine.cli.list_command",
    ),
    Command.of("predict", "predict a run in the simulated world", "engine.cli.predict_command"),
    Command.of(
        "advise", "rank all strategies on a cluster, and say what limits each", "engine.cli.advise_command"
    ),
    Command.of("compare", "compare the reports of earlier runs", "engine.cli.compare_command"),
    Command.of("experiment", "many runs that answer one question", "engine.cli.experiment_command"),
    Command.of(
        "study", "experiments as one archive that others open, check and repeat", "engine.cli.study_command"
    ),
    Command.of(
        "reproduce", "compare the papers' tables and figures with ours", "engine.cli.reproduce_command"
    ),
    Command.of("new", "write a folder with a method of your own, to begin with", "engine.cli.new_command"),
)
