"""The states of a job: each event happens in some of them, and nowhere else."""

from __future__ import annotations

import pytest

from webapp.jobs.models import ACTIVE, EVENTS, OVER, move
from webapp.runs.models import Run

AFTER = """
            waiting   queued     active     over
take        planning  planning   -          -
queue       -         -          queued     -
give back   -         -          waiting    -
planning    -         -          planning   -
building    -         -          building   -
calibrating -         -          calibrating -
loading     -         -          loading    -
running     -         -          running    -
verifying   -         -          verifying  -
finished    -         finished   finished   -
failed      -         failed     failed     -
cancelled   -         cancelled  cancelled  -
"""
ROWS = {line[:12].strip(): line[12:].split() for line in AFTER.strip("\n").splitlines()[1:]}
STATES = {"waiting": 0, "queued": 1, **dict.fromkeys(ACTIVE, 2), **dict.fromkeys(OVER, 3)}


@pytest.mark.django_db
@pytest.mark.parametrize("event", EVENTS)
def test_an_event_changes_the_jobs_in_whose_state_it_may_happen_and_no_others(event: str) -> None:
    jobs = {state: Run.objects.create(status=state) for state in STATES}
    move(Run.objects.all(), event)
    for state, job in jobs.items():
        job.refresh_from_db()
        after = ROWS[event][STATES[state]]
        assert job.status == (state if after == "-" else after), f"{event} in {state}"
