"""/metrics in Prometheus' text format, worked out of the database and Redis when somebody asks.

This machine may read it, others with LOOM_METRICS_TOKEN as a Bearer token.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterator

from django.conf import settings
from django.db.models import Avg, Count, F, Max, Min, Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from webapp.base.redis import REDIS_ERRORS
from webapp.jobs.announcement import Announcement, announced
from webapp.jobs.models import ACTIVE, OVER
from webapp.jobs.workers import QUEUES
from webapp.runs.models import Run

PROXY_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Via")
"""A request with one of them comes from a proxy."""
RECENT = 100
"""Waits in the queue are those of the last runs that started."""
VERDICTS = {
    "valid": Q(valid=True, correct=True),
    "invalid": Q(valid=False, correct=True),
    "wrong": Q(correct=False),
}


def metrics(request: HttpRequest) -> HttpResponse:
    if not may_read(request):
        detail = "/metrics is for this machine, and for those who send LOOM_METRICS_TOKEN as a Bearer token."
        return JsonResponse({"detail": detail, "fields": []}, status=403)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Service())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def may_read(request: HttpRequest) -> bool:
    """A request that a proxy has passed on is not from this machine, whatever its address."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    token = settings.METRICS_TOKEN
    if token and secrets.compare_digest(given.encode(), token.encode()):
        return True
    passed_on = any(name in request.headers for name in PROXY_HEADERS)
    address = request.META.get("REMOTE_ADDR", "")  # none over a Unix socket, which a proxy uses
    return not passed_on and bool(address) and ipaddress.ip_address(address).is_loopback


class Service(Collector):
    def collect(self) -> Iterator[Metric]:
        yield from runs()
        try:
            workers = announced()
        except REDIS_ERRORS:
            workers = []
            yield gauge("edgeloom_redis_up", "Whether Redis answers.", 0)
        else:
            yield gauge("edgeloom_redis_up", "Whether Redis answers.", 1)
        yield from fleet(workers)


def gauge(name: str, text: str, value: float) -> Gauge:
    return Gauge(name, text, value=value)


def runs() -> Iterator[Metric]:
    counts = dict(Run.objects.values_list("status").annotate(Count("pk")).order_by())
    states = Gauge("edgeloom_runs", "Stored runs by state.", labels=["state"])
    for state in ("queued", *ACTIVE, *OVER):
        states.add_metric([state], counts.get(state, 0))
    yield states
    verdicts = Gauge("edgeloom_run_verdicts", "Finished runs by verdict.", labels=["verdict"])
    finished = Run.objects.filter(status="finished")
    for verdict, condition in VERDICTS.items():
        verdicts.add_metric([verdict], finished.filter(condition).count())
    yield verdicts
    oldest = Run.objects.filter(status="queued").aggregate(first=Min("created_at"))["first"]
    waits_s = (timezone.now() - oldest).total_seconds() if oldest else 0.0
    yield gauge("edgeloom_queue_oldest_seconds", "How long the oldest queued run has waited.", waits_s)
    last = Run.objects.filter(started_at__isnull=False).order_by("-pk").values("pk")[:RECENT]
    wait = F("started_at") - F("created_at")
    recent = Run.objects.filter(pk__in=list(last.values_list("pk", flat=True)))
    found = recent.aggregate(mean=Avg(wait), longest=Max(wait))
    text = f"Wait in the queue of the last {RECENT} runs that started"
    for key, name in (("mean", "mean"), ("longest", "max")):
        seconds = found[key].total_seconds() if found[key] is not None else 0.0
        yield gauge(f"edgeloom_queue_wait_{name}_seconds", f"{text}, {key}.", seconds)


def fleet(workers: list[Announcement]) -> Iterator[Metric]:
    count = Gauge("edgeloom_workers", "Workers that announce themselves.", labels=["queue", "state"])
    lag = Gauge("edgeloom_event_lag_seconds", "Age of the oldest unsent event.", labels=["worker"])
    load = Gauge("edgeloom_worker_load", "Load of the last minute per core.", labels=["worker"])
    for queue in QUEUES:
        mine = [one for one in workers if one.queue == queue]
        count.add_metric([queue, "working"], sum(not one.refused for one in mine))
        count.add_metric([queue, "refused"], sum(bool(one.refused) for one in mine))
    for one in workers:
        load.add_metric([one.worker], one.load_1min / one.cores)
        if one.queue == "emulate":
            lag.add_metric([one.worker], one.event_lag_s)
    yield from (count, lag, load)
