"""Short leases and pauses, so that a trial takes seconds, and a clock of the database that can jump."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

from django.db import connections
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from webapp.events import publisher, tail
from webapp.jobs import announcement, lease, storage, workers
from webapp.jobs.models import Job

LEASE_S = 4.0
BEAT_S = 0.4
LOCK_S = 0.5
"""Seconds that SQLite waits for another writer before it says that the database is locked."""
CLOCK_FILE = "LOOM_TRIAL_CLOCK"


def shortened() -> list[AbstractContextManager[object]]:
    """What stands in the product's place; each refuses to begin where the product has no such name."""
    return [
        patch.object(Job, "LEASE_S", LEASE_S),
        patch.object(workers, "BEAT_S", BEAT_S),
        patch.object(announcement, "SILENT_AFTER_S", 2),
        patch.multiple(storage, AGAIN_S=0.2, KNOWN_FOR_S=2),
        patch.object(tail, "HEARTBEAT_S", 0.4),
        patch.object(publisher, "SEGMENT_EVENTS", 40),
        patch.object(lease, "now", now),
    ]


def shorten_times() -> None:
    """Make leases, beats and attempts in this process as many times faster as LEASE_S is shorter."""
    for one in shortened():
        one.__enter__()
    database = connections["default"].settings_dict
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"]["timeout"] = LOCK_S


def now() -> Combinable:
    """The database's clock, as far ahead as `jump_to` said."""
    return Now() + timedelta(seconds=ahead_s())


def ahead_s() -> float:
    return float(Path(os.environ[CLOCK_FILE]).read_text())


def jump_to(ahead_s: float) -> None:
    """Move the clock of all processes of the trial at once."""
    path = Path(os.environ[CLOCK_FILE])
    draft = path.with_suffix(".new")
    draft.write_text(str(ahead_s))
    draft.rename(path)
