"""Carries out one point in one world and makes a result of whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from engine.domain.command_name import COMMAND
from engine.domain.errors import Cancelled, HostError
from engine.domain.host_times import HostProfile
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.world import World
from engine.experiments.execution.version import code_version
from engine.experiments.results.rows import Result, failure, result_of
from engine.experiments.results.validity import told
from engine.experiments.results.versions import calibration_of
from engine.runs.predict import predict

OneRun = Callable[[RunSpec], RunReport]


class Emulation(NamedTuple):
    """How to emulate a run, and the version of the code that does it. The engine cannot: whoever can gives
    it.
    """

    run: OneRun
    version: str


def carry_out(
    spec: RunSpec,
    digest: str,
    world: World,
    profile: HostProfile | None = None,
    emulation: Emulation | None = None,
) -> Result:
    """The result of `spec` in `world`. A run that cannot be planned or fails is a result, too.

    `profile` has this host's times, for a spec that depends on them and brings none.

    Raises `HostError` if this machine cannot carry out runs in that world, and `Cancelled`.
    """
    result = attempt(spec, digest, world, profile, emulation)
    return told(result, spec).model_copy(update={"code_version": version_of(world, emulation)})


def attempt(
    spec: RunSpec,
    digest: str,
    world: World,
    profile: HostProfile | None = None,
    emulation: Emulation | None = None,
) -> Result:
    """`carry_out` without the version of the code, which takes a second to find: a process of a pool leaves
    that to its parent.
    """
    run = _runner(world, emulation)
    start_s = time.monotonic()
    try:
        report = run(spec if profile is None else spec.model_copy(update={"profile": profile}))
    except (HostError, Cancelled):
        raise
    except Exception as error:
        return failure(error, digest, world, wall_s=time.monotonic() - start_s)
    calibration = calibration_of(spec, report.spec.profile)
    return result_of(report, digest, world, wall_s=time.monotonic() - start_s, calibration=calibration)


def version_of(world: World, emulation: Emulation | None = None) -> str:
    """The version of the code that a new result of `world` would have."""
    if world != "emulated":
        return code_version(on_shapes=world == "predicted")
    return emulation.version if emulation is not None else ""


def _runner(world: World, emulation: Emulation | None) -> OneRun:
    if world == "predicted":
        return predict
    if world == "calculated":
        from engine.runs.calculate import calculate  # it loads torch

        return calculate
    if emulation is None:
        raise HostError(
            f"This program cannot emulate: install the emulator, and use `{COMMAND} experiment run`."
        )
    return emulation.run
