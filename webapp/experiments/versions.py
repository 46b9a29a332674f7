"""The versions that results depend on: of the code by world, and the calibration of the server's machine."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from django.conf import settings

from engine.domain.calibration import calibration_digest, read_calibration
from engine.domain.errors import SpecError
from engine.domain.world import World
from engine.experiments.execution import version
from engine.experiments.results.versions import Versions

EMULATED = ("engine", "emulator")
"""Folders of the checkout on which an emulation depends."""


@lru_cache(maxsize=4)
def version_of(world: str) -> str:
    """The version of this process's code for results of `world`; it reads the files once."""
    if world not in ("emulated", "nodes"):
        return version.code_version(on_shapes=world == "predicted")
    return version.version_of(settings.BASE_DIR / folder for folder in EMULATED)


def reason_stale(world: str, code_version: str, calibration: str) -> str:
    """Why a result made by these is stale, as words to follow "made by"; "" if it is not."""
    now = Versions(code={cast(World, world): version_of(world)}, calibration=present_calibration())
    return now.reason_stale(world, code_version, calibration)


def present_calibration() -> str:
    """The calibration of the server's machine, "" if there is none."""
    try:
        return calibration_digest(read_calibration(settings.CALIBRATION_FILE).profile)
    except SpecError:
        return ""  # absent, or of another version of the program: workers calibrate anew
