"""The kinds of jobs that there are, and what becomes of a job whose owner is gone. The apps that have jobs
register them; nothing here knows what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from webapp.jobs import workers
from webapp.jobs.models import Job
from webapp.jobs.suspicion import Suspicion


class Kind(NamedTuple):
    """A kind of job. `settle` brings an abandoned job to its end, or back to those that wait; False if its
    owner is back or somebody else does it. `suspicion` is what this process has seen of late ones.
    """

    settle: Callable[[Any], bool]
    suspicion: Suspicion


KINDS: list[Kind] = []


def register(model: type[Job], settle: Callable[[Any], bool]) -> None:
    """Make a kind of job known, with the function that settles one whose owner is gone."""
    KINDS.append(Kind(settle, Suspicion(model)))


def settle_abandoned() -> list[str]:
    """Settle the jobs of every kind whose owner is gone: what every worker does each few seconds, and the
    server when it is asked for its health. Returns which. Raises the database's errors and Redis'.
    """
    here = workers.home()
    return [job.title for kind in KINDS for job in kind.suspicion.abandoned(here) if kind.settle(job)]
