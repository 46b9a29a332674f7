"""The directory of what cannot be made again: a server's database and keys, logs, fetched models."""

from __future__ import annotations

import os
from pathlib import Path

from engine.domain.command_name import IS_CHECKOUT

ROOT = Path(__file__).resolve().parents[2]


def default_state_directory() -> Path:
    """In a checkout `.loom`; installed, a directory of the person."""
    if IS_CHECKOUT:
        return ROOT / ".loom"
    given = os.environ.get("XDG_STATE_HOME")
    return (Path(given) if given else Path.home() / ".local" / "state") / "edgeloom"


def state_directory() -> Path:
    """Where one running EdgeLoom keeps its state; `LOOM_STATE_DIR` moves it."""
    return Path(os.environ.get("LOOM_STATE_DIR") or default_state_directory()).resolve()
