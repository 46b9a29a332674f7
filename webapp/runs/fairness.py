"""The order of queued runs: people take turns, so that a hundred runs of one do not delay others."""

from __future__ import annotations

from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Window
from django.db.models.functions import Coalesce, RowNumber

from webapp.runs.models import ACTIVE, Run


def in_turn(queued: QuerySet[Run]) -> QuerySet[Run]:
    """First everybody's first, then everybody's second, …; what a person has running counts as their first.

    Within a turn, and for one person, the run that was asked for first goes first.
    """
    running = Run.objects.filter(status__in=ACTIVE, owner=OuterRef("owner")).order_by()
    of_owner = running.values("owner").annotate(number=Count("pk")).values("number")
    numbered = queued.annotate(
        turn=Window(RowNumber(), partition_by=[F("owner")], order_by="pk") + Coalesce(Subquery(of_owner), 0)
    )
    return numbered.order_by("turn", "pk")
