"""run, calibrate and doctor as commands: arguments, output, exit status."""

import argparse
import subprocess
import sys

import pytest

from emulator.cli.commands import COMMANDS
from engine.cli.command import Environment
from engine.cli.main import main

ENVIRONMENT = Environment(load_cluster=lambda name: None, cluster_names=lambda: (), presets=lambda: ())


@pytest.mark.root
def test_the_doctor_says_that_this_machine_can_emulate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"], COMMANDS, ENVIRONMENT) == 0
    assert "This machine can emulate." in capsys.readouterr().out


def test_commands_have_distinct_names_and_help() -> None:
    parser = argparse.ArgumentParser()
    for command in COMMANDS:
        command.add_arguments(parser if command.name == "run" else argparse.ArgumentParser())
    assert [command.name for command in COMMANDS] == ["run", "doctor", "calibrate", "node"]
    assert all(command.help for command in COMMANDS)


def test_the_command_line_starts_without_torch_and_without_what_only_reports_need():
    """They take seconds to import, and a prediction of a small model a hundredth of one."""
    program = (
        "import sys, emulator.cli.main\n"
        "print(sorted({'torch', 'transformers', 'pandas', 'matplotlib', 'django'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_command_imports_nothing_of_the_others():
    program = (
        "import sys\n"
        "from emulator.cli.main import COMMANDS, ENVIRONMENT\n"
        "from bench.commands import COMMANDS as MEASURING\n"
        "from engine.cli.main import main\n"
        "main(['run', '--help'], (*COMMANDS, *MEASURING), ENVIRONMENT)\n"
        "others = ('engine.advice', 'engine.reproductions', 'emulator.calibration.shown', 'bench.fuzz')\n"
        "print('emulator.cli.run_command' in sys.modules)\n"
        "print([name for name in sys.modules if name.startswith(others)])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-2:] == ["True", "[]"]
