"""What a request that must not wait asks of the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def lock_timeout(wait_ms: int) -> Iterator[None]:
    """Let each statement of the block wait `wait_ms` at most for other writers, and raise `OperationalError`
    then.
    """
    if connection.vendor == "sqlite":
        usual_ms = round(connection.settings_dict["OPTIONS"]["timeout"] * 1000)
        limit, usual = f"PRAGMA busy_timeout = {wait_ms}", f"PRAGMA busy_timeout = {usual_ms}"
    else:
        limit, usual = f"SET lock_timeout = {wait_ms}", "SET lock_timeout = DEFAULT"
    with connection.cursor() as cursor:
        cursor.execute(limit)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(usual)
