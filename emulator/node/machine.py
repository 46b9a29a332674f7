"""What a node says of its machine: versions, cores, memory, and how warm and fast it is now."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from emulator.calibration.known import host_name
from engine.domain.node_messages import PROTOCOL, NodeBeat, NodeHello
from engine.runs.fits import available_bytes

SYSTEM = Path("/sys")
MOST_CELSIUS = 300.0
"""What no sensor of a machine that runs can mean."""


def hello() -> NodeHello:
    return NodeHello(
        protocol=PROTOCOL,
        edgeloom=_version("edgeloom"),
        torch=_version("torch"),
        python=platform.python_version(),
        host=platform.node()[:200],
        processor=host_name()[:200],
        architecture=platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        clock_s=time.time(),
    )


def beat(doing: str) -> NodeBeat:
    return NodeBeat(
        load_1min=round(os.getloadavg()[0], 2),
        available_bytes=float(available_bytes()),
        temperature_celsius=temperature_celsius(),
        frequency_hz=frequency_hz(),
        doing=doing[:200],
    )


def temperature_celsius(system: Path = SYSTEM) -> float | None:
    """The temperature of the hottest sensor; None where Linux shows none."""
    found = (value / 1e3 for value in _numbers(system, "class/thermal/thermal_zone*/temp"))
    return max((value for value in found if 0 < value < MOST_CELSIUS), default=None)


def frequency_hz(system: Path = SYSTEM) -> float | None:
    """The clock rate of the core that is fastest now; None where Linux shows none."""
    found = _numbers(system, "devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")
    return max((value * 1e3 for value in found if value > 0), default=None)


def _numbers(system: Path, pattern: str) -> Iterator[float]:
    """What the files that match have. A sensor may be off, and then cannot be read."""
    for path in system.glob(pattern):
        try:
            yield float(path.read_text())
        except (OSError, ValueError):
            continue


def _version(package: str) -> str:
    """Its version, without importing it: torch takes a while."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "checkout"
