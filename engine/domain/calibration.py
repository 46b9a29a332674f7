"""Calibration: a machine as `loom calibrate` measured it, which other machines can import."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from engine.domain.host_times import HostProfile
from engine.domain.spec import RunSpec
from engine.domain.values import Value

LARGEST_FILE_BYTES = 1 << 20
"""A larger file is no calibration, which has less than a tenth of that."""

DIGITS = 12


class Calibration(Value):
    """A machine as a table of times, and one core of it as a device with the roofline that fits the table."""

    profile: HostProfile
    device: DeviceSpec

    def to_json(self) -> str:
        return self.model_dump_json(exclude_defaults=True)

    def as_in_runs(self) -> Calibration:
        """The same with a device whose operations take as many times longer as they did in runs here: its row
        is of operations alone.
        """
        times, device = self.profile.runtime.in_runs, self.device
        rates = tuple(
            rate.model_copy(update={"flop_per_s": rate.flop_per_s / times}) for rate in device.format_rates
        )
        slower = {
            "flop_per_s": device.flop_per_s / times,
            "memory_byte_per_s": device.memory_byte_per_s / times,
            "op_overhead_s": device.op_overhead_s * times,
            "measured_scale": device.measured_scale * times,
            "format_rates": rates,
        }
        return self.model_copy(update={"device": device.model_copy(update=slower)})


@lru_cache(maxsize=2)
def calibration_digest(profile: HostProfile | None) -> str:
    """Identifies a host's times, in 12 hexadecimal digits; "" for none. Results that depend on them are stale
    under another digest.
    """
    if profile is None:
        return ""
    return hashlib.sha256(profile.model_dump_json().encode()).hexdigest()[:DIGITS]


def parse_calibration(text: str, where: str) -> Calibration:
    """Inverse of `Calibration.to_json`. Raises `SpecError`, naming `where`."""
    if len(text) > LARGEST_FILE_BYTES:
        raise SpecError(
            f"{where}: has {len(text):,} characters, and a calibration has at most {LARGEST_FILE_BYTES:,}: "
            f"give a file that {COMMAND} calibrate --output has written."
        )
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(
            f"{where}: is no JSON ({error}): give a file that {COMMAND} calibrate --output has written."
        ) from error
    calibration: Calibration = Calibration.parse(data, where)
    return calibration


def read_calibration(path: Path) -> Calibration:
    """The calibration in a file, which is read again when it has changed. Raises `SpecError`."""
    try:
        now = path.stat()
        return _read(path, (now.st_ino, now.st_size, now.st_mtime_ns))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}.") from error


@lru_cache(maxsize=2)
def _read(path: Path, _: tuple[int, int, int]) -> Calibration:
    with path.open(encoding="utf-8") as file:
        return parse_calibration(file.read(LARGEST_FILE_BYTES + 1), str(path))


def on_machine(spec: RunSpec, machine: Calibration) -> RunSpec:
    """The same run on a cluster of such machines: every device computes and sends as `machine` does.

    Devices keep their names, roles and memory, links stay as they are.
    """
    return spec.model_copy(
        update={
            "cluster": cluster_of(spec.cluster, machine),
            "profile": machine.profile,
            "compute_model": None,
        }
    )


def cluster_of(cluster: ClusterSpec, machine: Calibration) -> ClusterSpec:
    """`cluster` with the times of `machine` in place of those of its devices."""
    devices = tuple(
        machine.device.model_copy(
            update={
                "name": device.name,
                "title": device.title,
                "role": device.role,
                "memory_bytes": device.memory_bytes,
                "reserved_bytes": device.reserved_bytes,
                "on_chip_weight_bytes": device.on_chip_weight_bytes,
                "compute_model": "measured",
            }
        )
        for device in cluster.devices
    )
    return cluster.model_copy(update={"devices": devices})
