"""Deletes what is kept only for so long: sessions that are over, old runs, their events, unused models.

`docs/guides/lab.md` says what is kept how long. `./loom tidy` does it, also while everything runs.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q
from django.utils import timezone

from engine.domain.errors import SpecError
from webapp.clusters import model_library
from webapp.clusters.models import StoredModel
from webapp.events.models import EventSegment
from webapp.jobs.models import OVER
from webapp.runs import services
from webapp.runs.models import Run

MOST_DAYS = 36_500


def tidy() -> dict[str, int]:
    """What was deleted → how many of it. A limit of 0 days keeps all. Raises `SpecError` for one that is no
    such number, and deletes nothing then.
    """
    runs, events, models = (_before(name) for name in ("RUNS", "EVENTS", "MODELS"))
    return {
        "sessions": Session.objects.filter(expire_date__lt=timezone.now()).delete()[0],
        "runs": _runs(runs) if runs else 0,
        "segments of events": _events(events) if events else 0,
        "models": _models(models) if models else 0,
    }


def _before(what: str) -> datetime | None:
    """The time since which all is kept by the setting for `what`; None: all is kept. Raises `SpecError`."""
    days: float = getattr(settings, f"KEEP_{what}_DAYS")
    if not 0 <= days <= MOST_DAYS:
        raise SpecError(
            f"LOOM_KEEP_{what}_DAYS is {days:g}, expected 0, which keeps all, or up to {MOST_DAYS:,} days: "
            "nothing was deleted."
        )
    return timezone.now() - timedelta(days=days) if days else None


def _runs(before: datetime) -> int:
    """Runs that ended before, with their events; results of experiments stay, as they have copies."""
    old = Run.objects.filter(status__in=OVER, archived=True, finished_at__lt=before)
    for run in old:
        services.delete(run)
    return len(old)


def _events(before: datetime) -> int:
    """Events of runs that ended before; the reports of these runs stay."""
    old = Run.objects.filter(status__in=OVER, archived=True, finished_at__lt=before)
    return EventSegment.objects.filter(run__in=old).delete()[0]


def _models(before: datetime) -> int:
    """Added models that no run and no experiment has named since, nor one that is not over."""
    used = set(
        Run.objects.filter(~Q(status__in=OVER) | Q(created_at__gte=before)).values_list("model", flat=True)
    )
    unused = StoredModel.objects.filter(since__lt=before).exclude(name__in=used)
    documents = "\n".join(json.dumps(one) for used_since in model_library.USES for one in used_since(before))
    names = [name for name in unused.values_list("name", flat=True) if json.dumps(name) not in documents]
    for name in names:
        model_library.remove(name)
    return len(names)
