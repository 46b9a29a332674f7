"""Versions that results depend on: of the code and, where a host's times count, of its calibration."""

from __future__ import annotations

from pydantic import Field

from engine.domain.calibration import calibration_digest
from engine.domain.host_times import HostProfile
from engine.domain.spec import RunSpec
from engine.domain.values import Value


class Versions(Value):
    """What new results would be made by: the version of the code by world, and this host's calibration ("" if
    there is none). A world that is missing is not judged.
    """

    code: dict[str, str] = Field(default_factory=dict)
    calibration: str = ""

    def reason_stale(self, world: str, code_version: str, calibration: str) -> str:
        """Why a result of these versions is stale, as words to follow "made by"; "" if it is not.

        A result without a calibration does not depend on one. Where this host has none, no calibration is
        another one.
        """
        now = self.code.get(world, "")
        reasons = []
        if now and code_version and code_version != now:
            reasons.append("another version of the code")
        if self.calibration and calibration and calibration != self.calibration:
            reasons.append("another calibration of the host")
        return " and ".join(reasons)


def uses_host_times(spec: RunSpec) -> bool:
    """Whether operations take the times that this host was calibrated with: a device computes as `measured`,
    and the run brings no times of its own.
    """
    models = {spec.compute_model or device.compute_model for device in spec.cluster.devices}
    return spec.profile is None and "measured" in models


def calibration_of(asked: RunSpec, used: HostProfile | None) -> str:
    """The calibration that the result of `asked` depends on, if it was carried out with the times `used`."""
    return calibration_digest(used) if uses_host_times(asked) else ""
