"""Machines calibrated elsewhere: files of `./loom calibrate --output` in `MACHINES_DIR`, for the palette.

Who may write into the state directory of the server may add one; the browser cannot.
"""

from __future__ import annotations

import logging

from django.conf import settings

import topologies
from engine.domain.calibration import read_calibration
from engine.domain.errors import SpecError

logger = logging.getLogger(__name__)

MOST_MACHINES = 100


def machines() -> list[topologies.DevicePreset]:
    """The device rows of the files, named as they are. A file of no use is logged with the reason."""
    taken = {preset.name for preset in topologies.presets()}
    found = []
    for path in sorted(settings.MACHINES_DIR.glob("*.json"))[:MOST_MACHINES]:
        try:
            if path.stem in taken:
                raise SpecError(f"{path}: {path.stem} is the name of a preset: rename the file.")
            row = read_calibration(path).device.model_dump()
            found.append(topologies.DevicePreset.parse(row | {"name": path.stem}, str(path)))
        except SpecError as error:
            logger.warning("not in the palette: %s", error)
    return found
