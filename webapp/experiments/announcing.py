"""Tell the workers that points wait, whatever these are."""

from __future__ import annotations

from contextlib import suppress

from webapp.celery import app
from webapp.redis import REDIS_ERRORS

MOST = 16


def announce(count: int) -> None:
    """To up to `count` processes. Without Redis nobody hears it: workers look again at every beat."""
    with suppress(*REDIS_ERRORS):
        for _ in range(min(count, MOST)):
            app.send_task("experiments.predict", queue="points")
