"""Emulates the points of experiments: what the engine needs and cannot do itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from emulator.session.client import emulate, expect_emulations
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.experiments.execution.point import Emulation
from engine.experiments.execution.version import code_version, version_of

EMULATOR = Path(__file__).parents[1]
ROOMS = ("host", "network", "calibration", "session")
"""The rooms of the emulator that make a run's numbers, besides those of the engine."""


def emulation() -> Emulation:
    """One run at a time on this machine, whoever asks for them."""
    return Emulation(run=_run, version=emulation_version())


@cache
def emulation_version() -> str:
    """The version of the code that emulated results depend on: the engine's and the emulator's."""
    return f"{code_version(on_shapes=False)}-{version_of(EMULATOR / room for room in ROOMS)}"


def _run(spec: RunSpec) -> RunReport:
    report = emulate(spec, lambda events: None)
    expect_emulations(many=True)
    return report
