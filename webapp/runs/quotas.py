"""What one person may have waiting and stored. Administrators have no quota: they answer for the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Sum
from django.db.models.functions import Length

from engine.domain.units import human
from engine.domain.values import Value
from webapp.accounts.roles import role
from webapp.errors import Conflict
from webapp.events.models import EventSegment
from webapp.runs.models import Run


class Usage(Value):
    """`stored_bytes` are those of the recorded events, by far the largest part of a run."""

    runs_waiting: int
    stored_bytes: int


def usage(person: User) -> Usage:
    # A blob's length is in its row's header: the events themselves are not read.
    recorded = EventSegment.objects.filter(run__owner=person).aggregate(bytes=Sum(Length("batches")))
    waiting = Run.objects.filter(owner=person, status="queued").count()
    return Usage(runs_waiting=waiting, stored_bytes=recorded["bytes"] or 0)


@contextmanager
def one_at_a_time(person: User) -> Iterator[None]:
    """Inside a transaction: until its end, other requests of this person that come here wait. SQLite lets
    them wait from the start of their transactions.
    """
    User.objects.select_for_update().get(pk=person.pk)
    yield


def check_new_run(person: User) -> None:
    """Check that the person may have one more run; raises `Conflict`."""
    if role(person) == "admin":
        return
    has = usage(person)
    if has.runs_waiting >= settings.MAX_RUNS_WAITING:
        raise Conflict(
            f"{person.username} has {has.runs_waiting} runs waiting, and the limit is "
            f"{settings.MAX_RUNS_WAITING}: wait until some have started, or cancel some."
        )
    if has.stored_bytes >= settings.MAX_STORED_BYTES:
        raise Conflict(
            f"{person.username} has {human(has.stored_bytes, 'B')} of recorded events, and the limit is "
            f"{human(settings.MAX_STORED_BYTES, 'B')}: delete some runs."
        )
