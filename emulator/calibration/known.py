"""Keeps this host's calibration in the cache; measures it if it is missing or is of another processor."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from emulator.host.places import cache_directory
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import HostError, SpecError
from engine.domain.host_times import HostProfile
from engine.domain.spec import RunSpec

ROOT = Path(__file__).resolve().parents[2]


class Calibration(NamedTuple):
    """This host as a table of times, and one core of it as a device."""

    profile: HostProfile
    device: DeviceSpec

    def to_json(self) -> str:
        values = {"profile": self.profile, "device": self.device}
        return json.dumps({name: value.model_dump(mode="json") for name, value in values.items()})

    @classmethod
    def from_json(cls, text: str, where: str) -> Calibration:
        """Inverse of `to_json`; raises `SpecError`, or `ValueError` if it is not even JSON."""
        data = json.loads(text)
        return cls(HostProfile.parse(data.get("profile"), where), DeviceSpec.parse(data.get("device"), where))


def calibration_file() -> Path:
    return cache_directory() / "calibration.json"


def known_calibration() -> Calibration | None:
    """The calibration in the cache if it is of this processor, or None."""
    path = calibration_file()
    try:
        known = Calibration.from_json(path.read_text(), str(path))
    except (OSError, ValueError, SpecError):  # absent, or written by another version
        return None
    return known if known.profile.host == host_name() else None


def measured_calibration() -> Calibration:
    """Measure now and write the result to the cache. Raises `HostError` if that fails."""
    result, _ = measured_beside((), ())
    keep(result)
    return result


def measured_beside(models: Sequence[str], rows: Sequence[int]) -> tuple[Calibration, list[list[Any]]]:
    """Measure now in a child process, and time operations of `models` on `rows` rows in turn.

    Returns the fields of their `TimedPrediction`s (`residuals.py`). Raises `HostError` if that fails.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "emulator.calibration.calibrate", ",".join(models), ",".join(map(str, rows))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise HostError(f"Calibrating this machine failed: {reason}.")
    answer = json.loads(done.stdout)
    return Calibration.from_json(answer["calibration"], "calibration"), answer["comparisons"]


def keep(calibration: Calibration) -> None:
    """Write the calibration to the cache."""
    path = calibration_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(calibration.to_json())
    draft.replace(path)


def host_name() -> str:
    """The processor's model name, for which a profile holds."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def needs_profile(spec: RunSpec) -> bool:
    """Whether the run depends on this host's speed and has no profile yet."""
    if spec.profile is not None:
        return False
    models = {spec.compute_model or device.compute_model for device in spec.cluster.devices}
    return spec.dilation == "auto" or "measured" in models
