"""Statements for those who must not wait, and queries that are asked again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from django.db import connection
from django.db.models import QuerySet


class Prepared:
    """A query that a process asks every few seconds: its statement is made once, which takes Django several
    times as long as the database takes to answer. Values come as the database has them.
    """

    def __init__(self, rows: Callable[[], QuerySet[Any, Any]]) -> None:
        self._rows = rows

    @cached_property
    def _statement(self) -> tuple[str, tuple[Any, ...]]:
        return self._rows().query.sql_with_params()

    def all(self) -> list[tuple[Any, ...]]:
        """All rows. Raises the database's errors."""
        with connection.cursor() as cursor:
            cursor.execute(*self._statement)
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def exists(self) -> bool:
        """Whether there is a row. Raises the database's errors."""
        return bool(self.all())


def any_of(rows: Callable[[], QuerySet[Any, Any]]) -> Prepared:
    """Ask again and again only whether there are such rows: `exists`."""
    return Prepared(lambda: rows().order_by().values("pk")[:1])


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
