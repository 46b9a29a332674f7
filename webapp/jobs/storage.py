"""What to do while the database cannot be written: say so, and try again until it can."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from webapp.base.redis import REDIS_ERRORS, client

ERRORS = (OperationalError, InterfaceError)
"""A full disk, a locked file, a database that restarts: the same write may succeed later."""

AGAIN_S = 1.0
KNOWN_FOR_S = 7
PROBLEM_KEY = "storage:problem"
logger = logging.getLogger(__name__)
NEVER = threading.Event()
T = TypeVar("T")


def report(error: Exception) -> None:
    """Let everybody know for a while that a write failed: log it, and set a key that `problem` reads."""
    logger.warning("a write failed, and is tried again: %s", error)
    with suppress(*REDIS_ERRORS):
        client().set(PROBLEM_KEY, str(error).strip()[:200], ex=KNOWN_FOR_S)


def problem() -> str | None:
    """Why a worker could not write in the last seconds. Raises Redis' errors."""
    answer = client().get(PROBLEM_KEY)
    return None if answer is None else str(answer)


def keep_trying(
    write: Callable[[], T],
    pause: Callable[[float], object] = NEVER.wait,
    errors: tuple[type[Exception], ...] = ERRORS,
) -> T:
    """What `write` returns, after as many attempts as it takes; `pause` waits between two."""
    while True:
        try:
            return write()
        except errors as error:
            report(error)
            connection.close()
            pause(AGAIN_S)
