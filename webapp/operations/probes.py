"""/healthz: what answers and what does not, with status codes for probes. It needs no log-in.

/healthz/web       200 as long as this process answers: restart it if it does not
/healthz           200 if requests can be served: web process and database answer, Redis writes; else 503
/healthz/database  200 or 503, and the same for /healthz/redis, /healthz/workers (every queue has one),
                   /healthz/plan, /healthz/points, /healthz/emulate
"""

from __future__ import annotations

from django.db import Error, connection
from django.http import Http404, HttpRequest, JsonResponse

from webapp.base.redis import REDIS_ERRORS, check_writable, why_away
from webapp.jobs import storage
from webapp.jobs.announcement import announced
from webapp.jobs.workers import QUEUES

NEEDED = ("web", "database", "redis")


def web(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"web": "ok"})


def all_needed(request: HttpRequest) -> JsonResponse:
    found = states()
    return JsonResponse(found, status=200 if all(found[part] == "ok" for part in NEEDED) else 503)


def one(request: HttpRequest, part: str) -> JsonResponse:
    """The state of one part of the server. Raises `Http404` for a part that there is not."""
    found = states()
    if part == "workers":
        chosen = {queue: found[queue] for queue in QUEUES}
    elif part in found:
        chosen = {part: found[part]}
    else:
        raise Http404(f"There is no part {part[:40]}: the parts are {', '.join(found)} and workers")
    return JsonResponse(chosen, status=200 if set(chosen.values()) == {"ok"} else 503)


def states() -> dict[str, str]:
    """Part → "ok", or what is wrong with it."""
    found = {"web": "ok", "database": database(), "redis": "ok", "storage": "ok"}
    try:
        check_writable()
        found["storage"] = "ok" if storage.problem() is None else "a worker cannot write"
        working = [one.queue for one in announced() if not one.refused]
        found |= {queue: "ok" if queue in working else "no worker" for queue in QUEUES}
    except REDIS_ERRORS as error:
        unknown = dict.fromkeys(QUEUES, "unknown without Redis")
        found |= {"redis": why_away(error), "storage": "unknown without Redis", **unknown}
    return found


def database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return "does not answer"
    return "ok"
