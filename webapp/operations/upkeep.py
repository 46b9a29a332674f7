"""Deletes what is kept only for so long: sessions that are over, old runs, their events, unused models.

`docs/guides/lab.md` says what is kept how long. `./loom tidy` does it, also while everything runs.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from webapp.clusters import model_library
from webapp.clusters.models import StoredModel
from webapp.events.models import EventSegment
from webapp.runs import services
from webapp.runs.models import OVER, Run


def tidy() -> dict[str, int]:
    """What was deleted → how many of it. A limit of 0 days keeps all."""
    return {
        "sessions": Session.objects.filter(expire_date__lt=timezone.now()).delete()[0],
        "runs": _runs(settings.KEEP_RUNS_DAYS),
        "segments of events": _events(settings.KEEP_EVENTS_DAYS),
        "models": _models(settings.KEEP_MODELS_DAYS),
    }


def _before(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


def _runs(days: float) -> int:
    """Runs that ended before, with their events; results of experiments stay, as they have copies."""
    old = Run.objects.filter(status__in=OVER, archived=True, finished_at__lt=_before(days)) if days else ()
    for run in old:
        services.delete(run)
    return len(old)


def _events(days: float) -> int:
    """Events of runs that ended before; the reports of these runs stay."""
    if not days:
        return 0
    old = Run.objects.filter(status__in=OVER, archived=True, finished_at__lt=_before(days))
    return EventSegment.objects.filter(run__in=old).delete()[0]


def _models(days: float) -> int:
    """Added models that no run has named since."""
    if not days:
        return 0
    before = _before(days)
    used = set(Run.objects.filter(created_at__gte=before).values_list("model", flat=True))
    unused = StoredModel.objects.filter(since__lt=before).exclude(name__in=used)
    names = list(unused.values_list("name", flat=True))
    for name in names:
        model_library.remove(name)
    return len(names)
