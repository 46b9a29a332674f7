"""The directories in which the emulator keeps its files on this host."""

from __future__ import annotations

import os
from pathlib import Path


def state_directory() -> Path:
    """Tickets and records of running sessions: deleted by a reboot, shared by all users of the host."""
    return Path(os.environ.get("EDGELOOM_STATE_DIR", "/run/edgeloom"))


def cache_directory() -> Path:
    """For files that can be made again: the host's calibration."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "edgeloom"
