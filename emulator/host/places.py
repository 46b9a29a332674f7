"""The directories in which the emulator keeps its files on this host, and the name of this host's queue."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from engine.domain.cache_directory import cache_directory

STATE_VARIABLE = "EDGELOOM_STATE_DIR"
PROGRAMS = "/usr/local/sbin:/usr/sbin:/sbin"
"""The directory of tc and ifconfig on Debian, which is not on the search path of an ordinary user."""


def state_directory() -> Path:
    """Records of this user's running sessions since the machine's last start."""
    own = os.environ.get(STATE_VARIABLE)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Path(own) if own else cache_directory() / "sessions" / boot


def queue_name() -> str:
    """The name of the queue in which emulations wait for one another: all of this machine, whoever starts
    them, but those with a state directory of their own.
    """
    own = os.environ.get(STATE_VARIABLE)
    return "edgeloom" if not own else f"edgeloom-{hashlib.sha256(own.encode()).hexdigest()[:16]}"


def search_path() -> str:
    """The directories in which the emulator looks for programs."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), PROGRAMS])
