"""The paths that `./loom` uses, its error, and its output for people; needs nothing but Python."""

from __future__ import annotations

import sys
from pathlib import Path

from engine.domain.command_name import IS_CHECKOUT
from engine.domain.errors import HostError
from engine.domain.state_directory import default_state_directory

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python" if IS_CHECKOUT else Path(sys.executable)
FRONTEND = ROOT / "webapp" / "frontend"
SETUP_DIR = default_state_directory()
"""Stamps and logs of the set-up of this checkout; what is installed needs none."""
GUIDELLM_VENV = SETUP_DIR / "guidellm"
"""The environment of the load generator (requirements/guidellm.txt)."""

REDIS_DIR = SETUP_DIR / "redis"
"""The Redis of a machine without one (requirements/redis.txt)."""

PREPARED = "prepared"
"""The file in the state directory that says which code has prepared the database there."""


class OpsError(HostError):
    """A step of the set-up, a service or a program that this machine runs has failed."""


def echo(line: str) -> None:
    """Print progress to stderr, so that stdout stays the command's own."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def shown(path: Path) -> str:
    """A path as a person in the checkout would write it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
