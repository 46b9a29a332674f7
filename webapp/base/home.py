"""Where a server keeps what it has: in its checkout, or, installed, in the person's directory."""

from __future__ import annotations

import os
from pathlib import Path

from engine.domain.command_name import IS_CHECKOUT

ROOT = Path(__file__).resolve().parents[2]


def home() -> Path:
    """The directory of database, keys and logs, unless `LOOM_STATE_DIR` names one."""
    if IS_CHECKOUT:
        return ROOT / ".loom"
    given = os.environ.get("XDG_STATE_HOME")
    return (Path(given) if given else Path.home() / ".local" / "state") / "edgeloom"
