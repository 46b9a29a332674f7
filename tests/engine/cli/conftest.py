"""The command line, called in this process."""

from __future__ import annotations

from typing import Any

import pytest

from engine.cli import main
from engine.cli.commands import COMMANDS
from tests.support.command_line import ENVIRONMENT, Result


@pytest.fixture
def loom(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*argv: object) -> Result:
        status = main([str(part) for part in argv], COMMANDS, ENVIRONMENT)
        return Result(status, *capsys.readouterr())

    return call
