"""The commands of the engine, which need no root."""

from __future__ import annotations

from engine.cli.advise_command import ADVISE
from engine.cli.command import Command
from engine.cli.compare_command import COMPARE
from engine.cli.experiment_command import EXPERIMENT
from engine.cli.list_command import LIST
from engine.cli.new_command import NEW
from engine.cli.predict_command import PREDICT
from engine.cli.reproduce_command import REPRODUCE
from engine.cli.study_command import STUDY

COMMANDS: tuple[Command, ...] = (LIST, PREDICT, ADVISE, COMPARE, EXPERIMENT, STUDY, REPRODUCE, NEW)
