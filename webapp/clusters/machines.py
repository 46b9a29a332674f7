"""Machines calibrated elsewhere: files of `./loom calibrate --output` in `MACHINES_DIR`, for the palette.

Operators upload them in the browser and remove them; who may write into the server's state directory may also
put them there.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from ninja import Router, Schema
from ninja.responses import Status
from pydantic import Field

import topologies
from engine.domain.calibration import Calibration, calibration_digest, read_calibration
from engine.domain.errors import SpecError
from engine.domain.values import Name
from webapp.accounts import audit
from webapp.accounts.access import UserRequest, operator
from webapp.base.errors import Conflict
from webapp.base.files import read_machine
from webapp.clusters.models import Node

logger = logging.getLogger(__name__)
router = Router(tags=["machines"])

MOST_MACHINES = 100


class MachineOut(Schema):
    """A machine in the palette, as its calibration describes it. Rates are those of one core."""

    name: str
    host: str
    source: str
    flop_per_s: float
    memory_byte_per_s: float
    digest: str = Field(description="Names the calibration's content: another calibration has another one.")


class MachineIn(Schema):
    name: Name
    calibration: dict[str, Any] = Field(description="What the command calibrate --output has written.")


def machines() -> list[topologies.DevicePreset]:
    """The device rows of the files, named as they are. A file of no use is logged with the reason."""
    found = []
    for path in _files():
        try:
            found.append(_preset(path.stem, read_calibration(path), str(path)))
        except SpecError as error:
            logger.warning("not in the palette: %s", error)
    return found


def _files() -> list[Path]:
    return sorted(settings.MACHINES_DIR.glob("*.json"))[:MOST_MACHINES]


def _preset(name: str, calibration: Calibration, where: str) -> topologies.DevicePreset:
    """The palette's row of a machine. Raises `SpecError` for a name that is taken or is none."""
    if name in {preset.name for preset in topologies.presets()}:
        raise SpecError(f"{where}: {name} is the name of a preset: choose another one.", [("name", "taken")])
    row = calibration.device.model_dump()
    preset: topologies.DevicePreset = topologies.DevicePreset.parse(row | {"name": name}, where)
    return preset


@router.get("", response=list[MachineOut])
def list_machines(request: HttpRequest) -> list[MachineOut]:
    """The imported machines whose files are right."""
    found = []
    for path in _files():
        try:
            calibration = read_calibration(path)
            _preset(path.stem, calibration, str(path))
        except SpecError:
            continue  # `machines` logs the reason
        found.append(_out(path.stem, calibration))
    return found


@router.post("", response={201: MachineOut}, auth=operator)
def import_machine(request: UserRequest, body: MachineIn) -> Status[MachineOut]:
    """Add a machine to the palette. 422 for a file that is no calibration, 409 for a name that is there."""
    calibration = read_machine(body.calibration, "calibration")
    _preset(body.name, calibration, "calibration")
    if Node.objects.filter(name=body.name).exists():
        raise Conflict(f"There is a board {body.name}: choose another name.")
    path = settings.MACHINES_DIR / f"{body.name}.json"
    settings.MACHINES_DIR.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise Conflict(f"There is a machine {body.name}: remove it first, or choose another name.")
    if len(_files()) >= MOST_MACHINES:
        raise Conflict(
            f"There are {MOST_MACHINES} machines, the most that the palette has: remove one first."
        )
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(calibration.to_json(), encoding="utf-8")
    try:
        os.link(draft, path)  # fails if somebody else has just added one of that name
    except FileExistsError as error:
        raise Conflict(f"There is a machine {body.name}: remove it first, or choose another name.") from error
    finally:
        draft.unlink()
    audit.note(request.auth, "added", f"machine {body.name}")
    return Status(201, _out(body.name, calibration))


@router.delete("/{name}", response={204: None}, auth=operator)
def remove_machine(request: UserRequest, name: str) -> Status[None]:
    """Take a machine out of the palette. Clusters that use it keep its row."""
    path = next((path for path in _files() if path.stem == name), None)
    if path is None:
        raise Http404(f"There is no machine {name}")
    path.unlink(missing_ok=True)
    audit.note(request.auth, "deleted", f"machine {name}")
    return Status(204, None)


def _out(name: str, calibration: Calibration) -> MachineOut:
    return MachineOut(
        name=name,
        host=calibration.profile.host,
        source=calibration.device.source,
        flop_per_s=calibration.device.flop_per_s,
        memory_byte_per_s=calibration.device.memory_byte_per_s,
        digest=calibration_digest(calibration.profile),
    )
