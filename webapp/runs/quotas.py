"""What one person may have waiting, emulated and stored. Administrators have no quota: they answer for the
machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Sum
from django.db.models.functions import Length

from engine.domain.units import human
from engine.domain.values import Value
from webapp.accounts.roles import role
from webapp.base.errors import Conflict
from webapp.base.redis import REDIS_ERRORS, client
from webapp.events.models import EventSegment
from webapp.runs.models import Run

HOUR_S, HOURS = 3600, 24
"""An hour, and the hours by which machine time is counted in Redis, where deleting a run does not undo it."""


class Usage(Value):
    """What a person uses. `stored_bytes` are those of the recorded events, by far the largest
    part of a run.
    """

    runs_waiting: int
    stored_bytes: int


def usage(person: User) -> Usage:
    # A blob's length is in its row's header: the events themselves are not read.
    recorded = EventSegment.objects.filter(run__owner=person).aggregate(bytes=Sum(Length("batches")))
    waiting = Run.objects.filter(owner=person, status="queued").count()
    return Usage(runs_waiting=waiting, stored_bytes=recorded["bytes"] or 0)


@contextmanager
def one_at_a_time(person: User) -> Iterator[None]:
    """Let other requests of this person that come here wait until the end of the transaction. SQLite lets
    them wait from the start of their transactions.
    """
    User.objects.select_for_update().get(pk=person.pk)
    yield


def count_machine_time(person_id: int | None, wall_s: float) -> None:
    """An emulation of this person has ended. Raises Redis' errors."""
    key, now = _key_of(person_id), _hour()
    hours: Any = client().hkeys(key)
    with client().pipeline() as pipe:
        for hour in (hour for hour in hours if int(hour) <= now - HOURS):
            pipe.hdel(key, hour)
        pipe.hincrbyfloat(key, str(now), wall_s)
        pipe.expire(key, HOUR_S * HOURS)
        pipe.execute()


def machine_s(person_id: int | None) -> float:
    """Wall seconds of emulations that ended in the last day. Raises Redis' errors."""
    by_hour: Any = client().hgetall(_key_of(person_id))
    return sum(float(wall_s) for hour, wall_s in by_hour.items() if int(hour) > _hour() - HOURS)


def _key_of(person_id: int | None) -> str:
    return f"machine:{person_id}"


def _hour() -> int:
    return int(time.time() // HOUR_S)


def check_machine_time(person: User | None) -> None:
    """Check what this person's emulations took of the last day; raises `Conflict`."""
    if person is None or role(person) == "admin" or not settings.MACHINE_HOURS:
        return
    try:
        hours = machine_s(person.pk) / HOUR_S
    except REDIS_ERRORS:  # nothing is emulated meanwhile
        return
    if hours >= settings.MACHINE_HOURS:
        raise Conflict(
            f"Emulations of {person.username} took {hours:.1f} h of the last {HOURS}, and the limit is "
            f"{settings.MACHINE_HOURS:g} h: wait until those of a day ago do not count any more, or predict."
        )


def check_new_run(person: User) -> None:
    """Check that the person may have one more run; raises `Conflict`."""
    if role(person) == "admin":
        return
    check_machine_time(person)
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
