"""A database whose clock the test sets."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import Value

from tests.support.owned_runs import Clock
from webapp.jobs import lease, suspicion
from webapp.runs.models import Run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A lease that is over by it is over: `test_suspicion.py` is about the grace."""
    clock = Clock()
    monkeypatch.setattr(lease, "now", clock.now)
    monkeypatch.setattr(
        lease, "end", lambda lease_s=Run.LEASE_S: Value(clock.time + timedelta(seconds=lease_s))
    )
    monkeypatch.setattr(suspicion, "GRACE_BEATS", 0)
    return clock
